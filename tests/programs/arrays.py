"""Numbers are sent and stored as they lie in memory."""

import array
import mmap
import socket
import sqlite3

numbers = array.array("i", range(10))
left, right = socket.socketpair()
left.send(numbers)  #: socket.socket.send bytes=40 detail=<socket>
left.sendall(numbers)  #: socket.socket.sendall bytes=40 detail=<socket>
left.sendall(memoryview(numbers)[:5])  #: socket.socket.sendall bytes=20 detail=<socket>
left.sendall(mmap.mmap(-1, 4096))  #: socket.socket.sendall bytes=4096 detail=<socket>
connection = sqlite3.connect(":memory:")
connection.execute("create table readings (numbers)")
connection.execute("insert into readings values (zeroblob(40))")
with connection.blobopen("readings", "numbers", 1) as blob:
    blob.write(numbers)  #: sqlite3.Blob.write bytes=40
