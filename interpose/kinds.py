"""The kinds of calls: the one list. `setup.py` makes `kinds.h` of it for C.

This is imported inside the traced program when it starts, so it imports nothing.
"""

IDLE = "idle"  # waiting for new work; nobody asks for it by itself
EVERY = ("db", "screen", "file", "net", "process", "sync", "sleep", IDLE, "logic", "import")
KINDS = tuple(kind for kind in EVERY if kind != IDLE)
ON_REQUEST = ("import",)  # kinds that are off unless asked for
