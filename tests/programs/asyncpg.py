"""Orders in PostgreSQL, awaited, with asyncpg."""

import asyncio
import contextlib
import io

import asyncpg


async def main():
    #: within asyncpg.connect detail=127.0.0.1/test
    connection = await asyncpg.connect("postgresql://postgres:sesame@127.0.0.1:5432/test")
    #: asyncpg.Connection.execute detail=create temporary table orders (id int, item text)
    await connection.execute("create temporary table orders (id int, item text)")
    rows = [(number, "sesame") for number in range(1, 12)]
    #: asyncpg.Connection.executemany detail=insert into orders values ($1, $2)
    await connection.executemany("insert into orders values ($1, $2)", rows)
    #: within asyncpg.Connection.execute detail=BEGIN; & within asyncpg.Connection.execute detail=COMMIT;
    #: asyncpg.Transaction.__aexit__
    async with connection.transaction():
        #: asyncpg.Connection.fetch bytes=11 detail=select id from orders where item = $1
        assert len(await connection.fetch("select id from orders where item = $1", "sesame")) == 11
        #: asyncpg.Connection.fetchrow bytes=1 detail=select id from orders where item = ?
        await connection.fetchrow("select id from orders where item = 'sesame'")
        #: asyncpg.Connection.fetchval detail=select count(*) from orders
        assert await connection.fetchval("select count(*) from orders") == 11
        #: 11 asyncpg.CursorIterator.__anext__ bytes=1 detail=select id from orders
        #: asyncpg.CursorIterator.__anext__ detail=select id from orders
        assert len([row async for row in connection.cursor("select id from orders")]) == 11
        portal = await connection.cursor("select id from orders")
        await portal.forward(1)  #: asyncpg.Cursor.forward detail=select id from orders
        await portal.fetchrow()  #: asyncpg.Cursor.fetchrow bytes=1 detail=select id from orders
        assert len(await portal.fetch(5)) == 5  #: asyncpg.Cursor.fetch bytes=5 detail=select id from orders
    #: within asyncpg.Connection.execute detail=BEGIN; & within asyncpg.Connection.execute detail=COMMIT;
    #: asyncpg.Transaction.__aexit__
    async with connection.transaction():
        await connection.fetchval("select 1")  #: asyncpg.Connection.fetchval detail=select ?
        #: within asyncpg.Connection.execute detail=SAVEPOINT ?;
        #: within asyncpg.Connection.execute detail=RELEASE SAVEPOINT ?;
        #: asyncpg.Transaction.__aexit__ detail=RELEASE SAVEPOINT
        async with connection.transaction():
            pass
    block = connection.transaction()
    await block.start()  #: within asyncpg.Connection.execute detail=BEGIN;
    #: asyncpg.Transaction.commit & within asyncpg.Connection.execute detail=COMMIT;
    await block.commit()
    #: asyncpg.Connection.prepare detail=select item from orders where id = $1
    prepared = await connection.prepare("select item from orders where id = $1")
    await prepared.fetch(1)  #: asyncpg.PreparedStatement.fetch bytes=1 detail=select item from orders where id = $1
    #: asyncpg.PreparedStatement.fetchrow bytes=1 detail=select item from orders where id = $1
    await prepared.fetchrow(2)
    await prepared.fetchval(3)  #: asyncpg.PreparedStatement.fetchval detail=select item from orders where id = $1
    #: asyncpg.PreparedStatement.executemany detail=select item from orders where id = $1
    await prepared.executemany([(1,), (2,)])
    #: asyncpg.PreparedStatement.fetchmany bytes=2 detail=select item from orders where id = $1
    await prepared.fetchmany([(1,), (2,)])
    #: asyncpg.Connection.fetchmany bytes=2 detail=select item from orders where id = $1
    await connection.fetchmany("select item from orders where id = $1", [(1,), (2,)])
    with contextlib.suppress(asyncpg.UndefinedTableError):
        #: asyncpg.Connection.execute detail=select * from nowhere error=UndefinedTableError
        await connection.execute("select * from nowhere")
    #: asyncpg.Connection.copy_from_query detail=select * from orders where id < ?
    await connection.copy_from_query("select * from orders where id < 3", output=io.BytesIO())
    #: asyncpg.Connection.copy_from_table detail=orders
    await connection.copy_from_table("orders", output=io.BytesIO())
    #: asyncpg.Connection.copy_to_table detail=orders
    await connection.copy_to_table("orders", source=io.BytesIO(b"13\tsesame\n"))
    #: asyncpg.Connection.copy_records_to_table detail=orders
    await connection.copy_records_to_table("orders", records=rows)
    await connection.add_listener("orders", print)  #: asyncpg.Connection.add_listener
    await connection.remove_listener("orders", print)  #: asyncpg.Connection.remove_listener
    await connection.reset()  #: asyncpg.Connection.reset
    await connection.close()  #: asyncpg.Connection.close


asyncio.run(main())
