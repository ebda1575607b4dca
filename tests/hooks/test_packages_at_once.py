"""Packages used by threads, greenlets, coroutines and finalizers at once."""

import json

import pytest
from edges import CONNECT, counts, need

pytestmark = [pytest.mark.packages, pytest.mark.xdist_group("servers")]


def details(done, name):
    process = done.experiment.founder
    return [process.string(event.detail) for event in done.events(name)]


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
