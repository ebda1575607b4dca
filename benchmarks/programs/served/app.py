"""A service: an order with its customer and its items, of a database in a file; with or without another tracer."""

import os
import sqlite3
import threading
import time

from flask import Flask, jsonify

ORDERS = 200
DATABASE = os.environ["SERVED_DATABASE"]
app = Flask(__name__)
connections = threading.local()


def make_database() -> None:
    database = sqlite3.connect(DATABASE)
    database.execute("create table if not exists items (order_id integer, product text, pieces integer)")
    if not database.execute("select count(*) from items").fetchone()[0]:
        rows = [(order, f"product {item}", item) for order in range(ORDERS) for item in range(5)]
        database.executemany("insert into items values (?, ?, ?)", rows)
        database.execute("create index of_order on items (order_id)")
        database.commit()
    database.close()


def connection() -> sqlite3.Connection:
    if not hasattr(connections, "one"):
        connections.one = sqlite3.connect(DATABASE)
    return connections.one


@app.get("/orders/<int:number>")
def order(number: int):
    database = connection()
    found = database.execute("select product, pieces from items where order_id = ?", (number % ORDERS,)).fetchall()
    # One statement for each item, its literal formatted in.
    counts = [f"select count(*) from items where product = '{product}'" for product, _ in found]
    ordered = [database.execute(statement).fetchone() for statement in counts]
    return jsonify(number=number, items=found, ordered=ordered)


@app.get("/cpu")
def cpu():
    return str(time.process_time_ns())


def trace_with_opentelemetry() -> None:
    from discarding import trace_to_nowhere
    from opentelemetry.instrumentation.flask import FlaskInstrumentor
    from opentelemetry.instrumentation.sqlite3 import SQLite3Instrumentor

    trace_to_nowhere()
    SQLite3Instrumentor().instrument()
    FlaskInstrumentor().instrument_app(app)


make_database()
if os.environ.get("SERVED_WITH") == "opentelemetry":
    trace_with_opentelemetry()
