"""What programs do between their calls is explained: CPU time, waits for the interpreter lock and for a processor leave
no more than one part in a hundred of the thread time."""

import contextlib
import http.client
import json
import subprocess
import sys
import threading

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone]

COMPUTING = """
import threading
def work():
    for _ in range(300): sum(i * i for i in range(10_000))
threads = [threading.Thread(target=work) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
"""

CONVOY = """
import threading, time
lock = threading.Lock()
def work():
    for _ in range(40):
        with lock: sum(i * i for i in range(20_000))
threads = [threading.Thread(target=work) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
"""

POOL = """
import multiprocessing, os
def work(n): return sum(i * i for i in range(2_000_000))
if __name__ == "__main__":
    with multiprocessing.Pool(2 * os.cpu_count()) as pool: pool.map(work, range(8 * os.cpu_count()))
"""

SERVER = """
import http.server, threading
def page(): return str(sum(i * i for i in range(20_000))).encode()
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = page()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
        if self.path == "/stop": threading.Thread(target=server.shutdown).start()
    def log_message(self, *what): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""

FLASK = """
import flask, threading
from werkzeug.serving import make_server
app = flask.Flask(__name__)
def page(): return str(sum(i * i for i in range(20_000)))
@app.get("/")
def root(): return page()
@app.get("/stop")
def stop():
    threading.Thread(target=server.shutdown).start()
    return ""
server = make_server("127.0.0.1", 0, app, threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
"""

ASYNCIO = """
import asyncio
def page(): return str(sum(i * i for i in range(20_000))).encode()
async def serve(reader, writer):
    while head := await reader.readline():
        path = head.split()[1]
        while (await reader.readline()).strip(): pass
        body = page()
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
        await writer.drain()
        if path == b"/stop": end.set()
    writer.close()
async def main():
    global end
    end = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await end.wait()
    server.close()
asyncio.run(main())
"""


def unexplained(directory, environment) -> float:
    """What is not explained, as a part of the thread time."""
    words = [sys.executable, "-m", "interpose", "report", "--by", "function", "--format", "json", "--limit", "100000"]
    done = subprocess.run(words, cwd=directory, env=environment, capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout)
    whole_ns = sum(row["self_wall_ns"] for row in rows)
    return sum(row["unexplained_ns"] or 0 for row in rows) / whole_ns


def words(directory, program: str) -> list[str]:
    (directory / "app.py").write_text(program)
    return [sys.executable, "-m", "interpose", "run", "app.py"]


def ask(port: int, times: int, path: str = "/") -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for _ in range(times):
        connection.request("GET", path)
        connection.getresponse().read()
    connection.close()


@pytest.mark.parametrize("program", [COMPUTING, CONVOY, POOL], ids=["threads", "convoy", "pool"])
def test_what_a_program_computes_and_waits_for_is_known(tmp_path, own_environment, program):
    subprocess.run(words(tmp_path, program), cwd=tmp_path, env=own_environment, check=True, timeout=60)

    assert unexplained(tmp_path, own_environment) <= 0.01


@pytest.mark.parametrize("program", [SERVER, FLASK, ASYNCIO], ids=["http", "flask", "asyncio"])
def test_so_is_what_a_server_does(tmp_path, own_environment, program):
    if program == FLASK:
        pytest.importorskip("flask")
    run = words(tmp_path, program)
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(run, cwd=tmp_path, env=own_environment, **how) as process:
        port = int(process.stdout.readline())
        clients = [threading.Thread(target=ask, args=(port, 100)) for _ in range(4)]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
        with contextlib.suppress(ConnectionError):  # it may end before it has answered
            ask(port, 1, "/stop")
        assert process.wait(timeout=60) == 0

    assert unexplained(tmp_path, own_environment) <= 0.01
