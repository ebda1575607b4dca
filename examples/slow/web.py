"""A web application that reads 400 orders, and then the customer of each by a query of its own."""

import sqlite3

import flask

PAGES = 200
app = flask.Flask("shop")
database = sqlite3.connect("shop.db")


def customer_of(number):
    return database.execute("select name from customer where id = ?", (number,)).fetchone()[0]


@app.route("/orders")
def orders():
    numbers = [number for (number,) in database.execute("select customer from orders")]
    return {number: customer_of(number) for number in numbers}


database.execute("create table customer (id integer primary key, name text)")
database.execute("create table orders (customer integer)")
database.executemany("insert into customer values (?, ?)", [(n, f"customer {n}") for n in range(400)])
database.executemany("insert into orders values (?)", [(n,) for n in range(400)])
database.commit()
client = app.test_client()
for _ in range(PAGES):
    client.get("/orders")
