"""A diary, read and written through buffers."""

# ruff: noqa: SIM115 (to close is a call like others)

import io
from contextlib import suppress

with suppress(FileNotFoundError):
    #: io.open detail=missing error=FileNotFoundError errno 2
    #: within io.FileIO detail=missing error=FileNotFoundError errno 2
    open("missing")

writer = open("diary", "wb")  #: io.open detail=diary & within io.FileIO detail=diary
for day in range(100):
    writer.write(b"day %02d\n" % day)  #: 100 io.BufferedWriter.write bytes=7
writer.flush()  #: io.BufferedWriter.flush & within io.FileIO.write bytes=700 detail=diary
writer.seek(0)  #: io.BufferedWriter.seek & within io.FileIO.seek detail=diary
writer.close()  #: io.BufferedWriter.close & within io.FileIO.close detail=diary
with suppress(ValueError):
    writer.write(b"late")  #: io.BufferedWriter.write error=ValueError

reader = open("diary", "rb")  #: io.open detail=diary
assert reader.read(3) == b"day"  #: io.BufferedReader.read bytes=3
reader.read1(4)  #: io.BufferedReader.read1 bytes=4
reader.readinto(bytearray(7))  #: io.BufferedReader.readinto bytes=7
reader.readinto1(bytearray(7))  #: io.BufferedReader.readinto1 bytes=7
for _ in range(3):
    reader.readline()  #: 3 io.BufferedReader.readline bytes=7
reader.peek(1)  #: io.BufferedReader.peek bytes=...
reader.seek(0)  #: io.BufferedReader.seek
reader.read()  #: io.BufferedReader.read bytes=700
reader.close()  #: io.BufferedReader.close

both = open("diary", "r+b")  #: io.open detail=diary
both.read(7)  #: io.BufferedRandom.read bytes=7
both.read1(7)  #: io.BufferedRandom.read1 bytes=7
both.readinto(bytearray(7))  #: io.BufferedRandom.readinto bytes=7
both.readline()  #: io.BufferedRandom.readline bytes=7
both.write(b"DAY")  #: io.BufferedRandom.write bytes=3
both.flush()  #: io.BufferedRandom.flush
both.seek(0)  #: io.BufferedRandom.seek
both.close()  #: io.BufferedRandom.close

text = open("diary", "r+", encoding="ascii")  #: io.open detail=diary
assert text.readline() == "day 00\n"  #: io.TextIOWrapper.readline bytes=7
text.seek(0)  #: io.TextIOWrapper.seek
lines = 0
for _ in text:  #: 101 io.TextIOWrapper.__next__
    lines += 1
assert lines == 100
text.write("the end\n")  #: io.TextIOWrapper.write bytes=8
text.flush()  #: io.TextIOWrapper.flush
text.seek(0)  #: io.TextIOWrapper.seek
text.read()  #: io.TextIOWrapper.read bytes=708
text.close()  #: io.TextIOWrapper.close & within io.BufferedRandom.close & within io.FileIO.close detail=diary
with suppress(ValueError):
    text.read()  #: io.TextIOWrapper.read error=ValueError
with suppress(UnicodeDecodeError), io.TextIOWrapper(io.BytesIO(b"\xff"), "ascii") as wrong:  #: io.TextIOWrapper.close
    wrong.read()  #: io.TextIOWrapper.read error=UnicodeDecodeError
