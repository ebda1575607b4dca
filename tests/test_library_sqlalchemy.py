"""SQLAlchemy on top of drivers: what it has the driver do is recorded, once, from the program's own line."""

import pytest
from servers import need_server

pytestmark = pytest.mark.packages

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
    done = traced(PROGRAM, address)
    process = done.experiment.founder
    own = [each for each in done.events(intrinsic) if process.own_line(each.stack)]
    details = [process.string(each.detail) for each in own]
    ours = [each for each in details if "alchemy_orders" in each]

    assert (done.returncode, done.stderr) == (0, "")
    assert len(ours) == int(done.stdout) == 14
    assert {each.parent for each in own} == {0}
    assert all(process.own_line(each.stack).own for each in own)
    by_call = {each.call: each for each in done.events()}
    for each in by_call.values():
        if each.parent and process.intrinsic(each.intrinsic).kind == "db":
            assert process.intrinsic(by_call[each.parent].intrinsic).kind == "db"
