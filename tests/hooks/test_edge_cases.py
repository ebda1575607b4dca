"""What broke other tracers: each case with the packages that it was met with, and as it is without us."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest
from servers import need_server
from tracing import environment, events_of

from interpose.experiments.model.experiment import Experiment

pytestmark = pytest.mark.packages

SERVERS = {"psycopg2": "postgresql", "psycopg": "postgresql", "asyncpg": "postgresql", "redis": "redis"}
SERVERS |= {"pymysql": "mysql", "MySQLdb": "mysql"}

CONNECT = """
import sqlite3
def connect(name):
    if name == "sqlite3":
        return sqlite3.connect(":memory:", check_same_thread=False)
    if name in ("psycopg2", "psycopg"):
        return __import__(name).connect(host="127.0.0.1", user="postgres", password="sesame", dbname="test")
    return __import__(name).connect(host="127.0.0.1", user="root", password="", database="test")
def fetch(connection, statement):
    cursor = connection.cursor()
    cursor.execute(statement)
    return [row[0] for row in cursor]
def store():
    import redis
    return redis.Redis(host="127.0.0.1")
"""


def need(*packages):
    for package in packages:
        pytest.importorskip(package)
        if package in SERVERS:
            need_server(SERVERS[package])


@pytest.fixture
def both(traced):
    """Run a program with us and without; what both said is the same. Gives the former."""

    def run(source, *arguments, **variables):
        off = traced(CONNECT + source, *arguments, **{**variables, "INTERPOSE": "0"})
        on = traced(CONNECT + source, *arguments, **variables)
        assert off.stdout, off.stderr
        assert (on.stdout, on.stderr, on.returncode) == (off.stdout, off.stderr, off.returncode)
        assert sum(thread.record.dropped for each in on.experiment.processes for thread in each.threads) == 0
        return on

    return run


def counts(done, kind="db"):
    """How many events there are of each intrinsic of a kind, over all processes."""
    found = Counter()
    for process in done.experiment.processes:
        for event in events_of(process):
            if process.intrinsic(event.intrinsic).kind == kind:
                found[process.intrinsic(event.intrinsic).name] += 1
    return found


def details(done, name):
    process = done.experiment.founder
    return [process.string(event.detail) for event in done.events(name)]


# --- types that C code checks, and ways to a statement that are easily overlooked


def test_c_code_that_checks_types_gets_them(both):
    need("psycopg2", "psycopg", "MySQLdb")
    done = both("""
import psycopg, psycopg2.extras, psycopg2.extensions, MySQLdb
class Own(sqlite3.Connection):
    pass
source, target, own = sqlite3.connect(":memory:"), sqlite3.connect(":memory:"), sqlite3.connect(":memory:", factory=Own)
source.executescript("create table t (x); insert into t values (1); insert into t values (2)")
source.backup(target)
source.backup(own, pages=1, progress=lambda *given: None)
print(target.execute("select count(*) from t").fetchone(), own.execute("select sum(x) from t").fetchone())
print(type(own) is Own, sqlite3.Cursor(own).execute("select 1").fetchone(), list(source.iterdump())[1])

connection = connect("psycopg2")
print(psycopg2.extensions.quote_ident('a"b', connection), psycopg2.extensions.adapt("it's").getquoted())
psycopg2.extensions.register_type(psycopg2.extensions.new_type((23,), "INT", lambda value, cursor: value), connection)
print(fetch(connection, "select 5"))
adapted = psycopg2.extensions.adapt("text")
adapted.prepare(connection)
psycopg2.extras.register_default_json(connection)
psycopg2.extras.register_uuid(conn_or_curs=connection)
psycopg2.extras.register_composite("pg_class", connection)
print(psycopg2.sql.SQL("select {}").format(psycopg2.sql.Literal("x")).as_string(connection), adapted.encoding)

third = connect("psycopg")
print(psycopg.sql.SQL("select {}").format("it's").as_string(third), type(third.pgconn).__name__ != "")
print(psycopg.types.TypeInfo.fetch(third, "int4").oid, psycopg.Cursor(third).execute("select 6").fetchone())
dumper = type("Dumper", (psycopg.adapt.Dumper,), {"dump": lambda self, given: b"7"})
third.adapters.register_dumper(complex, dumper)
print(third.execute("select %s::int", (1j,)).fetchone())

