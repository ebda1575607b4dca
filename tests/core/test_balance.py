"""The balance of a web request: what its calls took by kind, and its own work, are its wall time as others saw it."""

import json
from collections import defaultdict

import pytest
from servers import need_server

pytestmark = [pytest.mark.every_python, pytest.mark.packages, pytest.mark.alone, pytest.mark.xdist_group("servers")]

KINDS = {"db", "net", "file", "sync", "sleep", "logic"}
TIMED = ("file", "sleep", "sync", "net")
REQUESTS, FIRST = 15, 3  # the first ones import what they need
SHARE = 0.01

# Asked by the shop for prices; it takes its time.
PRICES = """
import http.server, time

class Prices(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.06)
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"12.50")

    def log_message(self, *given):
        pass

with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Prices) as server:
    print(server.server_port, flush=True)
    server.serve_forever()
"""

# Writes down beside each request what it saw of it: in the handler around what takes time, and around all of it.
SHOP = """
import json, os, sys, threading, time
import flask, requests
from sqlalchemy import create_engine, text

sys.setswitchinterval(0.0005)  # or what is timed waits for other threads' Python for longer than it takes
engine = create_engine(os.environ["SHOP_DATABASE"], pool_size=3)
stock = threading.Lock()
shop = flask.Flask("shop")
local = threading.local()

def stocktaking():
    while True:
        with stock:
            time.sleep(0.03)
        time.sleep(0.001)

def timed(name, function, *given):
    begin = time.perf_counter()
    result = function(*given)
    local.times[name] = local.times.get(name, 0) + time.perf_counter() - begin
    return result

def query():
    with engine.connect() as connection:
        slept, = connection.execute(text(
            "select extract(epoch from clock_timestamp() - statement_timestamp()) from pg_sleep(0.2)"
        )).one()
        local.times["server"] = float(slept)
        ordered = connection.execute(text("select generate_series(1, 1500) as id, 'pepper' as name"))
        found = sum(1 for row in ordered if row.name == "pepper")
        with connection.connection.cursor() as cursor:
            cursor.execute("select generate_series(1, 1500)")
            return found + sum(1 for row in cursor)

def read_catalogue(kept):
    with open("catalogue", "rb", buffering=0) as catalogue:
        return sum(iter(lambda: catalogue.readinto(kept), 0))

@shop.route("/orders/<int:number>")
def orders(number):
    kept = bytearray(1 << 20)
    found = timed("db", query)
    timed("file", read_catalogue, kept)
    timed("sleep", time.sleep, 0.05)
    timed("sync", stock.acquire)
    stock.release()
    price = timed("net", requests.get, os.environ["SHOP_PRICES"])
    total = sum(value * value for value in range(100_000))
    return f"{found} orders at {price.content.decode()}"

class Witness:
    def __init__(self, application):
        self.application = application

    def __call__(self, environ, start_response):
        local.times = {"number": int(environ["PATH_INFO"].rpartition("/")[2]), "thread": threading.get_native_id()}
        local.times["begun_ns"] = time.monotonic_ns()
        answer = timed("wall", self.application, environ, start_response)
        line = json.dumps(local.times) + "\\n"
        seen = os.open("seen", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(seen, line.encode())
        os.close(seen)
        return answer

connections = [engine.connect() for _ in range(3)]
[connection.close() for connection in connections]
shop.wsgi_app = Witness(shop.wsgi_app)
threading.Thread(target=stocktaking, daemon=True).start()
"""

# Asks the shop, three at a time, and writes down how long each answer took.
CUSTOMERS = """
import concurrent.futures, http.client, json, sys, time

def ask(number):
    begin = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
    connection.request("GET", f"/orders/{number}")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (200, b"3000 orders at 12.50"), answer.status
    took = time.perf_counter() - begin
    connection.close()
    return took

with concurrent.futures.ThreadPoolExecutor(3) as pool:
    json.dump(list(pool.map(ask, range(int(sys.argv[2])))), open("customers", "w"))
"""

