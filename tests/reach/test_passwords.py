"""Passwords in whatever a program connects by, against live servers: none is in any file of the experiment."""

import os
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest
from contents import contents_of
from servers import need_server
from tracing import environment, write_program

pytestmark = [pytest.mark.slow, pytest.mark.reach]

CANARY = "c4n4ryS3same"
HIDDEN = ("c4n4ry%53%33same", "YzRuNHJ5UzNzYW1l", "c4n4ry")  # as a URL has it, in base 64, and a piece of it

# Of each driver, the ways to say where to connect to; all of them with the password, most of them accepted.
DRIVERS = {
    "psycopg2": (
        "postgresql",
        """
import psycopg2
def use(*words, **options):
    with psycopg2.connect(*words, connect_timeout=5, **options) as connection:
        cursor = connection.cursor()
        cursor.execute(f"select 1, '{CANARY}', $${CANARY}$$")
        cursor.execute("select %s", [CANARY])
        cursor.execute(f"create role canary_role password '{CANARY}'")
        connection.rollback()
ways = [
    lambda: use(f"postgresql://postgres:{CANARY}@127.0.0.1:5432/postgres"),
    lambda: use(f"postgres://postgres:{CANARY}@127.0.0.1/postgres?application_name={CANARY}"),
    lambda: use(f"host=127.0.0.1 user=postgres password={CANARY} dbname=postgres"),
    lambda: use(f"host = '127.0.0.1' user = 'postgres' password = '{CANARY}' dbname = 'postgres'"),
    lambda: use(dsn=f"postgresql://127.0.0.1/postgres?user=postgres&password={CANARY}"),
    lambda: use(host="127.0.0.1", user="postgres", password=CANARY, dbname="postgres"),
    lambda: use(dbname=f"postgresql://postgres:{CANARY}@127.0.0.1/postgres"),
    lambda: use(database=f"host=127.0.0.1 user=postgres password={CANARY}"),
    lambda: use(f"postgresql://postgres:{CANARY}@127.0.0.1:5432/not_there"),
    lambda: use(f"postgresql://postgres:{CANARY}@127.0.0.1:9/postgres"),
    lambda: use(f"postgresql://{CANARY}@127.0.0.1/postgres"),
    lambda: use(f"postgresql://postgres:{CANARY}@not a host/postgres"),
    lambda: use(f"password={CANARY} nonsense"),
]
""",
    ),
    "psycopg": (
        "postgresql",
        """
import asyncio, psycopg
def use(*words, **options):
    with psycopg.connect(*words, connect_timeout=5, **options) as connection:
        connection.execute(f"select 1, '{CANARY}'")
        connection.execute("select %s::text", [CANARY])
async def use_async(words):
    async with await psycopg.AsyncConnection.connect(words) as connection:
        await connection.execute(f"select E'{CANARY}'")
ways = [
    lambda: use(f"postgresql://postgres:{CANARY}@127.0.0.1:5432/postgres"),
    lambda: use(f"host=127.0.0.1 user=postgres password={CANARY} dbname=postgres"),
    lambda: use("host=127.0.0.1 user=postgres", password=CANARY, dbname="postgres"),
    lambda: use(dbname=f"postgresql://postgres:{CANARY}@127.0.0.1/postgres"),
    lambda: use(f"postgresql://postgres:{CANARY}@127.0.0.1:9/postgres"),
    lambda: use(f"password={CANARY} nonsense"),
    lambda: asyncio.run(use_async(f"postgresql://postgres:{CANARY}@127.0.0.1/postgres")),
]
""",
    ),
    "asyncpg": (
        "postgresql",
        """
import asyncio, asyncpg
def use(*words, **options):
    async def go():
        connection = await asyncpg.connect(*words, timeout=5, **options)
        await connection.fetch(f"select 1, '{CANARY}'")
        await connection.fetch("select $1::text", CANARY)
        await connection.close()
    asyncio.run(go())
ways = [
    lambda: use(f"postgresql://postgres:{CANARY}@127.0.0.1:5432/postgres"),
    lambda: use(host="127.0.0.1", user="postgres", password=CANARY, database="postgres"),
    lambda: use(f"postgresql://postgres:{CANARY}@127.0.0.1:9/postgres"),
    lambda: use(host="127.0.0.1", user="postgres", database=f"postgresql://postgres:{CANARY}@127.0.0.1/x"),
]
""",
    ),
    "pymysql": (
        "mysql",
        """
import pymysql
def use(**options):
    connection = pymysql.connect(host="127.0.0.1", connect_timeout=5, **options)
    cursor = connection.cursor()
    for sql in (f'select 1, "{CANARY}"', f"select 'it\\\\'s {CANARY}'", f"set @secret = '{CANARY}'",
                f"select 1 from (select '{CANARY}') t where 'a' = \\"{CANARY}\\""):
        cursor.execute(sql)
    cursor.execute("select %s", [CANARY])
    try:
        cursor.execute(f"set password for 'nobody'@'nowhere' = password('{CANARY}')")
    except pymysql.Error:
        pass
    connection.close()
ways = [
    lambda: use(user="root", password="", database="mysql"),
    lambda: use(user="root", password=CANARY),
    lambda: use(user="nobody", password=CANARY, database="mysql"),
    lambda: use(user="root", password="", database=f"mysql://root:{CANARY}@127.0.0.1/mysql"),
    lambda: use(user="root", password="", init_command=f"set @a = '{CANARY}'"),
]
""",
    ),
    "redis": (
        "redis",
        """
import redis
def use(store):
    store.set("canary:password", CANARY)
    store.delete("canary:password")
    store.execute_command("AUTH", "default", CANARY)
ways = [
    lambda: use(redis.Redis(host="127.0.0.1")),
    lambda: use(redis.Redis(host="127.0.0.1", password=CANARY)),
    lambda: use(redis.from_url(f"redis://:{CANARY}@127.0.0.1:6379/0")),
    lambda: use(redis.from_url(f"redis://bob:{CANARY}@127.0.0.1:6379/0")),
    lambda: use(redis.from_url(f"redis://127.0.0.1:6379/0?password={CANARY}")),
    lambda: use(redis.from_url(f"redis://bob:{CANARY}@127.0.0.1:9/0")),
    lambda: redis.Redis(host="127.0.0.1").config_set("requirepass2", CANARY),
    lambda: redis.Redis(host="127.0.0.1").execute_command("HELLO", "3", "AUTH", "bob", CANARY),
    lambda: redis.Redis(host="127.0.0.1").acl_genpass() and redis.Redis(host="127.0.0.1").ping(),
]
""",
    ),
    "confluent_kafka": (
        "",
        """
from confluent_kafka import Consumer, Producer
CLUSTER = Producer({"test.mock.num.brokers": 1})
BROKER = CLUSTER.list_topics(timeout=20).brokers[1]
AT = {"bootstrap.servers": f"{BROKER.host}:{BROKER.port}", "message.timeout.ms": 1000}
def use(**settings):
    producer = Producer({**AT, **settings})
    producer.produce("canary", CANARY, CANARY, headers={"password": CANARY}, on_delivery=lambda error, message: None)
    producer.set_sasl_credentials("bob", CANARY)
    producer.flush(2)
def read():
    reader = Consumer({**AT, "group.id": "readers", "auto.offset.reset": "earliest"})
    reader.subscribe(["canary"])
    assert reader.poll(20).value()
    reader.commit(asynchronous=False)
    reader.close()
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "bob"}
SASL["sasl.password"] = CANARY
ways = [
    lambda: use(),
    lambda: read(),
    lambda: use(**SASL),
    lambda: Producer({"nothing": CANARY}),
    lambda: Producer({**SASL, "bootstrap.servers": f"bob:{CANARY}@127.0.0.1:9"}).list_topics(timeout=1),
]
""",
    ),
    "pika": (
        "rabbitmq",
        """
import pika
def use(parameters):
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    channel.queue_declare("canary-queue", auto_delete=True)
    channel.basic_publish("", "canary-queue", CANARY.encode())
    channel.basic_get("canary-queue", auto_ack=True)
    channel.queue_delete("canary-queue")
    connection.close()
ways = [
    lambda: use(pika.URLParameters("amqp://guest:guest@127.0.0.1:5672/%2F")),
    lambda: use(pika.URLParameters(f"amqp://guest:{CANARY}@127.0.0.1:5672/%2F")),
    lambda: use(pika.ConnectionParameters("127.0.0.1", credentials=pika.PlainCredentials("bob", CANARY))),
]
""",
    ),
    "kombu": (
        "rabbitmq",
        """
import kombu
def use(url):
    with kombu.Connection(url, connect_timeout=5) as connection:
        connection.connect()
        queue = connection.SimpleQueue("canary-simple", queue_opts={"auto_delete": True})
        queue.put({"password": CANARY})
        queue.get(timeout=5).ack()
        queue.close()
ways = [
    lambda: use("amqp://guest:guest@127.0.0.1:5672//"),
    lambda: use(f"amqp://guest:{CANARY}@127.0.0.1:5672//"),
    lambda: use(f"redis://bob:{CANARY}@127.0.0.1:6379/0"),
]
""",
    ),
    "sqlalchemy": (
        "postgresql",
        """
import sqlalchemy
def use(url):
    engine = sqlalchemy.create_engine(url)
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"select '{CANARY}'"))
        connection.execute(sqlalchemy.text("select :secret"), {"secret": CANARY})
ways = [
    lambda: use(f"postgresql+psycopg2://postgres:{CANARY}@127.0.0.1/postgres"),
    lambda: use(f"postgresql+psycopg2://postgres:{CANARY}@127.0.0.1/not_there"),
    lambda: use(f"mysql+pymysql://root:{CANARY}@127.0.0.1/mysql"),
]
""",
    ),
}
RUN = """
done = 0
for way in ways:
    try:
        way()
        done += 1
    except Exception as error:
        assert "canary_" not in type(error).__name__
import subprocess
for words in (["true", f"postgresql://u:{CANARY}@h/d"], ["true", f"--password={CANARY}"], ["true", "-p", CANARY],
              ["true", f"-p{CANARY}"], ["true", f"PGPASSWORD={CANARY}"], ["true", "--dsn", f"password={CANARY}"]):
    subprocess.run(words)
print(done, len(ways) + 6)
"""
SETTINGS = [{}, {"INTERPOSE_CONSOLIDATE": "1"}, {"INTERPOSE_RING": "1MiB"}, {"INTERPOSE": "lines"}]