other = connect("MySQLdb")
print(other.literal("it's"), MySQLdb._mysql.escape("it's", other.encoders), fetch(other, "select 8"))
    """)

    assert counts(done)["sqlite3.Connection.backup"] == 2


@pytest.mark.parametrize("driver", ["sqlite3", "psycopg2", "psycopg", "MySQLdb", "pymysql"])
def test_connections_and_cursors_from_before_are_recorded_as_well(recorded, driver):
    """Of what is imported, made and bound before recording begins."""
    need(driver)
    done = recorded(CONNECT + f"""
from interpose.instrumentation import system_library
connection = connect({driver!r})
cursor, other = connection.cursor(), connection.cursor()
other.execute("select 1 union select 2 union select 3")
record(*system_library.every())
cursor.execute("select 4")
print(len(cursor.fetchall()), sum(1 for row in other))
with connection.cursor() if {driver!r} != "sqlite3" else __import__("contextlib").nullcontext(cursor) as inner:
    inner.execute("select 5")
    print(inner.fetchone())
connection.rollback()
connection.close()
    """)
    found = counts(done)
    statements = [name for name in found if name.endswith((".execute", ".query"))]

    assert (done.stdout, done.stderr) == ("1 3\n(5,)\n", "")
    assert sum(found[name] for name in statements) == 2
    assert sum(count for name, count in found.items() if name.endswith((".rollback", ".close"))) >= 2


# --- identity and pickling


def test_functions_types_and_objects_of_packages_are_what_they_were(both):
    need("redis", "psycopg", "flask", "httpx", "celery", "requests", "pymysql")
    both("""
import abc, asyncio, collections.abc, copy, inspect, pickle, types, weakref
import celery, flask, httpx, psycopg, pymysql, redis, redis.asyncio, requests
METHODS = [
    (redis.Redis, "execute_command"), (redis.client.Pipeline, "execute"), (redis.asyncio.Redis, "execute_command"),
    (psycopg.Cursor, "execute"), (psycopg.AsyncCursor, "execute"), (psycopg.Connection, "connect"),
    (pymysql.connections.Connection, "query"), (requests.Session, "send"), (flask.Flask, "wsgi_app"),
    (httpx.Client, "send"), (httpx.AsyncClient, "send"), (celery.Task, "apply_async"),
]
for owner, name in METHODS:
    method = getattr(owner, name)
    print(owner.__name__, name, method is getattr(owner, name), inspect.iscoroutinefunction(method), callable(method))
    print(asyncio.iscoroutinefunction(method), inspect.isfunction(method), inspect.ismethod(method))
    print(method.__name__, method.__qualname__, method.__doc__)
    print([*inspect.signature(method).parameters], isinstance(method, (types.FunctionType, types.MethodType)))
    print(pickle.loads(pickle.dumps(method)) == method, hash(method) == hash(getattr(owner, name)))
    print([each is owner for each in (owner, copy.copy(owner), pickle.loads(pickle.dumps(owner)))])
class Shape(abc.ABC):
    @abc.abstractmethod
    def execute_command(self): ...
Shape.register(redis.Redis)
class Store(redis.Redis, Shape):
    pass
