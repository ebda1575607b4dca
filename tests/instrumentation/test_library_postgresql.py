"""The system library's drivers of PostgreSQL: what is recorded of each call, and that nothing is missing."""

import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

import pytest
from exercises import assert_program_is_recorded
from servers import need_server

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.analysis.transactions.response_times import transactions

pytestmark = [pytest.mark.packages, pytest.mark.xdist_group("servers")]


@pytest.fixture(autouse=True)
def server():
    need_server("postgresql")


def test_every_call_of_psycopg2_is_recorded_as_it_was(traced):
    pytest.importorskip("psycopg2")
    assert_program_is_recorded(traced, "postgresql", INTERPOSE_ROWS="each")


@pytest.mark.parametrize("implementation", ["binary", "python"])
def test_every_call_of_psycopg_is_recorded_as_it_was(traced, implementation):
    pytest.importorskip("psycopg")
    assert_program_is_recorded(traced, "psycopg", INTERPOSE_ROWS="each", PSYCOPG_IMPL=implementation)


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
    done = traced(LOGGED.format(driver=driver, listen=LISTEN[driver])).ended_well()
    process = done.experiment.founder
    details = [process.string(event.detail) for event in done.events(EXECUTES[driver])]
    first, last = details.index("set log_statement = ?"), len(details) - 1

    ran = details[first + 1 : last + 1]
    begins = 1  # the last statement's transaction, which the driver begins by itself
    assert len(ran) + begins == int(done.stdout)
    assert ran.count("select %s, ?") == ran.count("select ?") == 40
    fetched = [event for event in done.events() if process.intrinsic(event.intrinsic).moves == "rows"]
    assert sum(event.bytes for event in fetched) == 40 + 40 + 100


# Blocks within others, and within a transaction that the driver began by itself; the server's numbers of transactions.
NESTED_BLOCKS = """
import psycopg
connection = psycopg.connect("postgresql://postgres:sesame@127.0.0.1:5432/test", autocommit=True)
numbers = set()
def work():
    numbers.add(connection.execute("select pg_current_xact_id()::text").fetchone()[0])
def order():
    with connection.transaction():
        work()
        for _ in range(3):
            with connection.transaction():
                work()
for _ in range(5):
    order()
connection.autocommit = False
work()
with connection.transaction():
    work()
connection.commit()
print(len(numbers))
"""
NESTED_BLOCKS_AWAITED = """
import asyncio, asyncpg
async def main():
    connection = await asyncpg.connect("postgresql://postgres:sesame@127.0.0.1:5432/test")
    numbers = set()
    async def order():
        async with connection.transaction():
            for _ in range(3):
                async with connection.transaction():
                    numbers.add(await connection.fetchval("select pg_current_xact_id()::text"))
    for _ in range(5):
        await order()
    await connection.close()
    print(len(numbers))
asyncio.run(main())
"""


@pytest.mark.parametrize("consolidates", ["0", "1"])
@pytest.mark.parametrize(("driver", "program"), [("psycopg", NESTED_BLOCKS), ("asyncpg", NESTED_BLOCKS_AWAITED)])
def test_blocks_within_others_end_no_transaction(traced, driver, program, consolidates):
    pytest.importorskip(driver)
    done = traced(program, INTERPOSE_CONSOLIDATE=consolidates).ended_well()
    made = {row.name: row.sums.calls for row in transactions(Analysis(done.experiment)).rows}
    ended = sum(calls for name, calls in made.items() if not name.startswith("."))

    assert ended == int(done.stdout), made


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
    ).ended_well()
    [wait] = done.events("select.select")

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
    ).ended_well()
    process = done.experiment.founder

    assert done.stdout == "method_descriptor cursor.execute\n"
    assert [process.string(event.detail) for event in done.events("psycopg2.cursor.execute")][-2:] == ["select ?"] * 2


@pytest.mark.parametrize("implementation", ["binary", "python"])
def test_every_awaited_call_of_psycopg_is_recorded_as_it_was(traced, implementation):
    pytest.importorskip("psycopg")
    assert_program_is_recorded(traced, "psycopg_async", INTERPOSE_ROWS="each", PSYCOPG_IMPL=implementation)


