"""Order entry: takes transactions, keeps orders in a database, shows a screen for each and prints receipts.

    python examples/orders.py examples/orders.txt    a file of transactions
    … | python examples/orders.py                    the same from a pipe
    python examples/orders.py                        at a terminal: a menu, and a form for each transaction

In a file a transaction is a line, its fields separated by bars; empty lines and lines that begin with # are skipped:

    NEW|customer|item|quantity|price in cents
    PAY|order|amount in cents
    SHOW|order

With `--database shop.db` the orders stay in shop.db, and shop.db.log has a line for each transaction. Without it both
lie in a temporary directory and are gone at the end, so that the same input always gives the same screens.
"""

from __future__ import annotations

import argparse
import logging
import os
import sqlite3
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from typing import TextIO

FORMS = {
    "NEW": ("customer", "item", "quantity", "price in cents"),
    "PAY": ("order", "amount in cents"),
    "SHOW": ("order",),
}
CREDIT_LIMIT = 500_000  # cents that a customer may owe
PRINTER_SECONDS = 0.002  # the receipt printer takes so long for a line
WIDTH = 60
LABEL = 16
CLEAR = "\033[H\033[2J"
TABLES = """
CREATE TABLE IF NOT EXISTS orders (
    number INTEGER PRIMARY KEY, customer TEXT, item TEXT, quantity INTEGER, price INTEGER
);
CREATE TABLE IF NOT EXISTS payments (number INTEGER REFERENCES orders, amount INTEGER);
"""


class Refused(Exception):
    """Why a transaction is not carried out."""


class Orders:
    """The orders, each with its item and what was paid."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path)
        self._connection.executescript(TABLES)
        self._cursor = self._connection.cursor()

    def add(self, customer: str, item: str, quantity: int, price: int) -> int:
        """Take an order of a customer whose credit allows it; gives its number."""
        if not customer or not item:
            raise Refused("customer and item are needed")
        if quantity < 1 or price < 1:
            raise Refused("quantity and price must be above 0")
        owed = self.owed(customer) + quantity * price
        if owed > CREDIT_LIMIT:
            raise Refused(f"{customer} would owe {money(owed)}, the limit is {money(CREDIT_LIMIT)}")
        values = (customer, item, quantity, price)
        self._cursor.execute("INSERT INTO orders VALUES (NULL, ?, ?, ?, ?)", values)
        self._connection.commit()
        return self._cursor.lastrowid or 0

    def pay(self, number: int, amount: int) -> None:
        """Take a payment for an order."""
        due = self.due(number)
        if not 0 < amount <= due:
            raise Refused(f"{money(due)} is due")
        self._cursor.execute("INSERT INTO payments VALUES (?, ?)", (number, amount))
        self._connection.commit()

    def get(self, number: int) -> tuple[str, str, int, int]:
        """Customer, item, quantity and price of an order."""
        query = "SELECT customer, item, quantity, price FROM orders WHERE number = ?"
        found: tuple[str, str, int, int] | None = self._cursor.execute(query, (number,)).fetchone()
        if found is None:
            raise Refused(f"there is no order {number}")
        return found

    def due(self, number: int) -> int:
        """What is still to be paid of an order, in cents."""
        _, _, quantity, price = self.get(number)
        query = "SELECT COALESCE(SUM(amount), 0) FROM payments WHERE number = ?"
        (paid,) = self._cursor.execute(query, (number,)).fetchone()
        return quantity * price - int(paid)

    def owed(self, customer: str) -> int:
        """What is still to be paid of all orders of a customer, in cents."""
        query = "SELECT number FROM orders WHERE customer = ?"
        numbers = [number for (number,) in self._cursor.execute(query, (customer,)).fetchall()]
        return sum(self.due(number) for number in numbers)

    def totals(self) -> tuple[int, int, int]:
        """How many orders there are, what they are worth and what was paid, in cents."""
        query = "SELECT COUNT(*), COALESCE(SUM(quantity * price), 0) FROM orders"
        count, worth = self._cursor.execute(query).fetchone()
        (paid,) = self._cursor.execute("SELECT COALESCE(SUM(amount), 0) FROM payments").fetchone()
        return count, worth, paid


def money(cents: int) -> str:
    """An amount as people write it: 1,234.50."""
    return f"{cents // 100:,}.{cents % 100:02}"


def number_in(field: str) -> int:
    """The whole number that a field holds."""
    if not (field.isascii() and field.isdigit() and len(field) < 10):
        raise Refused(f"{field!r} is no number of up to nine digits")
    return int(field)


def show_order(orders: Orders, number: int) -> None:
    """Show an order, the item's description broken to the width of the screen."""
    customer, item, quantity, price = orders.get(number)
    described = textwrap.wrap(item, WIDTH - LABEL)
    print(f"{'order':<{LABEL}}{number}")
    print(f"{'customer':<{LABEL}}{customer}")
    print(f"{'item':<{LABEL}}{described[0]}")
    for line in described[1:]:
        print(f"{'':<{LABEL}}{line}")
    print(f"{'price':<{LABEL}}{quantity:>6} x {money(price):>10} = {money(quantity * price):>12}")
    print(f"{'due':<{LABEL}}{money(orders.due(number)):>34}")
    print("-" * WIDTH)


