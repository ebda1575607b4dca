"""An import that commits each row."""

import sqlite3

database = sqlite3.connect("stock.db")


def save(number):
    database.execute("insert into item values (?, ?)", (number, f"item {number}"))
    database.commit()


database.execute("drop table if exists item")
database.execute("create table item (id integer primary key, name text)")
for number in range(150):
    save(number)
