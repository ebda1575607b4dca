"""Order entry: reads transactions, keeps orders in a database, shows a screen for each and prints receipts.

    python examples/orders.py examples/orders.txt

A transaction is a line, its fields separated by bars; empty lines and lines that begin with # are skipped:

    NEW|customer|item|quantity|price in cents
    PAY|order|amount in cents
    SHOW|order
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from typing import TextIO

WIDTH = 60
PRINTER_SECONDS = 0.002  # the receipt printer takes so long for a line
TABLES = """
CREATE TABLE orders (number INTEGER PRIMARY KEY, customer TEXT, item TEXT, quantity INTEGER, price INTEGER);
CREATE TABLE payments (number INTEGER REFERENCES orders, amount INTEGER);
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
        """Take an order; gives its number."""
        if quantity < 1 or price < 1:
            raise Refused("quantity and price must be above 0")
        values = (customer, item, quantity, price)
        self._cursor.execute("INSERT INTO orders VALUES (NULL, ?, ?, ?, ?)", values)
        self._connection.commit()
        return self._cursor.lastrowid or 0

    def pay(self, number: int, amount: int) -> None:
        """Take a payment for an order."""
        due = self.due(number)
        if amount > due:
            raise Refused(f"only {money(due)} is due")
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

    def totals(self) -> tuple[int, int, int]:
        """How many orders there are, what they are worth and what was paid, in cents."""
        query = "SELECT COUNT(*), COALESCE(SUM(quantity * price), 0) FROM orders"
        count, worth = self._cursor.execute(query).fetchone()
        (paid,) = self._cursor.execute("SELECT COALESCE(SUM(amount), 0) FROM payments").fetchone()
        return count, worth, paid


def money(cents: int) -> str:
    """An amount as people write it: 1,234.50."""
    return f"{cents // 100:,}.{cents % 100:02}"


def screen(orders: Orders, number: int) -> list[str]:
    """The lines that show an order, the item's description broken to the width of the screen."""
    customer, item, quantity, price = orders.get(number)
    described = textwrap.wrap(item, WIDTH - 12) or [""]
    lines = [f"{'order':<12}{number}", f"{'customer':<12}{customer}", f"{'item':<12}{described[0]}"]
    lines += [f"{'':<12}{line}" for line in described[1:]]
    lines.append(f"{'price':<12}{quantity:>6} x {money(price):>10} = {money(quantity * price):>12}")
    return [*lines, f"{'due':<12}{money(orders.due(number)):>34}", "-" * WIDTH]


def show(lines: list[str]) -> None:
    """Write lines to the screen at once."""
    os.write(sys.stdout.fileno(), "".join(f"{line}\n" for line in lines).encode())


def print_receipt(number: int, amount: int) -> None:
    """Have the printer print a receipt, which is as slow as the printer."""
    for line in ("RECEIPT", f"order {number}", money(amount)):
        show([f"| {line:^{WIDTH - 4}} |"])
        time.sleep(PRINTER_SECONDS)


def enter(orders: Orders, transaction: str) -> None:
    """Carry out one transaction and show the answer; what is refused is said in a line."""
    verb, *fields = transaction.split("|")
    try:
        match verb, fields:
            case "NEW", [customer, item, quantity, price]:
                show(screen(orders, orders.add(customer, item, int(quantity), int(price))))
            case "PAY", [number, amount]:
                orders.pay(int(number), int(amount))
                print_receipt(int(number), int(amount))
            case "SHOW", [number]:
                show(screen(orders, int(number)))
            case _:
                raise Refused("no such transaction")
    except (Refused, ValueError) as error:
        show([f"refused: {transaction}: {error}"])


def transactions(lines: TextIO) -> Iterator[str]:
    """The transactions among lines."""
    for line in lines:
        if line.strip() and not line.startswith("#"):
            yield line.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description="Enter orders, one transaction a line.")
    parser.add_argument("file", nargs="?", type=argparse.FileType("r"), default=sys.stdin)
    parser.add_argument("--database", metavar="FILE", help="a new database to keep the orders in")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        orders = Orders(arguments.database or os.path.join(directory, "orders.db"))
        for transaction in transactions(arguments.file):
            enter(orders, transaction)
        count, worth, paid = orders.totals()
        show([f"{count} orders, worth {money(worth)}, paid {money(paid)}"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
