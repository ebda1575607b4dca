"""Starts a server with the words given, asks it without a pause from two clients, and prints as JSON the requests a
second and the CPU time of a request in the server's worker, in microseconds; then it ends the server.

Usage: load.py PORT REQUESTS WORD ...
"""

import http.client
import json
import signal
import subprocess
import sys
import threading
import time

CLIENTS = 2
WARMING = 100
PATIENCE_S = 60


def main() -> None:
    port, requests, words = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        ask(port, WARMING)
        before_ns, begun_ns = cpu_ns(port), time.perf_counter_ns()
        clients = [threading.Thread(target=ask, args=(port, requests // CLIENTS)) for _ in range(CLIENTS)]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
        wall_ns = time.perf_counter_ns() - begun_ns
        used_ns = cpu_ns(port) - before_ns
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(PATIENCE_S)
    print(json.dumps({"per_second": requests / (wall_ns / 1e9), "cpu_us": used_ns / requests / 1e3}))


def wait_for(port: int) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            cpu_ns(port)
            return
        except OSError:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.05)


def cpu_ns(port: int) -> int:
    return int(get(http.client.HTTPConnection("127.0.0.1", port), "/cpu"))


def ask(port: int, requests: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for number in range(requests):
        get(connection, f"/orders/{number}")


def get(connection: http.client.HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status}")
    return text


main()
