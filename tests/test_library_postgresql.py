"""The system library's drivers of PostgreSQL: what is recorded of each call, and that nothing is missing."""

import pytest
from exercises import assert_recorded_as_said, source_of
from servers import need_server

pytestmark = pytest.mark.packages


@pytest.fixture(autouse=True)
def server():
    need_server("postgresql")


def test_every_call_of_psycopg2_is_recorded_as_it_was(traced):
    pytest.importorskip("psycopg2")
    done = traced(source_of("postgresql"), INTERPOSE_ROWS="each")

    assert_recorded_as_said(done, "postgresql")


@pytest.mark.parametrize("implementation", ["binary", "python"])
def test_every_call_of_psycopg_is_recorded_as_it_was(traced, implementation):
    pytest.importorskip("psycopg")
    done = traced(source_of("psycopg"), INTERPOSE_ROWS="each", PSYCOPG_IMPL=implementation)

    assert_recorded_as_said(done, "psycopg")


# What the server itself logs of a session, sent to the client: one message for each statement that it ran.
LOGGED = """
import {driver}
connection = {driver}.connect(host="127.0.0.1", user="postgres", dbname="test")
connection.autocommit = True
cursor = connection.cursor()
cursor.execute("set client_min_messages = log")
cursor.execute("set log_statement = 'all'")
logged = []
{listen}
for number in range(40):
    cursor.execute("select %s, 'a literal'", (number,))
    cursor.fetchone()
    cursor.execute(f"select {{number}}")
    cursor.fetchall()
cursor.execute("select generate_series(1, 100)")
assert len(list(cursor)) == 100
connection.autocommit = False
cursor.execute("set log_statement = 'none'")
print(sum(1 for each in logged if each.startswith(("statement: ", "execute "))))
"""
LISTEN = {
    "psycopg2": "import psycopg2.extensions\n"
    "class Notices(list):\n"
    "    def append(self, text):\n"
    "        logged.append(text.partition(':  ')[2])\n"
    "connection.notices = Notices()",
    "psycopg": "connection.add_notice_handler(lambda notice: logged.append(notice.message_primary))",
}
EXECUTES = {"psycopg2": "psycopg2.cursor.execute", "psycopg": "psycopg.Cursor.execute"}


@pytest.mark.parametrize("driver", LISTEN)
def test_statements_are_counted_as_the_server_logs_them(traced, driver):
    pytest.importorskip(driver)
    done = traced(LOGGED.format(driver=driver, listen=LISTEN[driver]))
    process = done.experiment.founder
    details = [process.string(event.detail) for event in done.events(EXECUTES[driver])]
    first, last = details.index("set log_statement = ?"), len(details) - 1

    assert (done.returncode, done.stderr) == (0, "")
    ran = details[first + 1 : last + 1]
    begins = 1  # the last statement's transaction, which the driver begins by itself
    assert len(ran) + begins == int(done.stdout)
    assert ran.count("select %s, ?") == ran.count("select ?") == 40
    fetched = [event for event in done.events() if process.intrinsic(event.intrinsic).moves == "rows"]
    assert sum(event.bytes for event in fetched) == 40 + 40 + 100


def test_waiting_for_a_notification_is_idle(traced):
    pytest.importorskip("psycopg2")
    done = traced(
        """
        import psycopg2, select, threading, time
        def connect():
            made = psycopg2.connect(host="127.0.0.1", user="postgres", dbname="test")
            made.autocommit = True
            return made
        listening, other = connect(), connect()
        listening.cursor().execute("listen rows_to_come")
        def notify():
            time.sleep(0.1)
            other.cursor().execute("notify rows_to_come")
        threading.Thread(target=notify).start()
        select.select([listening], [], [], 10)
        listening.poll()
        assert len(listening.notifies) == 1
        """
    )
    [wait] = done.events("select.select")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.experiment.founder.intrinsic(wait.intrinsic).kind == "idle"


def test_what_others_are_told_of_a_connection_is_as_before(traced):
    """C code that asks for the driver's own types gets them; early bound methods and subclasses are recorded too."""
    pytest.importorskip("psycopg2")
    done = traced(
        """
        import pickle, weakref
        import psycopg2.extensions, psycopg2.extras
        from psycopg2.extensions import adapt, connection, cursor, quote_ident, register_type, UNICODE
        early = cursor.execute
        class Own(connection):
            def cursor(self, *given, **named):
                return super().cursor(*given, cursor_factory=Mine, **named)
        class Mine(cursor):
            def execute(self, *given):
                return super().execute(*given)
        made = psycopg2.connect(host="127.0.0.1", user="postgres", dbname="test", connection_factory=Own)
        with made, made.cursor() as mine:
            assert type(made) is Own and type(mine) is Mine and isinstance(mine, cursor)
            register_type(UNICODE, made), register_type(UNICODE, mine)
            psycopg2.extras.register_uuid(conn_or_curs=mine), psycopg2.extras.register_hstore
            assert quote_ident("a b", mine) == quote_ident("a b", made) == '"a b"'
            value = adapt("text")
            value.prepare(made)
            bound = weakref.WeakMethod(mine.execute)
            bound()("select 1")
            early(mine, "select 2")
            print(type(cursor.execute).__name__, cursor.execute.__qualname__)
        """
    )
    process = done.experiment.founder

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "method_descriptor cursor.execute\n"
    assert [process.string(event.detail) for event in done.events("psycopg2.cursor.execute")][-2:] == ["select ?"] * 2


@pytest.mark.parametrize("implementation", ["binary", "python"])
def test_every_awaited_call_of_psycopg_is_recorded_as_it_was(traced, implementation):
    pytest.importorskip("psycopg")
    done = traced(source_of("psycopg_async"), INTERPOSE_ROWS="each", PSYCOPG_IMPL=implementation)

    assert_recorded_as_said(done, "psycopg_async")


def test_every_call_of_asyncpg_is_recorded_as_it_was(traced):
    pytest.importorskip("asyncpg")
    done = traced(source_of("asyncpg"), INTERPOSE_ROWS="each")

    assert_recorded_as_said(done, "asyncpg")


@pytest.mark.parametrize("rows", ["each", "auto", "cursor"])
def test_awaited_rows_are_counted_once_and_put_together(traced, rows):
    pytest.importorskip("psycopg")
    done = traced(
        """
        import asyncio, psycopg
        async def fetch(number):
            connection = await psycopg.AsyncConnection.connect(host="127.0.0.1", user="postgres", dbname="test")
            cursor = await connection.execute("select generate_series(1, 500)")
            found = 0
            async for row in cursor:
                found += 1
                if found % 100 == 0:
                    await asyncio.sleep(0)
            assert found == 500
            await connection.close()
        async def main():
            await asyncio.gather(fetch(1), fetch(2))
        asyncio.run(main())
        """,
        INTERPOSE_ROWS=rows,
    )
    events = done.events("psycopg.AsyncCursor.__anext__")
    gathered = sum(thread.record.gathered for thread in done.experiment.founder.threads)

    assert (done.returncode, done.stderr) == (0, "")
    assert sum(event.bytes for event in events) == 1000
    assert len(events) + gathered == 1002
    assert (gathered == 0) == (rows == "each")
    assert all(event.cpu_ns <= event.wall_ns and not event.error for event in events)
    assert all(thread.adds_up for thread in done.experiment.founder.threads)
