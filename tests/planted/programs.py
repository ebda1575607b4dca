"""Small programs, each slow for one cause that is known, and others that are slow for none.

A program's source has a comment `# cause: RULE` at each line that makes the calls, or a line of its own where the cause
is no line. Several rules may be right, with `|` between them. Programs without such a comment have no cause.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SHOP = """
import os, sqlite3, time
if os.path.exists("shop.db"):
    os.unlink("shop.db")
db = sqlite3.connect("shop.db", isolation_level=None)
db.executescript('''pragma synchronous=off; create table customer (id integer primary key, name text);
    create table orders (id integer primary key, customer int, paid int)''')
db.execute("begin")
db.executemany("insert into customer values (?, ?)", [(n, f"name {n}") for n in range(500)])
db.executemany("insert into orders values (?, ?, 0)", [(n, n % 500) for n in range(2000)])
db.execute("commit")
"""
SERVER = """
import socket, threading, time, http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_address[1]}/"
"""

LOOP = """
import asyncio, sqlite3, subprocess, threading, time
async def others(turns=40):
    for _ in range(turns):
        await asyncio.sleep(0.02)
async def beside(*tasks):
    await asyncio.gather(*tasks, *[others() for _ in range(5)])
"""
POSTGRESQL = """
import asyncio, asyncpg
async def connected():
    return await asyncpg.connect(host="127.0.0.1", user="postgres", database="test")
"""

SLOW = {
    "a customer for each order": SHOP
    + """
def customer_of(number):
    return db.execute("select name from customer where id = ?", (number,)).fetchone()  # cause: N+1 statements
for _ in range(10):
    names = [customer_of(customer) for _, customer, _ in db.execute("select * from orders").fetchall()]
""",
    "a customer for each order, in a transaction": SHOP
    + """
from interpose import transaction
for _ in range(20):
    with transaction("list"):
        for number in range(500):
            db.execute("select name from customer where id = ?", (number,)).fetchone()  # cause: N+1 statements
""",
    "an update for each order": SHOP
    + """
db.execute("begin")
for number in range(20000):
    db.execute("update orders set paid = 1 where id = ?", (number % 2000,))  # cause: N+1 statements
db.execute("commit")
""",
    "an update for each customer's order, by two lines": SHOP
    + """
def pay(number):
    db.execute("update orders set paid = paid + 1 where customer = ?", (number,))  # cause: N+1 statements
db.execute("begin")
for number in range(500):
    pay(number)
db.execute("commit")
""",
    "commits one by one": SHOP
    + """
db.execute("pragma synchronous=full")
for number in range(200):
    db.execute("begin")
    db.execute("insert into orders values (?, 1, 0)", (5000 + number,))
    db.commit()  # cause: commits one by one
""",
    "several commits in each transaction": SHOP
    + """
from interpose import transaction
db.execute("pragma synchronous=full")
for number in range(30):
    with transaction("pay"):
        for part in range(4):
            db.execute("begin")
            db.execute("insert into orders values (?, 1, 0)", (5000 + 10 * number + part,))
            db.commit()  # cause: commits one by one
""",
    "a connection for each statement": SHOP
    + """
def ask(number):
    connection = sqlite3.connect("shop.db")  # cause: reconnects
    connection.execute("select name from customer where id = ?", (number,)).fetchone()
    connection.close()
for number in range(500):
    ask(number)
""",
    "a connection for each request": SERVER
    + """
for _ in range(300):
    connection = socket.create_connection(server.server_address)  # cause: reconnects | slow calls
    connection.close()
""",
    "a connection for each page": SERVER
    + """
import http.client
def page():
    connection = http.client.HTTPConnection(*server.server_address)
    connection.request("GET", "/")  # cause: reconnects
    connection.getresponse().read()
    connection.close()
for _ in range(300):
    page()
""",
    "one byte at a time written": """
