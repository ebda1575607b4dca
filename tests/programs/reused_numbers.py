"""A socket is let go of without being closed; its number is given to what else the program makes."""

import os
import select
import socket

left, right = socket.socketpair()
left.send(b"text")
del left  #: socket.socket.__del__ detail=<socket>
watched = os.pidfd_open(os.getpid())
os.fstat(watched)  #: os.fstat file detail=<pidfd>
left, other = socket.socketpair()
left.send(b"text")
del left  #: socket.socket.__del__ detail=<socket>
epoll = select.epoll()
os.fstat(epoll.fileno())  #: os.fstat file detail=<eventpoll>
