"""The program of the experiments here: a little of everything that can be recorded."""

import os
import sqlite3
import threading
import time

try:
    from interpose import transaction
except ImportError:
    from contextlib import nullcontext as transaction


def note(name: str, texts: list[str]) -> None:
    with open(name, "wb") as file:
        for text in texts:
            os.write(file.fileno(), text.encode())


def enter(base: sqlite3.Connection, customer: str, amount: int) -> None:
    base.cursor().execute("INSERT INTO orders (customer, amount) VALUES (?, ?)", (customer, amount))
    base.commit()


def doubled(number: int) -> int:
    total = 0
    for _ in range(number):
        total += 2
    return total


def work(name: str) -> None:
    note(f"{name}.txt", ["one\n", "two\n"])
    time.sleep(0.001)


def main() -> None:
    base = sqlite3.connect("orders.db")
    base.create_function("doubled", 1, lambda number: (time.sleep(0), doubled(number))[1])
    base.cursor().execute("CREATE TABLE orders (customer TEXT, amount INTEGER)")
    for amount in (3, 5, 8):
        with transaction("enter"):
            enter(base, "somebody", amount)
    base.cursor().execute("SELECT doubled(amount) FROM orders").fetchall()
    try:
        base.cursor().execute("SELECT * FROM nowhere")
    except sqlite3.OperationalError:
        pass
    base.close()
    threads = [threading.Thread(target=work, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
        thread.join()
    child = os.fork()
    if not child:
        note("child.txt", ["three\n"])
        os._exit(0)
    os.waitpid(child, 0)


main()
