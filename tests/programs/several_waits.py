"""A client whose answer is waited for in two ways, and a wait that has nothing to do with it."""

import select
import socket

client, server = socket.socketpair()
by_poll, by_epoll = select.poll(), select.epoll()  #: select.poll
by_epoll.register(client, select.EPOLLIN)
by_poll.register(client, select.POLLIN)
client.send(b"question")
by_epoll.poll(0)  #: select.epoll.poll net
by_poll.poll(0)  #: select.poll.poll net
del by_poll
other = select.poll()  #: select.poll
other.poll(0)  #: select.poll.poll idle
by_epoll.close()  #: select.epoll.close
