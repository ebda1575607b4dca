"""A line editor's history and settings, kept in files."""

import os
import readline
from contextlib import suppress

readline.add_history("first")
readline.write_history_file("history")  #: readline.write_history_file detail=history
readline.append_history_file(1, "history")  #: readline.append_history_file detail=history
readline.read_history_file("history")  #: readline.read_history_file detail=history
with suppress(FileNotFoundError):
    #: readline.read_history_file detail=missing error=FileNotFoundError errno 2
    readline.read_history_file("missing")
settings = os.open("inputrc", os.O_WRONLY | os.O_CREAT)  #: os.open detail=inputrc
os.write(settings, b"set bell-style none\n")  #: os.write bytes=20 detail=inputrc
readline.read_init_file("inputrc")  #: readline.read_init_file detail=inputrc