import os
file = os.open("out", os.O_WRONLY | os.O_CREAT)
for _ in range(100_000):
    os.write(file, b"x")  # cause: tiny reads and writes
""",
    "one byte at a time read": """
open("in", "wb").write(bytes(100_000))
file = open("in", "rb", buffering=0)
while file.read(1):  # cause: tiny reads and writes
    pass
""",
    "lines flushed one by one": """
with open("out", "w") as file:
    for number in range(50_000):
        file.write(f"line {number}\\n")
        file.flush()  # cause: tiny reads and writes
""",
    "fsync after each line": """
import os
file = os.open("out", os.O_WRONLY | os.O_CREAT)
for number in range(200):
    os.write(file, b"x" * 600)
    os.fsync(file)  # cause: fsync storm
""",
    "fdatasync after each record": """
import os
file = os.open("out", os.O_WRONLY | os.O_CREAT)
def save(record):
    os.write(file, record)
    os.fdatasync(file)  # cause: fsync storm
for number in range(200):
    save(b"x" * 600)
""",
    "a configuration read again and again": """
open("app.ini", "w").write("a = 1\\n" * 10)
def setting():
    with open("app.ini") as file:  # cause: repeated work
        return file.read()
for _ in range(3000):
    setting()
""",
    "a path looked for again and again": """
import os
for _ in range(100_000):
    os.path.exists("/etc/no-such-file.conf")  # cause: repeated work
""",
    "a directory listed again and again": """
import os
for number in range(300):
    open(f"file{number}", "w").close()  # cause: slow calls
for _ in range(500):
    os.listdir("/usr/lib")  # cause: repeated work
""",
    "the same question without parameters": SHOP
    + """
for _ in range(300):
    db.execute("select count(*), sum(paid) from orders").fetchone()  # cause: repeated work | N+1 statements
""",
    "a slow statement": SHOP
    + """
for _ in range(3):
    pairs = "select count(*) from orders a, orders b where a.id * b.id % ? = 1"
    db.execute(pairs, (7,)).fetchone()  # cause: slow statement
""",
    "a slow statement whose rows are slow": SHOP
    + """
for _ in range(4):
    numbers = "with recursive n(i) as (select ? union all select i + 1 from n where i < 400000) select i from n"
    db.execute(numbers, (1,)).fetchall()  # cause: slow statement
""",
    "polling": """
import time
for _ in range(50):
    time.sleep(0.01)  # cause: slow calls
""",
    "a slow service": SERVER
    + """
class Handler(Handler):
    def do_GET(self):
        time.sleep(0.1)  # cause: sleep within a transaction
        super().do_GET()
server.RequestHandlerClass = Handler
import urllib.request
for _ in range(5):
    urllib.request.urlopen(url).read()  # cause: slow calls
""",
    "a slow pipe": """
import os, time
ours, theirs = os.pipe()
if os.fork() == 0:
    for _ in range(5):
        time.sleep(0.1)  # cause: slow calls
        os.write(theirs, b"x")
    os._exit(0)
for _ in range(5):
    os.read(ours, 1)  # cause: slow calls | child processes
os.wait()
""",
    "a lock held over sleeps": """
import threading, time
lock = threading.Lock()
def work():
    for _ in range(30):
        with lock:  # cause: lock convoy
            time.sleep(0.003)  # cause: slow calls
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
""",
    "two locks in opposite order": """
import threading, time
first, second = threading.Lock(), threading.Lock()
def pay(one, other):
    with one:
        time.sleep(0.05)
        with other:  # cause: deadlock
            pass
for pair in ((first, second), (second, first)):
    threading.Thread(target=pay, args=pair, daemon=True).start()
time.sleep(0.6)  # cause: slow calls
""",
    "a few connections for many threads": """
import threading, time
few = threading.Semaphore(2)
def work():
    for _ in range(15):
        few.acquire()  # cause: waits for a turn
        time.sleep(0.004)  # cause: slow calls
        few.release()
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
""",
    "a lock held over statements": SHOP
    + """