print(issubclass(redis.Redis, Shape), issubclass(Store, Shape), isinstance(store(), Shape), Store.__abstractmethods__)
print(issubclass(redis.Redis, collections.abc.Hashable), issubclass(psycopg.Cursor, collections.abc.Iterable))
made = store()
reference = weakref.WeakMethod(made.execute_command)
print(reference()("PING"), made.execute_command == made.execute_command, made.execute_command.__self__ is made)
session = pickle.loads(pickle.dumps(requests.Session()))
print(type(session) is requests.Session, copy.copy(session).send.__func__ is requests.Session.send)
request = requests.Request("GET", "http://127.0.0.1/").prepare()
print(pickle.loads(pickle.dumps(request.copy().headers)), type(copy.deepcopy(requests.Session())).__name__)
    """)


def test_what_goes_to_servers_of_processes_is_pickled_as_ever(both, tmp_path):
    """Methods of packages, locks and a manager's, where forkserver starts the workers, as Python 3.14 has it."""
    need("requests", "redis")
    done = both("""
import multiprocessing, pickle, threading
import redis, requests

def work(lock, counter, names, method, own):
    for _ in range(20):
        with lock:
            counter.value += 1
    names.append(method.__qualname__)
    with own:
        names.append(redis.Redis(host="127.0.0.1").ping())

if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    for attempt in (threading.Lock(), threading.RLock(), store().connection_pool):
        try:
            print(type(pickle.loads(pickle.dumps(attempt))))
        except TypeError as error:
            print(error)
    with context.Manager() as manager:
        lock, names, counter = manager.Lock(), manager.list(), context.Value("i", 0)
        own = context.RLock()
        given = (lock, counter, names, requests.Session.send, own)
        workers = [context.Process(target=work, args=given) for _ in range(3)]
        [worker.start() for worker in workers]
        [worker.join() for worker in workers]
        print(counter.value, sorted(map(str, names)), [worker.exitcode for worker in workers])
    """)

    assert counts(done)["redis.Redis.execute_command"] == 3


# --- locks

LOCKED = """
import logging, os, threading, time
import redis, sqlalchemy

class Own(type(threading.RLock())):
    def __enter__(self):
        return super().__enter__()

class Shop:
    guard = threading.Lock()
    own = Own()

    def sell(self):
        with self.guard, self.own:
            time.sleep(0.03)

shop = Shop()
sellers = [threading.Thread(target=shop.sell) for _ in range(4)]
[seller.start() for seller in sellers]
[seller.join() for seller in sellers]
print(Shop.guard.locked(), Shop.own._is_owned())

handed = threading.Lock()
def take():
    handed.acquire()
taker = threading.Thread(target=take)
taker.start()
taker.join()
threading.Timer(0.05, handed.release).start()
print(handed.acquire(timeout=10), handed.locked())

engine = sqlalchemy.create_engine(
    "postgresql+psycopg2://postgres:sesame@127.0.0.1/test", pool_size=1, max_overflow=0
)
def order():
    with engine.connect() as connection:
        time.sleep(0.03)
        return connection.exec_driver_sql("select 1").scalar()
buyers = [threading.Thread(target=order) for _ in range(3)]
[buyer.start() for buyer in buyers]
[buyer.join() for buyer in buyers]

pool = redis.BlockingConnectionPool(host="127.0.0.1", max_connections=1, timeout=10)
clients = [redis.Redis(connection_pool=pool) for _ in range(3)]
askers = [threading.Thread(target=client.ping) for client in clients]
[asker.start() for asker in askers]
[asker.join() for asker in askers]

logging.basicConfig(format="%(message)s")
handler = logging.getLogger().handlers[0]
handler.acquire()
Shop.own.acquire()
os.register_at_fork(after_in_child=Shop.own._at_fork_reinit)
child = os.fork()
if child == 0:
    logging.warning("in the child")
    shop.sell()
    print(clients[0].ping(), Shop.own._is_owned(), flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1])
handler.release()
Shop.own.release()
"""


def test_locks_of_classes_of_packages_and_over_forks_are_what_they_were(both):
    need("redis", "sqlalchemy", "psycopg2")
    done = both("import warnings; warnings.simplefilter('ignore')\n" + LOCKED)
    founder = done.experiment.founder
    waited = [event for event in done.events("threading.Lock.__enter__") if event.wall_ns > 10e6]
    holders = [founder.string(event.detail) for event in waited]

    assert len([each for each in holders if "Shop.sell" in each]) >= 3
    [handed] = [each for each in done.events("threading.Lock.acquire") if each.wall_ns > 40e6 and each.parent == 0]
    assert founder.string(handed.detail).endswith("take")
    assert sum(event.wall_ns for event in done.events("threading.Condition.wait")) > 30e6


# --- finalizers that the collector of garbage runs in the middle of anything