OPENING = """
import logging, os, signal, socket, subprocess, sys, threading, time

def wait_for(port):
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)

def open_by_werkzeug(serve):
    import shop, werkzeug.serving
    server = werkzeug.serving.make_server("127.0.0.1", 0, shop.shop, threaded=True)
    logging.getLogger("werkzeug").setLevel("ERROR")
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    serve(server.server_port)
    server.shutdown()
    serving.join()

def open_by_gunicorn(serve):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--threads", "3", "--log-level", "critical", "--bind", f"127.0.0.1:{port}", "shop:shop"]
    server = subprocess.Popen([sys.executable, "-m", "gunicorn", *words])
    wait_for(port)
    serve(port)
    server.send_signal(signal.SIGTERM)
    server.wait(20)

database, how, requests = sys.argv[1:]
with open("catalogue", "wb") as catalogue:
    catalogue.write(os.urandom(32 << 20))
prices = subprocess.Popen([sys.executable, "prices.py"], stdout=subprocess.PIPE, text=True)
os.environ["SHOP_PRICES"] = f"http://127.0.0.1:{prices.stdout.readline().strip()}/"
os.environ["SHOP_DATABASE"] = database
globals()[f"open_by_{how}"](
    lambda port: subprocess.run([sys.executable, "customers.py", str(port), requests], check=True)
)
prices.kill()
prices.wait()
"""


def balances(process, events, seen):
    """Of each request that a process served its self times by kind, in seconds, from the events alone.

    Which one it is tells the thread, and when the witness of that began to look.
    """
    by_call = {(event.thread, event.call): event for event in events}
    threads = {thread.number: thread.record.tid for thread in process.threads}
    found = defaultdict(lambda: defaultdict(float))
    for event in events:
        served = event
        while served and process.intrinsic(served.intrinsic).name != "flask.Flask.wsgi_app":
            served = by_call.get((served.thread, served.parent))
        if served:
            begun = {
                each["begun_ns"]: number
                for number, each in seen.items()
                if each["thread"] == threads[served.thread] and each["begun_ns"] <= served.start_ns
            }
            kind = process.intrinsic(event.intrinsic).kind
            found[begun[max(begun)]][kind] += (event.wall_ns - event.inner_wall_ns) / 1e9
    return found


@pytest.mark.parametrize(("driver", "server"), [("psycopg2", "werkzeug"), ("psycopg", "gunicorn")])
def test_what_a_request_took_by_kind_is_its_wall_time(traced, tmp_path, driver, server):
    for package in ("flask", "requests", "sqlalchemy", driver, server):
        pytest.importorskip(package)
    need_server("postgresql")
    for name, source in {"prices": PRICES, "customers": CUSTOMERS, "shop": SHOP}.items():
        (tmp_path / f"{name}.py").write_text(source)

    # As the program measures: what a call waits for the interpreter lock, before it returns, is its own.
    words = (f"postgresql+{driver}://postgres:sesame@127.0.0.1/test", server, str(REQUESTS))
    done = traced(OPENING, *words, INTERPOSE_KINDS="all,gil=off").ended_well()
    seen = {each["number"]: each for each in map(json.loads, (tmp_path / "seen").read_text().splitlines())}
    found = {}
    for process in done.experiment.processes:
        found.update(balances(process, done.events(process=process), seen))
    customers = json.loads((tmp_path / "customers").read_text())

    assert set(found) == set(seen) == set(range(REQUESTS))
    assert set().union(*found.values()) == KINDS
    for number, kinds in found.items():
        times, whole = seen[number], sum(kinds.values())
        assert whole == pytest.approx(times["wall"], rel=SHARE)
        assert whole < customers[number]
        assert times["server"] <= kinds["db"] <= times["db"]
    later = [(kinds, seen[number]) for number, kinds in found.items() if number >= FIRST]
    for kind in TIMED:
        ours, theirs = (sum(times[kind] for times in each) for each in zip(*later, strict=True))
        assert ours == pytest.approx(theirs, abs=SHARE * sum(times["wall"] for _, times in later)), kind
