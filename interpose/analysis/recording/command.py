"""The command of a process as it was given."""

from __future__ import annotations

from interpose.experiments.model.process import Process


def command_of(process: Process) -> str:
    """The command as it was given: `python orders.py`, `gunicorn shop:app`; it may hold what a terminal acts upon."""
    log = process.log
    program = last_part(log.executable) or "?"
    given = log.arguments
    if given and last_part(given[0]) in (program, "python", "python3"):
        given = given[1:]  # the interpreter, as it was called
    if given and given[0].startswith("/") and given[0].rpartition("/")[0].endswith("/bin"):
        return " ".join([last_part(given[0]), *given[1:]])  # a command that happens to be written in Python
    return " ".join([program, *given])


def last_part(path: str) -> str:
    """The name of the file at a path."""
    return path.rpartition("/")[2]
