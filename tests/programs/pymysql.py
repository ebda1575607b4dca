"""Orders in MariaDB, with PyMySQL."""

import contextlib

import pymysql
import pymysql.cursors

#: pymysql.connect detail=127.0.0.1/test
connection = pymysql.connect(host="127.0.0.1", user="root", password="", database="test")
with contextlib.suppress(pymysql.err.OperationalError):
    #: pymysql.connect detail=127.0.0.1/nowhere error=OperationalError
    pymysql.connect(host="127.0.0.1", user="root", password="sesame", database="nowhere")
connection.ping()  #: pymysql.Connection.ping
connection.select_db("test")  #: pymysql.Connection.select_db
connection.autocommit(False)  #: pymysql.Connection.autocommit
connection.begin()  #: pymysql.Connection.begin
cursor = connection.cursor()
#: within pymysql.Connection.query detail=create temporary table orders (id int, item text)
cursor.execute("create temporary table orders (id int, item text)")
#: within pymysql.Connection.query detail=insert into orders values (?, ?)
cursor.execute("insert into orders values (%s, %s)", (1, "sesame"))
#: within pymysql.Connection.query detail=insert into orders values (?, ?), …
cursor.executemany("insert into orders values (%s, %s)", [(number, "sesame") for number in range(2, 12)])
connection.commit()  #: pymysql.Connection.commit
#: within pymysql.Connection.query detail=select id from orders where item = ?
cursor.execute("select id from orders where item = %s", ("sesame",))
assert len(cursor.fetchall()) == 11
with contextlib.suppress(pymysql.err.ProgrammingError):
    #: within pymysql.Connection.query detail=select * from nowhere error=ProgrammingError
    cursor.execute("select * from nowhere")
connection.rollback()  #: pymysql.Connection.rollback

unbuffered = connection.cursor(pymysql.cursors.SSCursor)
#: within pymysql.Connection.query detail=select id from orders
unbuffered.execute("select id from orders")
#: 11 within pymysql.SSCursor.read_next bytes=1 & within pymysql.SSCursor.read_next
assert sum(1 for _ in unbuffered) == 11
unbuffered.close()
with contextlib.suppress(pymysql.err.OperationalError, pymysql.err.InternalError):
    connection.kill(0)  #: pymysql.Connection.kill error=...
connection.close()  #: pymysql.Connection.close
#: pymysql.connect detail=127.0.0.1/
several = pymysql.connect(host="127.0.0.1", user="root", client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS)
several.query("select 1; select 'sesame'")  #: pymysql.Connection.query detail=select ?; select ?
several.next_result()  #: pymysql.Connection.next_result
several.close()  #: pymysql.Connection.close
