"""Orders in PostgreSQL, with psycopg 3, in C or in Python."""

import contextlib

import psycopg
from psycopg import sql

#: psycopg.Connection.connect detail=127.0.0.1/test
connection = psycopg.connect("host=127.0.0.1 user=postgres password='open sesame' dbname=test")
with contextlib.suppress(psycopg.OperationalError):
    #: psycopg.Connection.connect detail=127.0.0.1/nowhere error=OperationalError
    psycopg.connect(host="127.0.0.1", user="postgres", password="sesame", dbname="nowhere")

cursor = connection.cursor()
#: psycopg.Cursor.execute detail=create temporary table orders (id int, item text)
cursor.execute("create temporary table orders (id int, item text)")
#: psycopg.Cursor.execute detail=insert into orders values (%s, %s)
cursor.execute("insert into orders values (%s, %s)", (1, "sesame"))
#: psycopg.Cursor.execute detail=insert into orders values (?, ?)
cursor.execute(b"insert into orders values (2, 'sesame')")
values = sql.SQL("insert into {} values ({}, {})")
#: psycopg.Cursor.execute detail=insert into "orders" values (?, ?)
cursor.execute(values.format(sql.Identifier("orders"), sql.Literal(3), sql.Literal("sesame")))
#: psycopg.Cursor.executemany detail=insert into orders values (%s, %s) & within psycopg.Pipeline.__exit__
cursor.executemany("insert into orders values (%s, %s)", [(number, "sesame") for number in range(4, 12)])
#: psycopg.Cursor.copy detail=copy orders from stdin & within psycopg.Copy.finish detail=copy orders from stdin
with cursor.copy("copy orders from stdin") as copy:
    copy.write_row((12, "sesame"))  #: psycopg.Copy.write_row
    copy.write("13\tsesame\n")  #: psycopg.Copy.write bytes=10
#: psycopg.Cursor.copy detail=copy (select * from orders where id < ?) to stdout & within psycopg.Copy.finish detail=...
with cursor.copy("copy (select * from orders where id < 4) to stdout") as copy:
    copy.read()  #: psycopg.Copy.read bytes=9
    copy.read_row()  #: psycopg.Copy.read_row bytes=1
    while copy.read():  #: psycopg.Copy.read bytes=9 & psycopg.Copy.read
        pass
connection.commit()  #: psycopg.Connection.commit

#: within psycopg.Cursor.execute detail=select id from orders where item = %s order by id
cursor = connection.execute("select id from orders where item = %s order by id", ("sesame",))
assert cursor.fetchone() == (1,)  #: psycopg.Cursor.fetchone bytes=1
assert len(cursor.fetchmany(2)) == 2  #: psycopg.Cursor.fetchmany bytes=2
cursor.scroll(1)  #: psycopg.Cursor.scroll
#: 9 psycopg.Cursor.__next__ bytes=1 & psycopg.Cursor.__next__
assert [row[0] for row in cursor] == list(range(5, 14))
assert cursor.fetchall() == []  #: psycopg.Cursor.fetchall
with contextlib.suppress(psycopg.Error):
    #: psycopg.Cursor.execute detail=select * from nowhere where item = ? error=UndefinedTable
    cursor.execute("select * from nowhere where item = 'sesame'")
connection.rollback()  #: psycopg.Connection.rollback
#: within psycopg.Transaction.__enter__ & within psycopg.Transaction.__exit__
with connection.transaction():
    #: psycopg.Cursor.execute detail=select ?
    cursor.execute("select 'sesame'")
#: within psycopg.Pipeline.__exit__
with connection.pipeline() as pipeline:
    #: psycopg.Cursor.execute detail=select %s
    cursor.execute("select %s", ("sesame",))
    pipeline.sync()  #: psycopg.Pipeline.sync
connection.commit()  #: psycopg.Connection.commit

held = connection.cursor("held", scrollable=True)
held.itersize = 5
held.execute("select id from orders")  #: psycopg.ServerCursor.execute detail=select id from orders
held.fetchone()  #: psycopg.ServerCursor.fetchone bytes=1
held.fetchmany(3)  #: psycopg.ServerCursor.fetchmany bytes=3
held.scroll(-4)  #: psycopg.ServerCursor.scroll
assert sum(1 for _ in held) == 13  #: 13 psycopg.ServerCursor.__next__ bytes=1 & psycopg.ServerCursor.__next__
held.fetchall()  #: psycopg.ServerCursor.fetchall
held.close()  #: psycopg.ServerCursor.close & within psycopg.Cursor.close
cursor.close()  #: psycopg.Cursor.close

connection.rollback()  #: psycopg.Connection.rollback
connection.tpc_recover()  #: psycopg.Connection.tpc_recover & within psycopg.Cursor.execute detail=...
connection.tpc_begin("first")  #: psycopg.Connection.tpc_begin
with contextlib.suppress(psycopg.Error):
    connection.tpc_prepare()  #: psycopg.Connection.tpc_prepare error=...
with contextlib.suppress(psycopg.Error):
    connection.tpc_rollback()  #: psycopg.Connection.tpc_rollback error=...
connection.close()  #: psycopg.Connection.close
#: psycopg.Connection.connect detail=127.0.0.1/test
connection = psycopg.connect("postgresql://postgres:sesame@127.0.0.1:5432/test?connect_timeout=5")
connection.tpc_begin("second")  #: psycopg.Connection.tpc_begin
connection.tpc_commit()  #: psycopg.Connection.tpc_commit
connection.cancel_safe()  #: psycopg.Connection.cancel_safe
connection.autocommit = True
cursor = connection.cursor()
assert len(list(cursor.stream("select generate_series(1, 3)"))) == 3  #: 5 within psycopg.Connection.wait
cursor.execute("listen orders")  #: psycopg.Cursor.execute detail=listen orders
assert list(connection.notifies(timeout=0.1)) == []  #: within psycopg.Connection.wait idle error=...
connection.close()  #: psycopg.Connection.close