FINALISED = """
import gc, json, os, sys, threading
import psycopg
made = dict.fromkeys(("redis", "psycopg2", "psycopg", "sqlite3", "locks"), 0)
last, busy = {name: connect(name) for name in ("psycopg2", "psycopg", "sqlite3")}, []
theirs, lock, kept = store(), threading.Lock(), store()
theirs.ping()

class Kept:
    def __init__(self):
        self.itself = self

    def __del__(self):
        if busy:
            return
        busy.append(self)
        theirs.set("finalised", "1")
        made["redis"] += 1
        for name, connection in last.items():
            connection.cursor().execute(f"select 'finalised {name}'")
            made[name] += 1
        with lock:
            made["locks"] += 1
        busy.pop()

first = connect("psycopg2")
gc.set_threshold(int(sys.argv[1]), 1, 1)
for turn in range(200):
    Kept()
    with first.cursor() as cursor:
        cursor.execute(f"select {turn}, 'never seen {turn}'")
        Kept()
        cursor.fetchall()
        try:
            cursor.execute("select nonsense")
        except Exception:
            first.rollback()
    Kept()
    kept.get(f"price:{turn}")
    held = threading.Lock()
    held.acquire()
    threading.Thread(target=held.release).start()
    held.acquire()
gc.set_threshold(700, 10, 10)
gc.collect()
del busy[:]
print(made["redis"] > 20)
json.dump(made, open(sys.argv[2], "w"))
"""
FINALISED_BY = {
    "psycopg2": "psycopg2.cursor.execute",
    "psycopg": "psycopg.Cursor.execute",
    "sqlite3": "sqlite3.Cursor.execute",
}
# One whose own code makes rubbish, that of the recorder being in C.
WRAPPED = """
from interpose.library import Intrinsic
def wrapper(wrapped, instance, args, kwargs):
    rubbish = [[], {}]
    rubbish.append(rubbish)
    return wrapped(*args, **kwargs)
by = {"wrapper": wrapper}
INTRINSICS = [
    Intrinsic("redis.Redis.execute_command", "redis.client:Redis.execute_command", "db", detail="word", **by),
    Intrinsic("psycopg2.cursor.execute", "psycopg2._psycopg:cursor.execute", "db", detail="statement", **by),
]
"""


@pytest.mark.parametrize("threshold", ["1", "30"])
@pytest.mark.parametrize("library", ["", WRAPPED], ids=["ours", "with wrappers"])
def test_finalizers_that_call_what_is_recorded_neither_hang_nor_are_lost(both, tmp_path, threshold, library):
    need("psycopg2", "psycopg", "redis")
    if library:
        (tmp_path / "interpose.d").mkdir(mode=0o700)
        (tmp_path / "interpose.d" / "rubbish.py").write_text(library)
        (tmp_path / "interpose.d" / "rubbish.py").chmod(0o600)

    done = both(FINALISED, threshold, str(tmp_path / "made"))
    made = json.loads((tmp_path / "made").read_text())

    for name, intrinsic in FINALISED_BY.items():
        assert details(done, intrinsic).count("select ?") >= made[name]
    assert details(done, "redis.Redis.execute_command").count("SET") == made["redis"]
    assert all(thread.adds_up for thread in done.experiment.founder.threads)


# --- children, and the start

STARTING = """
import os, shlex, subprocess, sys, sysconfig
scripts = sysconfig.get_path("scripts")
ways = [
    dict(args=iter([sys.executable, "-c", "import sys; print(sys.argv)", "a b"])),
    dict(args=(each for each in (sys.executable, "-c", "import os; print(sorted(os.environ))")), env={}),
    dict(args=f"{shlex.quote(sys.executable)} -c 'import flask; print(flask.Flask)' && echo said", shell=True),
    dict(args=[sys.executable, "-c", "import sys; print(sys.flags.isolated, sys.argv)", "-c", "x"], env=None),
    dict(args=[sys.executable, "-Ic", "import redis; print(redis.Redis)"]),
]
for name in ("flask", "celery", "uvicorn", "coverage", "gunicorn", "django-admin", "httpx"):
    ways.append(dict(args=[os.path.join(scripts, name), "--version"]))
    ways.append(dict(args=["sh", "-c", f"exec {shlex.quote(os.path.join(scripts, name))} --version"]))
for way in ways:
    done = subprocess.run(**way, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.returncode, done.stdout.strip())
    sys.stdout.flush()
os.execv(os.path.join(scripts, "flask"), [os.path.join(scripts, "flask"), "--version"])
"""


