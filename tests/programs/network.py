"""A server and its clients in one program: sockets of every family, names, and waits for many."""

import contextlib
import os
import select
import socket
from contextlib import suppress

# A conversation. Only the server's wait for the next request is idle.
listener = socket.socket()  #: within socket.socket
listener.bind(("127.0.0.1", 0))  #: socket.socket.bind detail=127.0.0.1:0
with suppress(OSError):
    listener.bind(("127.0.0.1", 0))  #: socket.socket.bind detail=127.0.0.1:0 error=OSError errno 22
listener.listen(5)  #: socket.socket.listen detail=127.0.0.1:...
address = listener.getsockname()
client = socket.socket()  #: within socket.socket
client.connect(address)  #: socket.socket.connect detail=127.0.0.1:...
served, _ = listener.accept()  #: within socket.socket.accept detail=127.0.0.1:... & within socket.socket
for _ in range(3):
    client.send(b"hello")  #: 3 socket.socket.send bytes=5 detail=127.0.0.1:...
    assert served.recv(5) == b"hello"  #: 3 socket.socket.recv idle bytes=5 detail=127.0.0.1:...
    served.sendall(b"good day")  #: 3 socket.socket.sendall bytes=8 detail=127.0.0.1:...
    assert client.recv(4) == b"good"  #: 3 socket.socket.recv net bytes=4 detail=127.0.0.1:...
    client.recv_into(bytearray(10))  #: 3 socket.socket.recv_into net bytes=4 detail=127.0.0.1:...
client.send(b"headbody")  #: socket.socket.send bytes=8 detail=127.0.0.1:...
assert served.recv(4) == b"head"  #: socket.socket.recv idle bytes=4 detail=127.0.0.1:...
assert served.recv(4) == b"body"  #: socket.socket.recv net bytes=4 detail=127.0.0.1:...
client.sendmsg([b"one", b"two"])  #: socket.socket.sendmsg bytes=6 detail=127.0.0.1:...
served.recvmsg(3)  #: socket.socket.recvmsg net bytes=3 detail=127.0.0.1:...
served.recvmsg_into([bytearray(3)])  #: socket.socket.recvmsg_into net bytes=3 detail=127.0.0.1:...
served.setblocking(False)
with suppress(BlockingIOError):
    served.recv(1)  #: socket.socket.recv net detail=127.0.0.1:... error=BlockingIOError errno 11
client.shutdown(socket.SHUT_WR)  #: socket.socket.shutdown detail=127.0.0.1:...
with suppress(OSError):
    client.send(b"x")  #: socket.socket.send detail=127.0.0.1:... error=BrokenPipeError errno 32
assert served.recv(1) == b""  #: socket.socket.recv net detail=127.0.0.1:...
copy = socket.dup(client.fileno())  #: socket.dup
socket.close(copy)  #: socket.close detail=127.0.0.1:...
with suppress(OSError):
    socket.close(copy)  #: socket.close error=OSError errno 9
client.close()  #: within socket.socket.close detail=127.0.0.1:...
with suppress(OSError):
    client.send(b"x")  #: socket.socket.send error=OSError errno 9
os.close(served.detach())  #: within socket.socket.detach detail=127.0.0.1:... & os.close net detail=127.0.0.1:...
caller = socket.socket()  #: within socket.socket
assert caller.connect_ex(address) == 0  #: socket.socket.connect_ex detail=127.0.0.1:...
caller.close()  #: within socket.socket.close detail=127.0.0.1:...
listener.close()  #: within socket.socket.close detail=127.0.0.1:...
with suppress(ConnectionRefusedError), socket.socket() as refused:
    #: socket.socket.connect detail=127.0.0.1:... error=ConnectionRefusedError errno 111
    refused.connect(address)

