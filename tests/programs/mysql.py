"""Orders in MariaDB, with mysqlclient."""

import contextlib

import MySQLdb
import MySQLdb.cursors

#: within MySQLdb.connect detail=127.0.0.1/test
#: within MySQLdb.connection.autocommit & within MySQLdb.connection.set_character_set
connection = MySQLdb.connect("127.0.0.1", "root", "", "test")
with contextlib.suppress(MySQLdb.OperationalError):
    #: within MySQLdb.connect detail=127.0.0.1/nowhere error=OperationalError
    MySQLdb.connect(host="127.0.0.1", user="root", password="sesame", database="nowhere")
cursor = connection.cursor()
#: within MySQLdb.connection.query detail=create temporary table orders (id int, item text)
cursor.execute("create temporary table orders (id int, item text)")
#: within MySQLdb.connection.query detail=insert into orders values (?, ?)
#: within MySQLdb.connection.store_result & within MySQLdb.connection.next_result
cursor.execute("insert into orders values (%s, %s)", (1, "sesame"))
#: within MySQLdb.connection.query detail=insert into orders values (?, ?), …
cursor.executemany("insert into orders values (%s, %s)", [(number, "sesame") for number in range(2, 12)])
connection.commit()  #: MySQLdb.connection.commit
#: within MySQLdb.connection.query detail=select id from orders where item = ?
#: within MySQLdb.result.fetch_row bytes=11
cursor.execute("select id from orders where item = %s", ("sesame",))
assert len(cursor.fetchall()) == 11
with contextlib.suppress(MySQLdb.ProgrammingError):
    #: within MySQLdb.connection.query detail=select * from nowhere error=ProgrammingError
    cursor.execute("select * from nowhere")
connection.rollback()  #: MySQLdb.connection.rollback

unbuffered = connection.cursor(MySQLdb.cursors.SSCursor)
#: within MySQLdb.connection.query detail=select id from orders & within MySQLdb.connection.use_result
unbuffered.execute("select id from orders")
assert sum(1 for _ in unbuffered) == 11  #: 11 within MySQLdb.result.fetch_row bytes=1 & within MySQLdb.result.fetch_row
#: within MySQLdb.result.discard & within MySQLdb.connection.next_result
unbuffered.close()

connection.select_db("test")  #: MySQLdb.connection.select_db
connection.ping()  #: MySQLdb.connection.ping
connection.stat()  #: MySQLdb.connection.stat
connection.change_user("root", "", "test")  #: MySQLdb.connection.change_user
connection.send_query(b"select 'sesame'")  #: MySQLdb.connection.send_query detail=select ?
connection.read_query_result()  #: MySQLdb.connection.read_query_result
connection.discard_result()  #: MySQLdb.connection.discard_result
with contextlib.suppress(MySQLdb.OperationalError):
    connection.kill(0)  #: MySQLdb.connection.kill error=...
connection.close()  #: MySQLdb.connection.close
