"""A pipe that has a name is a pipe."""

import os

os.mkfifo("pipe")
pipe = os.open("pipe", os.O_RDWR)  #: os.open detail=pipe
os.write(pipe, b"text")  #: os.write process bytes=4 detail=pipe
os.read(pipe, 4)  #: os.read process bytes=4 detail=pipe
os.close(pipe)  #: os.close process detail=pipe