import threading
lock = threading.Lock()
def work():
    own = sqlite3.connect("shop.db")
    for _ in range(20):
        with lock:  # cause: lock convoy
            pairs = "select count(*) from orders a, customer b where a.id * b.id % ? = 1"
            own.execute(pairs, (7,)).fetchone()  # cause: slow statement
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
""",
    "sleeping while a user waits": """
import time
from interpose import transaction
for _ in range(10):
    with transaction("pay"):
        time.sleep(0.05)  # cause: sleep within a transaction
""",
    "a child process": """
import subprocess
subprocess.run(["sleep", "0.5"], check=True)  # cause: child processes
""",
    "many child processes": """
import subprocess
for _ in range(60):
    subprocess.run(["true"], check=True)  # cause: child processes
""",
    "the output of a child process": """
import subprocess
def listing():
    return subprocess.run("sleep 0.5; echo done", shell=True, capture_output=True).stdout  # cause: child processes
listing()
""",
    "a child process by the C library": """
import os
os.system("sleep 0.5")  # cause: child processes
""",
    "a pool of processes": """
import multiprocessing, time
if __name__ == "__main__":
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(0.6,))
    child.start()  # cause: slow calls
    child.join()  # cause: child processes
""",
    "a loop": """
total = 0
for number in range(6_000_000):
    total += number * number % 7
# cause: computing
""",
    "parsing": """
import json
text = json.dumps([{"name": "x" * 20, "number": n} for n in range(20_000)])
for _ in range(25):
    json.loads(text)
# cause: computing
""",
    "threads that compute": """
import threading
def work():
    for _ in range(8):
        sum([n * n for n in range(300_000)])
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
# cause: lock convoy | wait for CPU
""",
    "a sleep in a coroutine": LOOP
    + """
async def handle():
    for _ in range(5):
        await asyncio.sleep(0.01)
        time.sleep(0.1)  # cause: blocked event loop
asyncio.run(beside(handle()))
""",
    "a child process in a coroutine": LOOP
    + """
async def convert():
    await asyncio.sleep(0.01)
    subprocess.run(["sleep", "0.4"], check=True)  # cause: blocked event loop
asyncio.run(beside(convert()))
""",
    "a slow statement in a coroutine": LOOP
    + """
db = sqlite3.connect(":memory:")
async def ask():
    for _ in range(3):
        await asyncio.sleep(0.01)
        many = "with recursive n(i) as (select ? union all select i + 1 from n where i < 2000000) select sum(i) from n"
        db.execute(many, (1,)).fetchone()  # cause: blocked event loop
asyncio.run(beside(ask()))
""",
    "a request in a coroutine": SERVER
    + LOOP
    + """
class Handler(Handler):
    def do_GET(self):
        time.sleep(0.15)  # cause: sleep within a transaction
        super().do_GET()
server.RequestHandlerClass = Handler
import urllib.request
async def ask():
    for _ in range(3):
        await asyncio.sleep(0.01)
        urllib.request.urlopen(url).read()  # cause: blocked event loop
asyncio.run(beside(ask()))
""",
    "a lock in a coroutine": LOOP
    + """
lock = threading.Lock()
def hold():
    with lock:
        time.sleep(0.4)  # cause: slow calls
async def update():
    await asyncio.sleep(0.05)
    with lock:  # cause: blocked event loop
        pass
threading.Thread(target=hold).start()
asyncio.run(beside(update()))
""",
    "code in a coroutine": LOOP
    + """
async def count():
    for _ in range(4):
        await asyncio.sleep(0.01)  # cause: blocked event loop
        sum(number * number % 7 for number in range(1_500_000))
asyncio.run(beside(count()))
""",
    "a customer for each order, awaited": POSTGRESQL
    + """
async def customer_of(db, number):
    return await db.fetchrow("select $1::int, pg_sleep(0.002)", number)  # cause: awaits one by one