def test_every_call_of_asyncpg_is_recorded_as_it_was(traced):
    pytest.importorskip("asyncpg")
    assert_program_is_recorded(traced, "asyncpg", INTERPOSE_ROWS="each")


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
    ).ended_well()
    events = done.events("psycopg.AsyncCursor.__anext__")
    gathered = sum(thread.record.gathered for thread in done.experiment.founder.threads)

    assert sum(event.bytes for event in events) == 1000
    assert len(events) + gathered == 1002
    assert (gathered == 0) == (rows == "each")
    assert all(event.cpu_ns <= event.wall_ns and not event.error for event in events)
    assert all(thread.adds_up for thread in done.experiment.founder.threads)


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_a_loop_is_not_idle_while_the_server_is_asked(traced, driver):
    """psycopg asks it in C, so nothing is known of the descriptor that the loop waits for."""
    pytest.importorskip(driver)
    connect = {"psycopg": 'psycopg.AsyncConnection.connect(dbname="test"', "asyncpg": 'asyncpg.connect(database="test"'}
    done = traced(f"""
        import asyncio, time, {driver}
        async def main():
            connection = await {connect[driver]}, host="127.0.0.1", user="postgres")
            begun = time.perf_counter_ns()
            for _ in range(5):
                await connection.execute("select pg_sleep(0.1)")
            print(time.perf_counter_ns() - begun)
            await connection.close()
        asyncio.run(main())
    """)
    founder, waited_ns = done.experiment.founder, {"net": 0, "idle": 0}
    for event in done.events("select.epoll.poll"):
        waited_ns[founder.intrinsic(event.intrinsic).kind] += event.wall_ns

    assert done.returncode == 0
    assert waited_ns["net"] == pytest.approx(int(done.stdout), rel=0.1)
    assert waited_ns["idle"] < 0.1 * waited_ns["net"]


