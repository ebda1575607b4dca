"""A search by a column without an index."""

import sqlite3

database = sqlite3.connect(":memory:")


def orders_of(customer):
    return database.execute("select count(*) from orders where customer = ?", (customer,)).fetchone()


database.execute("create table orders (id integer primary key, customer text)")
numbers = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 400000)"
database.execute(f"insert into orders (customer) {numbers} select 'customer ' || i % 1000 from n")
for number in range(40):
    orders_of(f"customer {number}")