# Datagrams, by themselves and in a path.
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  #: within socket.socket
there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  #: within socket.socket
here.bind(("127.0.0.1", 0))  #: socket.socket.bind detail=127.0.0.1:0
there.sendto(b"datagram", here.getsockname())  #: socket.socket.sendto bytes=8 detail=<socket>
data, _ = here.recvfrom(100)  #: socket.socket.recvfrom idle bytes=8 detail=127.0.0.1:...
there.sendto(b"another", here.getsockname())  #: socket.socket.sendto bytes=7 detail=...
here.recvfrom_into(bytearray(100))  #: socket.socket.recvfrom_into idle bytes=7 detail=127.0.0.1:...
here.close()  #: within socket.socket.close detail=127.0.0.1:...
there.close()  #: within socket.socket.close detail=...
local = socket.socket(socket.AF_UNIX)  #: within socket.socket
local.bind("door")  #: socket.socket.bind detail=door
local.listen()  #: socket.socket.listen detail=door
visitor = socket.socket(socket.AF_UNIX)  #: within socket.socket
visitor.connect("door")  #: socket.socket.connect detail=door
visitor.send(b"knock")  #: socket.socket.send bytes=5 detail=door
visitor.close()  #: within socket.socket.close detail=door
local.close()  #: within socket.socket.close detail=door
left, right = socket.socketpair()  #: within socket.socketpair & 2 within socket.socket
with suppress(OSError):
    left.sendmsg_afalg([b"x"], op=0)  #: socket.socket.sendmsg_afalg error=... detail=<socket>

# Names.
socket.getaddrinfo("localhost", 80)  #: within socket.getaddrinfo detail=localhost:80
with suppress(socket.gaierror):
    #: within socket.getaddrinfo detail=127.0.0.1:x error=gaierror errno ... since=3.12
    #: within socket.getaddrinfo detail=127.0.0.1:x error=gaierror... before=3.12
    socket.getaddrinfo("127.0.0.1", "x", flags=socket.AI_NUMERICSERV)
socket.gethostbyname("localhost")  #: socket.gethostbyname detail=localhost
socket.gethostbyname_ex("localhost")  #: socket.gethostbyname_ex detail=localhost
socket.gethostbyaddr("127.0.0.1")  #: socket.gethostbyaddr detail=127.0.0.1
socket.getnameinfo(("127.0.0.1", 80), socket.NI_NUMERICHOST)  #: socket.getnameinfo detail=127.0.0.1:80
socket.gethostname()  #: socket.gethostname
with suppress(OSError):
    socket.getservbyname("http")  #: socket.getservbyname error=...
with suppress(OSError):
    socket.getservbyport(80)  #: socket.getservbyport error=...
with suppress(OSError):
    socket.getprotobyname("tcp")  #: socket.getprotobyname error=...

# Waits for several: idle where the next request is awaited, net where an answer is, sleep where nothing is.
select.select([], [], [], 0)  #: select.select sleep
select.select([left], [], [], 0)  #: select.select idle
left.send(b"question")  #: socket.socket.send bytes=8 detail=<socket>
select.select([left], [], [], 0)  #: select.select net
with suppress(ValueError):
    select.select([-1], [], [], 0)  #: select.select net error=ValueError
with contextlib.closing(select.epoll()) as epoll:
    epoll.register(right, select.EPOLLIN)  #: select.epoll.register
    with suppress(FileExistsError):
        epoll.register(right, select.EPOLLIN)  #: select.epoll.register error=FileExistsError errno 17
    epoll.modify(right, select.EPOLLIN)  #: select.epoll.modify
    for _ in range(3):
        assert len(epoll.poll(0)) == 1  #: 3 select.epoll.poll idle
    right.recv(8)  #: socket.socket.recv bytes=8 detail=<socket>
    right.send(b"answer")  #: socket.socket.send bytes=6 detail=<socket>
    epoll.poll(0)  #: select.epoll.poll net
    epoll.unregister(right)  #: select.epoll.unregister
    epoll.poll(0)  #: select.epoll.poll idle
poll = select.poll()  #: select.poll
poll.register(left, select.POLLIN)  #: select.poll.register
poll.modify(left, select.POLLIN)  #: select.poll.modify
for _ in range(2):
    assert len(poll.poll(0)) == 1  #: 2 select.poll.poll net
left.recv(6)  #: socket.socket.recv bytes=6 detail=<socket>
assert poll.poll(0) == []  #: select.poll.poll idle
poll.unregister(left)  #: select.poll.unregister
with suppress(KeyError):
    poll.unregister(left)  #: select.poll.unregister error=KeyError
