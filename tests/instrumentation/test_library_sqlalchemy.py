"""SQLAlchemy on top of drivers: what it has the driver do is recorded, once, from the program's own line."""

import json

import pytest
from servers import need_server

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.analysis.transactions.response_times import transactions

pytestmark = [pytest.mark.packages, pytest.mark.xdist_group("servers")]

# The driver, its server, the address, and the intrinsics that run statements.
POSTGRES = "postgres:sesame@127.0.0.1/test"
DRIVERS = {
    "sqlite": ("sqlite3", "", "sqlite://", "sqlite3.Cursor.execute"),
    "psycopg2": ("psycopg2", "postgresql", f"postgresql+psycopg2://{POSTGRES}", "psycopg2.cursor.execute"),
    "psycopg": ("psycopg", "postgresql", f"postgresql+psycopg://{POSTGRES}", "psycopg.Cursor.execute"),
    "mysqlclient": ("MySQLdb", "mysql", "mysql+mysqldb://root@127.0.0.1/test", "MySQLdb.connection.query"),
    "pymysql": ("pymysql", "mysql", "mysql+pymysql://root@127.0.0.1/test", "pymysql.Connection.query"),
}

PROGRAM = """
    import sys
    from sqlalchemy import create_engine, event, select, text
    from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

    class Base(DeclarativeBase):
        pass

    class Order(Base):
        __tablename__ = "alchemy_orders"
        __table_args__ = {"prefixes": ["TEMPORARY"]}
        id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
        number: Mapped[int]

    ran = []
    engine = create_engine(sys.argv[1])
    with engine.connect() as connection:
        event.listen(engine, "before_cursor_execute", lambda *given: ran.append(given[2]))
        Base.metadata.create_all(connection, checkfirst=False)
        for number in range(10):
            connection.execute(text("insert into alchemy_orders values (:id, 7)"), {"id": number})
        connection.execute(select(Order.id).where(Order.number == 7)).all()
        with Session(bind=connection) as session:
            session.add(Order(id=100, number=8))
            session.flush()
            session.scalars(select(Order).where(Order.number == 8)).one()
        connection.rollback()
    print(len(ran))
"""


@pytest.mark.parametrize("name", DRIVERS)
def test_each_statement_is_an_event_of_the_drivers_alone(traced, name):
    pytest.importorskip("sqlalchemy")
    module, server, address, intrinsic = DRIVERS[name]
    pytest.importorskip(module)
    if server:
        need_server(server)
    done = traced(PROGRAM, address).ended_well()
    process = done.experiment.founder
    own = [each for each in done.events(intrinsic) if process.own_line(each.stack)]
    details = [process.string(each.detail) for each in own]
    ours = [each for each in details if "alchemy_orders" in each]

    assert len(ours) == int(done.stdout) == 14
    assert {each.parent for each in own} == {0}
    assert all(process.own_line(each.stack).own for each in own)
    by_call = {each.call: each for each in done.events()}
    for each in by_call.values():
        if each.parent and process.intrinsic(each.intrinsic).kind == "db":
            assert process.intrinsic(by_call[each.parent].intrinsic).kind == "db"


AWAITED = {
    "asyncpg": ("asyncpg", f"postgresql+asyncpg://{POSTGRES}", ("asyncpg.PreparedStatement.fetch",)),
    "psycopg": ("psycopg", f"postgresql+psycopg_async://{POSTGRES}", ("psycopg.AsyncCursor.execute",)),
}
AWAITING = """
    import asyncio, sys
    from sqlalchemy import event, text
    from sqlalchemy.ext.asyncio import create_async_engine

    ran = []

    async def order(engine, number):
        async with engine.connect() as connection:
            await connection.execute(text("create temporary table alchemy_orders (id int)"))
            for each in range(10):
                await connection.execute(text("insert into alchemy_orders values (:id)"), {"id": each})
            assert len((await connection.execute(text("select id from alchemy_orders"))).all()) == 10
            await connection.rollback()

    async def main():
        engine = create_async_engine(sys.argv[1], pool_size=2)
        event.listen(engine.sync_engine, "before_cursor_execute", lambda *given: ran.append(given[2]))
        await asyncio.gather(order(engine, 1), order(engine, 2))
        await engine.dispose()

    asyncio.run(main())
    print(len(ran))
"""


