"""Orders in PostgreSQL, with psycopg2."""

import contextlib
import io

import psycopg2
import psycopg2.extensions
import psycopg2.extras
from psycopg2 import sql

#: within psycopg2.connect detail=127.0.0.1/test
connection = psycopg2.connect("host=127.0.0.1 user=postgres password='open sesame' dbname=test")
#: within psycopg2.connect detail=127.0.0.1/test
other = psycopg2.connect("postgresql://postgres:sesame@127.0.0.1:5432/test?connect_timeout=5")
with contextlib.suppress(psycopg2.OperationalError):
    #: within psycopg2.connect detail=127.0.0.1/nowhere error=OperationalError
    psycopg2.connect(host="127.0.0.1", user="postgres", password="sesame", dbname="nowhere")
other.set_session(autocommit=True)  #: psycopg2.connection.set_session
other.set_client_encoding("UTF8")  #: psycopg2.connection.set_client_encoding
other.reset()  #: psycopg2.connection.reset
other.close()  #: psycopg2.connection.close

execute = psycopg2.extensions.cursor.execute
cursor = connection.cursor()
psycopg2.extensions.register_type(psycopg2.extensions.UNICODE, cursor)
#: psycopg2.cursor.execute detail=create temporary table orders (id int, item text)
cursor.execute("create temporary table orders (id int, item text)")
#: psycopg2.cursor.execute detail=insert into orders values (%s, %s)
execute(cursor, "insert into orders values (%s, %s)", (1, "sesame"))
#: psycopg2.cursor.execute detail=insert into orders values (?, ?)
cursor.execute(b"insert into orders values (2, 'sesame')")
values = sql.SQL("insert into {} values ({}, {})")
#: psycopg2.cursor.execute detail=insert into "orders" values (?, ?)
cursor.execute(values.format(sql.Identifier("orders"), sql.Literal(3), sql.Literal("sesame")))
#: psycopg2.cursor.executemany detail=insert into orders values (%s, %s)
cursor.executemany("insert into orders values (%s, %s)", [(number, "sesame") for number in range(4, 8)])
rows = [(number, "sesame") for number in range(8, 12)]
#: within psycopg2.cursor.execute detail=insert into orders values (?,?), …
psycopg2.extras.execute_values(cursor, "insert into orders values %s", rows)
#: psycopg2.cursor.copy_from detail=orders
cursor.copy_from(io.StringIO("12\tsesame\n13\tsesame\n"), "orders")
#: psycopg2.cursor.copy_to detail=orders
cursor.copy_to(io.StringIO(), "orders")
#: psycopg2.cursor.copy_expert detail=copy (select * from orders where id = ?) to stdout
cursor.copy_expert("copy (select * from orders where id = 1) to stdout", io.StringIO())
connection.commit()  #: psycopg2.connection.commit

#: psycopg2.cursor.execute detail=select id from orders where item = ? order by id
cursor.execute(query="select id from orders where item = 'sesame' order by id")
assert cursor.fetchone() == (1,)  #: psycopg2.cursor.fetchone bytes=1
assert len(cursor.fetchmany(2)) == 2  #: psycopg2.cursor.fetchmany bytes=2
cursor.scroll(1)  #: psycopg2.cursor.scroll
#: 9 psycopg2.cursor.__next__ bytes=1 & psycopg2.cursor.__next__
assert [row[0] for row in cursor] == list(range(5, 14))
cursor.callproc("abs", (-1,))  #: psycopg2.cursor.callproc detail=abs
assert cursor.fetchall() == [(1,)]  #: psycopg2.cursor.fetchall bytes=1
with contextlib.suppress(psycopg2.Error):
    #: psycopg2.cursor.execute detail=select * from nowhere where item = ? error=UndefinedTable
    cursor.execute("select * from nowhere where item = 'sesame'")
connection.rollback()  #: psycopg2.connection.rollback

#: psycopg2.connection.__exit__ & within psycopg2.connection.commit & psycopg2.cursor.close
with connection, connection.cursor(cursor_factory=psycopg2.extras.DictCursor) as named:
    #: within psycopg2.cursor.execute detail=select id from orders where id < ?
    named.execute("select id from orders where id < 3")
    #: 2 within psycopg2.cursor.__next__ bytes=1 & within psycopg2.cursor.__next__
    assert sorted(row["id"] for row in named) == [1, 2]


class OwnCursor(psycopg2.extensions.cursor):
    pass


#: psycopg2.connection.__exit__ & within psycopg2.connection.commit & psycopg2.cursor.close
with connection, connection.cursor("held", cursor_factory=OwnCursor) as held:
    held.itersize = 5
    held.execute("select id from orders")  #: psycopg2.cursor.execute detail=select id from orders
    assert sum(1 for _ in held) == 13  #: 13 psycopg2.cursor.__next__ bytes=1 & psycopg2.cursor.__next__

drawing = connection.lobject(0, "wb")  #: psycopg2.connection.lobject
drawing.write(b"lines")  #: psycopg2.lobject.write bytes=5
drawing.seek(0)  #: psycopg2.lobject.seek
drawing.tell()  #: psycopg2.lobject.tell
drawing.truncate(2)  #: psycopg2.lobject.truncate
drawing.seek(0)  #: psycopg2.lobject.seek
drawing.read()  #: psycopg2.lobject.read bytes=2
drawing.export("drawing")  #: psycopg2.lobject.export
drawing.close()  #: psycopg2.lobject.close
drawing.unlink()  #: psycopg2.lobject.unlink
connection.commit()  #: psycopg2.connection.commit

connection.tpc_recover()  #: psycopg2.connection.tpc_recover
connection.rollback()  #: psycopg2.connection.rollback
connection.tpc_begin("first")  #: psycopg2.connection.tpc_begin
with contextlib.suppress(psycopg2.ProgrammingError, psycopg2.OperationalError):
    connection.tpc_prepare()  #: psycopg2.connection.tpc_prepare error=...
with contextlib.suppress(psycopg2.ProgrammingError, psycopg2.OperationalError):
    connection.tpc_rollback()  #: psycopg2.connection.tpc_rollback error=...
connection.reset()  #: psycopg2.connection.reset
connection.tpc_begin("second")  #: psycopg2.connection.tpc_begin
connection.tpc_commit()  #: psycopg2.connection.tpc_commit
connection.cancel()  #: psycopg2.connection.cancel
#: psycopg2.cursor.execute detail=listen orders
cursor.execute("listen orders")
connection.poll()  #: psycopg2.connection.poll
cursor.close()  #: psycopg2.cursor.close