@pytest.fixture
def own_server(tmp_path_factory):
    """A server of the test's own, by its directory: one that keeps prepared transactions."""
    binaries = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    who = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    if not binaries or (who and not any(each.pw_name == "postgres" for each in pwd.getpwall())):
        pytest.skip("there is no PostgreSQL to start")
    with tempfile.TemporaryDirectory() as directory:
        if who:
            shutil.chown(directory, **who)
        at = {"cwd": directory, "stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT, **who}
        words = ["-D", "data", "-A", "trust", "-U", "postgres", "-N"]
        subprocess.run([f"{binaries[-1]}/initdb", *words], check=True, **at)
        words = ["-c", "max_prepared_transactions=5", "-c", "listen_addresses=", "-k", directory, "-F"]
        server = subprocess.Popen([f"{binaries[-1]}/postgres", "-D", "data", *words], **at)
        while not os.path.exists(f"{directory}/.s.PGSQL.5432"):
            assert server.poll() is None, "it ended"
            time.sleep(0.05)
        yield directory
        server.send_signal(signal.SIGINT)
        server.wait(30)


TWO_PHASES = """
import sys, time, {driver} as driver
def connect():
    for _ in range(100):
        try:
            return driver.connect(host=sys.argv[1], user="postgres", dbname="postgres")
        except driver.OperationalError:
            time.sleep(0.05)
made = connect()
made.cursor().execute("drop table if exists orders; create table orders (id int)")
made.commit()
for act in ("commit", "rollback", "recover"):
    made.tpc_begin(made.xid(1, act, "orders"))
    made.cursor().execute("insert into orders values (1)")
    made.tpc_prepare()
    if act == "recover":
        break
    getattr(made, f"tpc_{{act}}")()
made.close()
made = connect()
[left] = made.tpc_recover()
print(left.gtrid, left.bqual)
made.rollback()
made.tpc_commit(left)
made.tpc_begin("in one")
made.cursor().execute("insert into orders values (2)")
made.tpc_commit()
cursor = made.cursor()
cursor.execute("select count(*) from orders")
print(*cursor.fetchone())
try:
    made.tpc_begin("too late")
except driver.ProgrammingError as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_a_commit_in_two_phases_is_recorded_step_by_step(traced, own_server, driver):
    pytest.importorskip(driver)
    on, off = (traced(TWO_PHASES.format(driver=driver), own_server, INTERPOSE=each) for each in "10")
    connection = "psycopg2.connection" if driver == "psycopg2" else "psycopg.Connection"
    steps = ["begin", "prepare", "commit", "rollback", "recover"]

    assert (on.stdout, on.stderr, on.returncode) == ("recover orders\n3\nProgrammingError\n", "", 0)
    assert (off.stdout, off.stderr) == (on.stdout, "")
    assert [len(on.events(f"{connection}.tpc_{step}")) for step in steps] == [5, 3, 3, 1, 1]
    [refused] = [event for event in on.events(f"{connection}.tpc_begin") if event.error]
    assert on.experiment.founder.string(refused.error) == "ProgrammingError"


def test_messages_that_an_asynchronous_connection_is_sent(traced):
    """psycopg2 with `async_`: connecting, a statement and notifications are polled for, and each poll is a call."""
    pytest.importorskip("psycopg2")
    source = """
        import psycopg2, psycopg2.extras, select, threading, time
        AT = dict(host="127.0.0.1", user="postgres", password="sesame", dbname="test")
        waiting = psycopg2.connect(async_=True, **AT)
        psycopg2.extras.wait_select(waiting)
        cursor = waiting.cursor()
        cursor.execute("listen sold; select 5 from pg_sleep(0.1)")
        print(waiting.isexecuting())
        psycopg2.extras.wait_select(waiting)
        print(cursor.fetchall())
        def sell():
            other = psycopg2.connect(**AT)
            other.autocommit = True
            for number in range(3):
                other.cursor().execute(f"notify sold, '{number}'")
            other.close()
        threading.Timer(0.1, sell).start()
        sold = []
        while len(sold) < 3:
            select.select([waiting], [], [], 10)
            waiting.poll()
            while waiting.notifies:
                sold.append(waiting.notifies.pop(0).payload)
        print(sold)
    """
    on, off = traced(source), traced(source, INTERPOSE="0")
    founder = on.experiment.founder
    polls = on.events("psycopg2.connection.poll")
    [listened] = [each for each in on.events("psycopg2.cursor.execute") if "listen" in founder.string(each.detail)]

    assert (on.stdout, on.stderr, on.returncode) == (off.stdout, off.stderr, 0)
    assert on.stdout == "True\n[(5,)]\n['0', '1', '2']\n"
    assert len(on.events("psycopg2.connect")) == 2
    assert len(polls) >= 4
    assert not any(event.error for event in polls)
    assert founder.string(listened.detail) == "listen sold; select ? from pg_sleep(?)"


CROWD = """
import asyncio, asyncpg, time
async def ask(pool):
    begin_ns.append(time.monotonic_ns())
    async with pool.acquire() as connection:
        ended_ns.append(time.monotonic_ns())
        await connection.fetchval("select pg_sleep(0.05)")
async def main():
    server = {"host": "127.0.0.1", "user": "postgres", "password": "sesame", "database": "test"}
    async with asyncpg.create_pool(min_size=2, max_size=2, **server) as pool:
        await asyncio.gather(*(ask(pool) for _ in range(12)))
begin_ns, ended_ns = [], []
asyncio.run(main())
print(max(ended_ns) - min(begin_ns))
"""


def test_tasks_that_wait_for_a_connection_of_asyncpg_wait_for_a_turn(traced):
    pytest.importorskip("asyncpg")
    done = traced(CROWD)

    found = found_in(Survey(Analysis(done.experiment)))

    (turns,) = (each for each in found if each.rule == "waits for a turn")
    assert (turns.first.kind, turns.first.intrinsic, turns.first.site.line) == ("sync", "asyncio.Queue.get", 5)
    assert (turns.units, turns.calls) == (10, 10)
    assert 0.9 * int(done.stdout) < turns.bound_ns <= int(done.stdout)
