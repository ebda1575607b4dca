"""The programs that pages show, beside the example of the README."""

JOB = """\
import sqlite3
import sys
import time

db = sqlite3.connect(":memory:")
db.execute("create table orders (number integer)")


def fetch_prices(times):
    for _ in range(times):
        time.sleep(0.002)


def store(orders):
    for number in range(orders):
        db.execute("insert into orders values (?)", (number,))


fetch_prices(int(sys.argv[1]))
store(2000)
"""

PEAK = """\
def index(words):
    return {word: str(number) for number, word in enumerate(words)}


def load():
    return [f"line {number}" for number in range(200_000)]


def pages():
    return [bytearray(1 << 20) for _ in range(20)]


kept = index(load())
kept_pages = pages()
"""

COMMITS = """\
import sqlite3

db = sqlite3.connect("commits.db")
db.execute("create table orders (number integer)")


def store(number):
    db.execute("insert into orders values (?)", (number,))
    db.commit()


for number in range(20):
    store(number)
"""

PAGES = """\
import mmap
import threading
import time


def touch(pages):
    area = mmap.mmap(-1, 4096 * pages)
    area.madvise(mmap.MADV_NOHUGEPAGE)
    for place in range(0, len(area), 4096):
        area[place] = 1
    return area


def wait(times):
    for _ in range(times):
        time.sleep(0.001)


def compute(until):
    while time.thread_time() < until:
        pass


compute(0.2)
waiter = threading.Thread(target=wait, args=(400,), name="waiter")
waiter.start()
kept = touch(50_000)
waiter.join()
"""
PIPE = """\
import gzip
import subprocess

with gzip.open("orders.gz", "wt") as file:
    file.writelines(f"order {number}\\n" for number in range(50_000))
subprocess.run("gzip -dc orders.gz | wc -l", shell=True, stdout=subprocess.DEVNULL, check=True)
"""

SERVED = """\
import sqlite3
import subprocess
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer


class Prices(BaseHTTPRequestHandler):
    def do_GET(self):
        db = sqlite3.connect("prices.db")
        db.execute("create table if not exists prices (item text, cents integer)")
        db.execute("insert into prices values ('tea', 250)")
        db.commit()
        db.close()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"250")

    def log_message(self, *words):
        pass


def serve():
    server = HTTPServer(("127.0.0.1", 0), Prices)
    print(server.server_port, flush=True)
    for _ in range(3):
        server.handle_request()


def buy():
    with subprocess.Popen([sys.executable, "shop.py", "serve"], stdout=subprocess.PIPE, text=True) as service:
        port = service.stdout.readline().strip()
        for item in ("tea", "milk", "sugar"):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{item}") as answer:
                answer.read()


serve() if sys.argv[1:] else buy()
"""

CELLS = [
    "%load_ext interpose.ipython",
    "import time\n\ndef load(number):\n    time.sleep(0.01 * number)",
    "%%interpose\nfor number in range(4):\n    load(number)",
]
RUN_CELLS = (
    "from IPython.core.interactiveshell import InteractiveShell; shell = InteractiveShell.instance(); "
    "[shell.run_cell(cell, store_history=True) for cell in eval(open(sys.argv[1]).read())]"
)
