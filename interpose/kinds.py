"""The kinds of calls: the one list. `setup.py` makes `kinds.h` of it for C.

This is imported inside the traced program when it starts, so it imports nothing.
"""

IDLE = "idle"  # waiting for new work; cannot be requested by itself
EVERY = ("db", "screen", "file", "net", "process", "sync", "gil", "sleep", IDLE, "logic", "system", "import")
KINDS = tuple(kind for kind in EVERY if kind != IDLE)
NATIVE = "libc."  # how the names of native calls begin
OF_KERNEL = "system"  # only the kernel's view has calls of this kind
CONTAINERS = ("logic", "import")  # calls that contain code of the program
IN_PROGRAMS = tuple(kind for kind in KINDS if kind != OF_KERNEL)
ON_REQUEST = ("import",)  # kinds that are off unless asked for


def c_header() -> str:
    """The text of `kinds.h`."""
    rows = " ".join([f"X({kind})" for kind in EVERY])
    return f"""/* Made of interpose/kinds.py: what a call can be of. */
#pragma once

#define KINDS(X) {rows}
#define NUMBER_OF_KIND(name) KIND_##name,
enum kind {{ KINDS(NUMBER_OF_KIND) KIND_COUNT }};
"""