def print_receipt(number: int, amount: int) -> None:
    """Have the printer print a receipt, which is as slow as the printer."""
    for line in ("RECEIPT", f"order {number}", money(amount)):
        print(f"| {line:^{WIDTH - 4}} |")
        time.sleep(PRINTER_SECONDS)


def carry_out(orders: Orders, transaction: list[str]) -> int:
    """Carry out one transaction and show the answer; gives the number of its order."""
    match transaction:
        case ["NEW", customer, item, quantity, price]:
            number = orders.add(customer, item, number_in(quantity), number_in(price))
            show_order(orders, number)
        case ["PAY", order, amount]:
            number = number_in(order)
            orders.pay(number, number_in(amount))
            print_receipt(number, number_in(amount))
        case ["SHOW", order]:
            number = number_in(order)
            show_order(orders, number)
        case _:
            raise Refused("no such transaction")
    return number


def enter(orders: Orders, transaction: list[str]) -> None:
    """Carry out one transaction and log it; what is refused is said in a line."""
    entered = "|".join(transaction)
    try:
        number = carry_out(orders, transaction)
    except Refused as reason:
        print(f"refused: {entered}: {reason}")
        logging.warning("refused: %s: %s", entered, reason)
    else:
        logging.info("order %d: %s", number, entered)


def read(lines: TextIO) -> Iterator[list[str]]:
    """The transactions among lines."""
    for line in lines:
        if line.strip() and not line.startswith("#"):
            yield [field.strip() for field in line.split("|")]


def draw(title: str) -> None:
    """Clear the screen and draw its head."""
    print(f"{CLEAR}ORDER ENTRY {title:>{WIDTH - 12}}\n{'-' * WIDTH}")


def ask(title: str) -> Iterator[list[str]]:
    """The transactions that are typed at the terminal; the answer to each comes on a fresh screen."""
    draw(title)
    try:
        while (verb := input(f"{', '.join(FORMS)} or QUIT: ").strip().upper()) != "QUIT":
            fields = [input(f"{label:<{LABEL}}").strip() for label in FORMS.get(verb, ())]
            draw(title)
            if verb:
                yield [verb, *fields]
    except (EOFError, KeyboardInterrupt):
        print()


def run(file: TextIO, database: str, title: str) -> None:
    """Enter every transaction of a file, or whatever is typed where it is a terminal."""
    orders = Orders(database)
    logging.basicConfig(
        filename=f"{database}.log", encoding="utf-8", level=logging.INFO, format="%(asctime)s %(message)s"
    )
    typed = file is sys.stdin and file.isatty() and sys.stdout.isatty()
    for transaction in ask(title) if typed else read(file):
        enter(orders, transaction)
    count, worth, paid = orders.totals()
    print(f"{count} orders, worth {money(worth)}, paid {money(paid)}")


def main() -> str | None:
    """Give None, or what went wrong."""
    parser = argparse.ArgumentParser(description="Enter orders from a file, a pipe or the terminal.")
    parser.add_argument("file", nargs="?", help="transactions, one a line (default: standard input)")
    parser.add_argument("--database", metavar="FILE", help="keep the orders in FILE, a log in FILE.log")
    arguments = parser.parse_args()
    try:
        with (
            tempfile.TemporaryDirectory() as directory,
            open(arguments.file, encoding="utf-8") if arguments.file else sys.stdin as file,
        ):
            database = arguments.database or os.path.join(directory, "orders.db")
            run(file, database, arguments.database or "nothing is kept")
    except UnicodeError:
        return f"orders.py: {arguments.file or 'standard input'}: this is not text in UTF-8"
    except OSError as error:
        return f"orders.py: {error.filename or 'the screen'}: {error.strerror}"
    except sqlite3.Error as error:
        return f"orders.py: {arguments.database or 'the database'}: {error}"
    return None


if __name__ == "__main__":
    sys.exit(main())
