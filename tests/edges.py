"""What the tests of edge cases run their programs with."""

from collections import Counter

import pytest
from servers import need_server
from tracing import events_of

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


def counts(done, kind="db"):
    """How many events there are of each intrinsic of a kind, over all processes."""
    found = Counter()
    for process in done.experiment.processes:
        for event in events_of(process):
            if process.intrinsic(event.intrinsic).kind == kind:
                found[process.intrinsic(event.intrinsic).name] += 1
    return found
