"""What broke other tracers: each case with the packages that it was met with, and as it is without us."""

import pytest
from edges import CONNECT, counts, need

pytestmark = [pytest.mark.packages, pytest.mark.xdist_group("servers")]


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