def files_with(directory: Path):
    """The files of the experiment that the canary is in."""
    needles = [word.encode() for word in (CANARY, *HIDDEN)]
    found = []
    for path in sorted(each for each in directory.rglob("*") if each.is_file()):
        if any(needle in text for text in contents_of(path) for needle in needles):
            found.append(str(path.relative_to(directory)))
    return found


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("settings", SETTINGS, ids=["usual", "consolidated", "ring", "lines"])
def test_no_password_is_in_any_file(tmp_path, tally, driver, settings):
    server, source = DRIVERS[driver]
    if server:
        need_server(server)
    if PathFinder.find_spec(driver) is None:  # other tests have put what stands for one into sys.modules
        pytest.skip(f"{driver} is not installed")
    # Read from the environment: what the program's own source holds, its archive may hold.
    program = write_program(tmp_path, f"import os\nCANARY = os.environ['PASSWORD']\n{source}\n{RUN}")
    own = environment(XDG_STATE_HOME=str(tmp_path / "state"), PASSWORD=CANARY)
    dsn = f"postgresql://bob:{CANARY}@127.0.0.1/db"
    words = [sys.executable, "-m", "interpose", "run", "--", sys.executable, str(program), dsn]

    done = subprocess.run(
        words, cwd=tmp_path, env={**own, "INTERPOSE": "1", **settings}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    used, tried = map(int, done.stdout.splitlines()[-1].split())
    for command in ("report", "events"):  # which may keep what they read
        subprocess.run(
            [sys.executable, "-m", "interpose", command], cwd=tmp_path, env=own, capture_output=True, timeout=120
        )

    assert used
    assert os.path.exists(tmp_path / "test.1.er" / "log.xml")
    found = files_with(tmp_path / "test.1.er") + files_with(tmp_path / "state")
    for _ in range(tried):
        tally.check(not found, f"{driver}: in {found}")
    tally.end()
