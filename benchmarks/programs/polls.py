"""Asks an epoll object whether anything is ready, which nothing is; prints nanoseconds a time in the quickest round.

Usage: polls.py ROUNDS TIMES CLIENTS SERVERS: numbers of connections, all between two requests.
"""

import json
import resource
import select
import socket
import sys
from time import perf_counter_ns


def connect(server):
    """The two ends of a connection on which there was a request and its answer."""
    asking = socket.create_connection(server.getsockname())
    answering, _ = server.accept()
    asking.sendall(b"request")
    answering.recv(100)
    answering.sendall(b"answer")
    asking.recv(100)
    return asking, answering


def round_ns(poll, times):
    begun_ns = perf_counter_ns()
    for _ in range(times):
        poll(0)
    return (perf_counter_ns() - begun_ns) / times


rounds, times, served, outgoing = map(int, sys.argv[1:])
poll = select.epoll()
_, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
listener, other = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
poll.register(listener, select.EPOLLIN)
pairs = [connect(listener) for _ in range(served)] + [connect(other) for _ in range(outgoing)]
for number, (asking, answering) in enumerate(pairs):
    poll.register(answering if number < served else asking, select.EPOLLIN)
print(json.dumps(min(round_ns(poll.poll, times) for _ in range(rounds))))