@pytest.mark.parametrize("name", AWAITED)
def test_each_awaited_statement_is_an_event_of_the_drivers_alone(traced, name):
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("greenlet")
    module, address, intrinsics = AWAITED[name]
    pytest.importorskip(module)
    need_server("postgresql")
    done = traced(AWAITING, address).ended_well()
    process = done.experiment.founder
    ran = [each for intrinsic in intrinsics for each in done.events(intrinsic)]
    ours = [each for each in ran if "alchemy_orders" in process.string(each.detail)]

    assert len(ours) == int(done.stdout) == 24
    assert {each.parent for each in ours} == {0}


COMMITTING = """
    import asyncio, sys
    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    async def pay(engine):
        async with AsyncSession(engine) as session:
            await session.execute(text("select 1"))
            await session.commit()

    async def ship(engine):
        async with engine.begin() as connection:
            await connection.execute(text("select 2"))

    async def hand_over(engine):
        async with AsyncSession(engine) as session:
            await session.execute(text("select 3"))
            await asyncio.create_task(session.commit())

    async def main():
        engine = create_async_engine(sys.argv[1])
        for _ in range(3):
            await pay(engine)
            await ship(engine)
            await hand_over(engine)
        await engine.dispose()

    asyncio.run(main())
"""


@pytest.mark.parametrize("name", AWAITED)
def test_what_a_coroutine_commits_has_the_name_of_the_programs_own_function(traced, name):
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("greenlet")
    module, address, _ = AWAITED[name]
    pytest.importorskip(module)
    need_server("postgresql")
    done = traced(COMMITTING, address).ended_well()

    rows = transactions(Analysis(done.experiment)).rows

    assert {row.name: row.sums.calls for row in rows if row.is_named} == {
        "pay": 3,
        "ship": 3,
        "AsyncSession.commit": 3,  # in a task of its own, which runs nothing of the program's
    }


POOLED = """
    import asyncio, json, time
    from sqlalchemy.pool import AsyncAdaptedQueuePool
    from sqlalchemy.util import greenlet_spawn

    class Connection:
        def rollback(self):
            pass
        def close(self):
            pass

    async def work(pool):
        begun_ns = time.monotonic_ns()
        connection = await greenlet_spawn(pool.connect)
        waits.append(time.monotonic_ns() - begun_ns)
        await asyncio.sleep(0.1)
        connection.close()

    async def main():
        pool = AsyncAdaptedQueuePool(Connection, pool_size=1, max_overflow=0)
        await asyncio.gather(*(work(pool) for _ in range(10)))

    waits = []
    asyncio.run(main())
    print(json.dumps(waits))
"""


def test_tasks_that_wait_for_a_connection_of_its_pool_wait_for_a_turn(traced):
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("greenlet")
    done = traced(POOLED)
    process = done.experiment.founder
    waits_ns = json.loads(done.stdout)
    kinds = {process.intrinsic(each.intrinsic).kind for each in done.events("asyncio.Queue.get")}

    found = found_in(Survey(Analysis(done.experiment)), least_share=0)

    (turns,) = [each for each in found if each.rule == "waits for a turn"]
    assert (done.stderr, kinds) == ("", {"sync"})
    assert (turns.first.intrinsic, turns.first.site.function) == ("asyncio.Queue.get", "work")
    assert turns.units == turns.calls == 9
    assert 0.9 * sum(waits_ns[1:]) < turns.each_ns * turns.calls <= sum(waits_ns)
