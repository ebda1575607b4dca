"""A server and its client: only the server's wait for the next request is idle."""

import contextlib
import select
import socket

listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
served, _ = listener.accept()
with contextlib.closing(select.epoll()) as requests, contextlib.closing(select.epoll()) as answers:
    requests.register(served, select.EPOLLIN)
    answers.register(client, select.EPOLLIN)
    for _ in range(3):
        client.send(b"head body")
        assert requests.poll(0)  #: 3 select.epoll.poll idle
        assert served.recv(5) == b"head "  #: 3 socket.socket.recv idle bytes=5 detail=127.0.0.1:...
        assert served.recv(5) == b"body"  #: 3 socket.socket.recv net bytes=4 detail=127.0.0.1:...
        served.send(b"answer")
        select.select([served], [], [], 0)  #: 3 select.select idle
        assert answers.poll(0)  #: 3 select.epoll.poll net
        assert client.recv(6) == b"answer"  #: 3 socket.socket.recv net bytes=6 detail=127.0.0.1:...
