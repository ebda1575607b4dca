"""Orders in PostgreSQL, awaited, with psycopg 3."""

import asyncio
import contextlib

import psycopg


async def main():
    #: psycopg.AsyncConnection.connect detail=127.0.0.1/test
    connection = await psycopg.AsyncConnection.connect("host=127.0.0.1 user=postgres password=sesame dbname=test")
    cursor = connection.cursor()
    #: psycopg.AsyncCursor.execute detail=create temporary table orders (id int, item text)
    await cursor.execute("create temporary table orders (id int, item text)")
    rows = [(number, "sesame") for number in range(1, 12)]
    #: psycopg.AsyncCursor.executemany detail=insert into orders values (%s, %s)
    #: within psycopg.AsyncPipeline.__aexit__
    await cursor.executemany("insert into orders values (%s, %s)", rows)
    #: psycopg.AsyncCursor.copy detail=copy orders from stdin & within psycopg.AsyncCopy.finish detail=...
    async with cursor.copy("copy orders from stdin") as copy:
        await copy.write_row((12, "sesame"))  #: psycopg.AsyncCopy.write_row
        await copy.write("13\tsesame\n")  #: psycopg.AsyncCopy.write bytes=10
    #: psycopg.AsyncCursor.copy detail=... & within psycopg.AsyncCopy.finish detail=...
    async with cursor.copy("copy (select * from orders where id < 3) to stdout") as copy:
        await copy.read()  #: psycopg.AsyncCopy.read bytes=9
        await copy.read_row()  #: psycopg.AsyncCopy.read_row bytes=1
        await copy.read()  #: psycopg.AsyncCopy.read
    await connection.commit()  #: psycopg.AsyncConnection.commit
    #: psycopg.AsyncCursor.execute detail=select id from orders where item = ? order by id
    await cursor.execute("select id from orders where item = 'sesame' order by id")
    assert await cursor.fetchone() == (1,)  #: psycopg.AsyncCursor.fetchone bytes=1
    assert len(await cursor.fetchmany(2)) == 2  #: psycopg.AsyncCursor.fetchmany bytes=2
    await cursor.scroll(1)  #: psycopg.AsyncCursor.scroll
    #: 9 psycopg.AsyncCursor.__anext__ bytes=1 & psycopg.AsyncCursor.__anext__
    assert [row[0] async for row in cursor] == list(range(5, 14))
    assert await cursor.fetchall() == []  #: psycopg.AsyncCursor.fetchall
    with contextlib.suppress(psycopg.Error):
        #: psycopg.AsyncCursor.execute detail=select * from nowhere error=UndefinedTable
        await cursor.execute("select * from nowhere")
    await connection.rollback()  #: psycopg.AsyncConnection.rollback
    #: within psycopg.AsyncTransaction.__aenter__ & within psycopg.AsyncTransaction.__aexit__
    async with connection.transaction():
        await cursor.execute("select 'sesame'")  #: psycopg.AsyncCursor.execute detail=select ?
    #: within psycopg.AsyncPipeline.__aexit__
    async with connection.pipeline() as pipeline:
        await cursor.execute("select %s", ("sesame",))  #: psycopg.AsyncCursor.execute detail=select %s
        await pipeline.sync()  #: psycopg.AsyncPipeline.sync
    held = connection.cursor("held", scrollable=True)
    await held.execute("select id from orders")  #: psycopg.AsyncServerCursor.execute detail=select id from orders
    await held.fetchone()  #: psycopg.AsyncServerCursor.fetchone bytes=1
    await held.fetchmany(3)  #: psycopg.AsyncServerCursor.fetchmany bytes=3
    await held.scroll(-4)  #: psycopg.AsyncServerCursor.scroll
    #: 13 psycopg.AsyncServerCursor.__anext__ bytes=1 & psycopg.AsyncServerCursor.__anext__
    assert len([row async for row in held]) == 13
    await held.fetchall()  #: psycopg.AsyncServerCursor.fetchall
    await held.close()  #: psycopg.AsyncServerCursor.close & within psycopg.AsyncCursor.close
    await cursor.close()  #: psycopg.AsyncCursor.close
    await connection.rollback()  #: psycopg.AsyncConnection.rollback
    #: psycopg.AsyncConnection.tpc_recover & within psycopg.AsyncCursor.execute detail=...
    await connection.tpc_recover()
    await connection.rollback()  #: psycopg.AsyncConnection.rollback
    await connection.tpc_begin("first")  #: psycopg.AsyncConnection.tpc_begin
    with contextlib.suppress(psycopg.Error):
        await connection.tpc_prepare()  #: psycopg.AsyncConnection.tpc_prepare error=...
    with contextlib.suppress(psycopg.Error):
        await connection.tpc_rollback()  #: psycopg.AsyncConnection.tpc_rollback error=...
    await connection.close()  #: psycopg.AsyncConnection.close
    #: psycopg.AsyncConnection.connect detail=127.0.0.1/test
    connection = await psycopg.AsyncConnection.connect("postgresql://postgres:sesame@127.0.0.1:5432/test")
    await connection.tpc_begin("second")  #: psycopg.AsyncConnection.tpc_begin
    await connection.tpc_commit()  #: psycopg.AsyncConnection.tpc_commit
    await connection.cancel_safe()  #: psycopg.AsyncConnection.cancel_safe
    await connection.set_autocommit(True)  #: within psycopg.AsyncConnection.wait
    await connection.close()  #: psycopg.AsyncConnection.close


asyncio.run(main())