async def listing():
    db = await connected()
    for number in range(150):
        await customer_of(db, number)
asyncio.run(listing())
""",
    "a request for each customer, awaited": SERVER
    + """
class Handler(Handler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        time.sleep(0.005)  # cause: sleep within a transaction
        super().do_GET()
server.RequestHandlerClass = Handler
import asyncio, httpx
async def listing():
    async with httpx.AsyncClient() as client:
        for number in range(100):
            await client.get(f"{url}customers/{number}")  # cause: awaits one by one
asyncio.run(listing())
""",
    "waiting in a library of C": """
import ctypes
ctypes.CDLL(None).usleep(600_000)
# cause: unexplained wait
""",
}

PLAIN = {
    "nothing": "",
    "a file read": """
with open(__file__) as file:
    file.read()
""",
    "files written": """
for number in range(8):
    with open(f"out{number}", "wb") as file:
        file.write(bytes(10_000))
""",
    "different files read": """
import os
for number in range(50):
    with open(f"f{number}", "w") as file:
        file.write("x" * 5000)
for number in range(50):
    with open(f"f{number}") as file:
        file.read()
""",
    "rows inserted at once": SHOP,
    "different statements": SHOP
    + """
for column in ("id", "customer", "paid"):
    db.execute(f"select max({column}) from orders").fetchone()
""",
    "one commit": SHOP
    + """
db.execute("begin")
db.execute("insert into orders values (9999, 1, 0)")
db.commit()
""",
    "a quick request": SERVER
    + """
import http.client
connection = http.client.HTTPConnection(*server.server_address)
connection.request("GET", "/")
connection.getresponse().read()
""",
    "threads that take turns": """
import queue, threading
todo = queue.Queue()
def work():
    while todo.get() is not None:
        pass
threads = [threading.Thread(target=work) for _ in range(2)]
[thread.start() for thread in threads]
for number in range(200):
    todo.put(number)
for _ in threads:
    todo.put(None)
[thread.join() for thread in threads]
""",
    "text printed": """
for number in range(2000):
    print("line", number)
""",
    "many coroutines": LOOP
    + """
asyncio.run(beside(*[others(3) for _ in range(200)]))
""",
    "blocking calls in an executor": LOOP
    + """
async def handle():
    await asyncio.to_thread(time.sleep, 0.2)
asyncio.run(beside(handle(), handle()))
""",
    "a coroutine that sleeps while nobody waits": """
import asyncio, time
async def main():
    time.sleep(0.02)
    await asyncio.sleep(0.3)
asyncio.run(main())
""",
    "statements awaited together": POSTGRESQL
    + """
async def one(number):
    db = await connected()
    await db.fetchrow("select $1::int", number)
    await db.close()
async def listing():
    await asyncio.gather(*[one(number) for number in range(6)])
asyncio.run(listing())
""",
    "data sorted": """
import random
sorted(random.Random(1).random() for _ in range(20_000))
""",
}


@dataclass(frozen=True)
class Program:
    """A program and its causes: a rule that names it, and the line; 0 where it is no line."""

    name: str
    source: str
    causes: frozenset[tuple[str, int]]

    @property
    def packages(self) -> list[str]:
        """What must be installed for it."""
        return [name for name in ("asyncpg", "httpx") if re.search(rf"^import.* {name}", self.source, re.MULTILINE)]

    @property
    def server(self) -> tuple[str, int] | None:
        """The server that must run."""
        return ("127.0.0.1", 5432) if "asyncpg" in self.packages else None


def program(name: str, source: str) -> Program:
    """The program, with what its comments say."""
    causes = []
    for number, line in enumerate(source.splitlines(), 1):
        if found := re.search(r"# cause: (.+)", line):
            causes += [(rule, number if found.start() else 0) for rule in found[1].split(" | ")]
    return Program(name, source, frozenset(causes))


PROGRAMS = [program(name, source) for name, source in (SLOW | PLAIN).items()]