def test_children_and_console_scripts_get_what_they_were_given(both):
    need("flask", "celery", "uvicorn", "coverage", "gunicorn", "django", "redis")
    done = both(STARTING)
    commands = [process.log.arguments for process in done.experiment.processes]

    assert sum("--version" in each for each in commands) == 15


def test_a_users_own_sitecustomize_runs_once_and_may_start_python(both, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("""
import os, subprocess, sys
with open(os.path.join(os.path.dirname(__file__), "ran"), "a") as file:
    file.write(f"{os.environ.get('WITHIN', 'first')} {os.environ['INTERPOSE']}\\n")
if "WITHIN" not in os.environ:
    subprocess.run([sys.executable, "-c", "pass"], env={**os.environ, "WITHIN": "second"}, check=True)
""")
    done = both("import sitecustomize; print(sitecustomize.__name__)", PYTHONPATH=str(tmp_path / "own"))

    said = (tmp_path / "own" / "ran").read_text().splitlines()
    assert said == ["first 0", "second 0", "first 1", "second 1"]
    assert len(done.experiment.processes) == 2


# --- gevent, and modules that are imported anew


def test_modules_that_were_dropped_are_recorded_when_they_are_imported_again(both):
    need("redis", "requests", "psycopg2", "psycopg", "pymysql", "flask")
    done = both("""
import gc, sys
def work():
    import flask, redis, requests, sqlite3
    one = sqlite3.connect(":memory:")
    one.execute("create table t (x)")
    cursor = one.cursor()
    cursor.execute("insert into t values (1)")
    cursor.execute("select x from t")
    print(list(cursor), one.execute("select 5").fetchone())
    one.close()
    print(redis.Redis(host="127.0.0.1").ping())
    for name in ("psycopg2", "psycopg", "pymysql"):
        made = connect(name)
        print(fetch(made, "select 6"))
        made.close()
    try:
        requests.get("http://127.0.0.1:9/")
    except requests.ConnectionError:
        print("refused")
    shop = flask.Flask("shop")
    shop.route("/")(lambda: "open")
    print(shop.test_client().get("/").text)
for turn in range(2):
    work()
    for name in list(sys.modules):
        if name.partition(".")[0] in DROPPED:
            del sys.modules[name]
    gc.collect()
""".replace("DROPPED", repr([
        "sqlite3", "_sqlite3", "redis", "requests", "urllib3", "psycopg2", "psycopg", "psycopg_binary", "pymysql",
        "flask", "werkzeug", "socket", "_socket", "ssl", "select",
    ])), INTERPOSE_ROWS="each")  # fmt: skip
    found = counts(done)

    assert found["sqlite3.Cursor.__next__"] >= 4
    assert found["redis.Redis.execute_command"] == found["psycopg.Cursor.execute"] == found["sqlite3.connect"] == 2
    assert counts(done, "logic")["flask.Flask.wsgi_app"] == 2
    assert all(count % 2 == 0 for count in found.values()), found


GREEN = """
import gevent, gevent.socket, threading, time
import psycopg2.extensions, redis
from psycopg2 import extensions

def wait(connection, timeout=None):
    while (state := connection.poll()) != extensions.POLL_OK:
        waits = gevent.socket.wait_read if state == extensions.POLL_READ else gevent.socket.wait_write
        waits(connection.fileno(), timeout=timeout)
extensions.set_wait_callback(wait)

def ask(name):
    made = connect(name)
    [found] = fetch(made, "select 7 from pg_sleep(0.2)")
    made.close()
    return found

class Shop:
    guard, recursive = threading.Lock(), threading.RLock()
    def sell(self):
        with self.guard, self.recursive:
            time.sleep(0.05)

for name in ("psycopg2", "psycopg"):
    print([each.value for each in gevent.joinall([gevent.spawn(ask, name) for _ in range(5)])])
print([each.value for each in gevent.joinall([gevent.spawn(store().ping) for _ in range(5)])])
gevent.joinall([gevent.spawn(Shop().sell) for _ in range(3)])
sellers = [threading.Thread(target=Shop().sell) for _ in range(3)]
[seller.start() for seller in sellers]
[seller.join() for seller in sellers]
pool = gevent.get_hub().threadpool
print(pool.apply(sum, ([1, 2],)), Shop.guard.locked())
"""


@pytest.mark.parametrize("how", ["from gevent import monkey; monkey.patch_all()", "-m gevent.monkey"])
def test_greenlets_over_drivers_keep_their_calls_apart(traced, tmp_path, how):
    need("gevent", "psycopg2", "psycopg", "redis")
    if how.startswith("-m"):
        (tmp_path / "green.py").write_text(CONNECT + GREEN)
        program = "import runpy, sys\nsys.argv[1:] = ['green.py']\nrunpy.run_module('gevent.monkey', None, '__main__')"
    else:
        program = how + CONNECT + GREEN
    on, off = traced(program), traced(program, INTERPOSE="0")

    assert (on.stdout, on.stderr, on.returncode) == (off.stdout, off.stderr, 0)
    for name in ("psycopg2.cursor.execute", "psycopg.Cursor.execute"):
        events = on.events(name)
        assert len(events) == 5
        assert all(event.wall_ns >= 200e6 and event.parent == 0 for event in events)
        assert min(event.wall_ns - event.inner_wall_ns for event in events) < 100e6
    assert len(on.events("redis.Redis.execute_command")) == 5


# --- asynchronous code


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_awaits_of_packages_overlap_and_plain_functions_stay_plain(both, loop):
    need("redis", "asyncpg", "psycopg", "httpx", "aiohttp", *(["uvloop"] if loop == "uvloop" else []))
    done = both("""
import asyncio, inspect, sys
import aiohttp.web, asyncpg, httpx, psycopg, redis.asyncio
AT = dict(host="127.0.0.1", user="postgres", password="sesame")

async def answer(request):
    await asyncio.sleep(0.2)
    return aiohttp.web.Response(text="salt")

async def by_asyncpg(number):
    made = await asyncpg.connect(database="test", **AT)
    [row] = await made.fetch("select $1::int as x from pg_sleep(0.2)", number)
    await made.close()
    return row["x"]

async def by_psycopg(number):
    async with await psycopg.AsyncConnection.connect(dbname="test", **AT) as made:
        found = await made.execute("select %s::int from pg_sleep(0.2)", (number,))
        return (await found.fetchone())[0]

async def by_redis(number):
    async with redis.asyncio.Redis(host="127.0.0.1") as made:
        return await made.ping()

async def main():
    shop = aiohttp.web.Application()
    shop.router.add_get("/", answer)
    runner = aiohttp.web.AppRunner(shop)
    await runner.setup()
    await aiohttp.web.TCPSite(runner, "127.0.0.1", 0).start()
    address = "http://127.0.0.1:%d/" % runner.addresses[0][1]
    async with httpx.AsyncClient() as client, aiohttp.ClientSession() as session:
        async def by_aiohttp(number):
            async with session.get(address) as answered:
                return await answered.text()
        async def by_httpx(number):
            return (await client.get(address)).text
        for each in (by_asyncpg, by_psycopg, by_redis, by_httpx, by_aiohttp):
            print(each.__name__, await asyncio.gather(*map(each, range(5))))
        waiting = client.get(address)
        print(inspect.iscoroutine(waiting), inspect.iscoroutine(client.build_request("GET", "/")))
        waiting.close()
    print(inspect.iscoroutinefunction(redis.Redis.execute_command), inspect.isawaitable(store().ping()))
    await runner.cleanup()

if sys.argv[1] == "uvloop":
    import uvloop
    uvloop.run(main())
else:
    asyncio.run(main())
    """, loop)  # fmt: skip
    for name in ("asyncpg.Connection.fetch", "psycopg.AsyncCursor.execute", "httpx.AsyncClient.send"):
        events = done.events(name)
        assert len(events) == 5, name
        assert len({event.task for event in events}) == 5
        assert all(event.wall_ns >= 200e6 and event.cpu_ns < 100e6 and event.parent == 0 for event in events)
        assert min(event.wall_ns - event.inner_wall_ns for event in events) < 100e6
        assert max(event.start_ns for event in events) < min(event.start_ns + event.wall_ns for event in events)


# --- beside others that do the like

AGENTS = {
    "opentelemetry": """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.instrumentation.flask import FlaskInstrumentor
from opentelemetry.instrumentation.psycopg2 import Psycopg2Instrumentor
from opentelemetry.instrumentation.redis import RedisInstrumentor
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.instrumentation.sqlite3 import SQLite3Instrumentor
kept, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
INSTRUMENTORS = SQLite3Instrumentor, Psycopg2Instrumentor, RequestsInstrumentor, RedisInstrumentor, FlaskInstrumentor
def instrument():
    for each in INSTRUMENTORS:
        each().instrument()
def uninstrument():
    for each in INSTRUMENTORS:
        each().uninstrument()
def spans():
    return sorted(span.name for span in kept.get_finished_spans())
""",
    "ddtrace": """
import os
os.environ.update(DD_INSTRUMENTATION_TELEMETRY_ENABLED="false", DD_REMOTE_CONFIGURATION_ENABLED="false",
                  DD_TRACE_STARTUP_LOGS="false", DD_AGENT_PORT="9")
import ddtrace
from ddtrace.trace import TraceFilter, tracer
names = []
class Keep(TraceFilter):
    def process_trace(self, trace):
        names.extend(span.name for span in trace)
tracer.configure(trace_processors=[Keep()])
def instrument():
    ddtrace.patch(sqlite3=True, psycopg=True, requests=True, redis=True, flask=True, raise_errors=True)
def uninstrument():
    pass
def spans():
    return sorted(names)
""",
}
SHOPPING = """
import http.server, threading
def shopping():
    import flask, logging, requests, werkzeug.serving
    one, two = connect("sqlite3"), connect("psycopg2")
    print(fetch(one, "select 1"), fetch(two, "select generate_series(1, 3)"))
    with two.cursor() as cursor:
        cursor.execute("select %s, %s", (1, "two"))
        print(cursor.fetchone())
    two.close()
    three = store()
    print(three.set("agents", "1"), three.get("agents"), three.pipeline().get("agents").delete("agents").execute())
    logging.getLogger("werkzeug").setLevel("ERROR")
    shop = flask.Flask("shop")
    shop.route("/prices")(lambda: "salt")
    server = werkzeug.serving.make_server("127.0.0.1", 0, shop)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    print(requests.get(f"http://127.0.0.1:{server.server_port}/prices").text)
    server.shutdown()
    serving.join()
"""
INSTRUMENTED = ("flask", "psycopg2", "redis", "requests", "sqlite3")
SHOPPED = {
    "sqlite3.Cursor.execute": 1, "psycopg2.cursor.execute": 2, "psycopg2.cursor.fetchone": 1, "psycopg2.connect": 1,
    "redis.Redis.execute_command": 2, "redis.Pipeline.execute": 1,
}  # fmt: skip


@pytest.mark.parametrize("first", ["imports", "agent"])
@pytest.mark.parametrize("agent", AGENTS)
def test_what_another_tracer_has_wrapped_is_wrapped_by_both(both, agent, first):
    need(agent, "flask", "psycopg2", "redis", "requests")
    if agent == "opentelemetry":
        need("opentelemetry.sdk", *(f"opentelemetry.instrumentation.{each}" for each in INSTRUMENTED))
    imports = "import flask, psycopg2, redis, requests, sqlite3\n" if first == "imports" else ""

    done = both(f"{AGENTS[agent]}{imports}instrument()\n{SHOPPING}shopping()\nprint(spans())\nuninstrument()")
    found = counts(done)

    assert {name: found[name] for name in SHOPPED} == SHOPPED
    assert len(done.events("requests.Session.send")) == len(done.events("flask.Flask.wsgi_app")) == 1


def test_clocks_that_stand_still_are_the_programs_alone(both):
    need("freezegun", "redis", "psycopg2")
    done = both("""
import asyncio, datetime, threading, time
import freezegun
with freezegun.freeze_time("2012-01-14 03:21:34") as frozen:
    print(datetime.datetime.now(), time.time(), time.localtime()[:3], time.monotonic() == time.monotonic())
    time.sleep(0.05)
    print(fetch(connect("psycopg2"), "select 1 from pg_sleep(0.05)"), store().ping(), time.time())
    lock = threading.Lock()
    lock.acquire()
    threading.Timer(0, lock.release).start()
    print(lock.acquire())
    frozen.move_to("1969-01-01")
    print(time.time(), fetch(connect("sqlite3"), "select 2"))
print(freezegun.api.real_time is time.time)
@freezegun.freeze_time("2001-01-01", real_asyncio=True)
async def main():
    await asyncio.sleep(0.02)
    return time.time()
print(asyncio.run(main()))
    """)
    [slept] = done.events("time.sleep")
    [asked] = done.events("psycopg2.cursor.execute")

    assert 50e6 <= slept.wall_ns < 10e9
    assert 50e6 <= asked.wall_ns < 10e9
    assert done.experiment.founder.log.start_ns < slept.start_ns


def test_coverage_measures_the_same_to_the_last_and_of_children(tmp_path):
    """Its own database at the end of the program, and of its children, where it has a start-up file of its own."""
    coverage = pytest.importorskip("coverage")
    (tmp_path / "shop.py").write_text(
        "import subprocess, sys\n"
        "def sell(left):\n    if left:\n        return sell(left - 1)\n    return 'sold'\n"
        "if __name__ == '__main__':\n"
        "    if len(sys.argv) == 1:\n        subprocess.run([sys.executable, __file__, 'child'], check=True)\n"
        "    print(sell(3))\n"
    )
    (tmp_path / "settings").write_text("[run]\nparallel = true\nsource = .\npatch = subprocess\n")
    found = {}
    for on in "01":
        data = tmp_path / f"data{on}"
        data.mkdir()
        words = ["coverage", "run", "--rcfile", "settings", "--data-file", f"{data}/it", "shop.py"]
        words = [sys.executable, "-m", *words]
        done = subprocess.run(words, cwd=tmp_path, env=environment(INTERPOSE=on), capture_output=True, text=True)
        kept = [coverage.CoverageData(str(path)) for path in data.iterdir()]
        [each.read() for each in kept]
        lines = sorted(sorted(each.lines(str(tmp_path / "shop.py")) or []) for each in kept)
        found[on] = (done.returncode, done.stdout, done.stderr, lines)

    assert found["1"] == found["0"]
    assert len(found["1"][3]) == 2


def test_who_asks_for_it_twice_is_recorded_once(tmp_path):
    """By `interpose run` and the variable, by a recording within one, and in a child that is told again."""
    need("redis", "psycopg2")
    (tmp_path / "program.py").write_text(CONNECT + """
import os, subprocess, sys
import psycopg2
print(fetch(connect("psycopg2"), "select 1"), store().ping())
if len(sys.argv) == 1:
    words = [sys.executable, "-m", "interpose", "run", sys.executable, __file__, "child"]
    print(subprocess.run(words, env={**os.environ, "INTERPOSE": "1"}, capture_output=True, text=True).stdout)
""")
    words = [sys.executable, "-m", "interpose", "run", sys.executable, "program.py"]
    env = environment(INTERPOSE="1", XDG_STATE_HOME=str(tmp_path / "state"))
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    found = Counter()
    for name in sorted(os.listdir(tmp_path)):
        if name.endswith(".er"):
            for process in Experiment(str(tmp_path / name)).processes:
                found.update(process.intrinsic(each.intrinsic).name for each in events_of(process))

    assert done.stdout.count("[1] True") == 2, done.stderr
    assert found["psycopg2.cursor.execute"] == found["redis.Redis.execute_command"] == 2
