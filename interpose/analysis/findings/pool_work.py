"""Work that was handed to a pool as it is, such as a function of a library: no line of the program is on the stacks of
its calls."""

from __future__ import annotations

from collections.abc import Sequence

from interpose.analysis.findings.finding import Calls
from interpose.analysis.findings.sockets import is_receive
from interpose.analysis.time.turns import SELECTORS
from interpose.experiments.model.stacks import Site

# Where pools call their work: how the file's path and the function's name end. A library's thread outside of a pool,
# such as one for heartbeats, mostly waits for its next turn.
_PLACES = (
    ("concurrent/futures/thread.py", "run"),
    ("concurrent/futures/process.py", "_process_worker"),
    ("multiprocessing/pool.py", "worker"),
    ("anyio/_backends/_asyncio.py", "WorkerThread.run"),
    ("anyio/_backends/_trio.py", "run_sync_in_worker_thread.<locals>.wrapper"),
    ("trio/_threads.py", "to_thread_run_sync.<locals>.worker_fn"),
)
_FILES = tuple(file for file, _ in _PLACES)


def work_of_pool(frames: Sequence[Site]) -> Site | None:
    """The outermost line of a pool's work; if the pool itself made the call, its line. None outside of pools. `frames`
    are from the innermost outward. The innermost pool counts: anyio's on trio has its work called by trio's."""
    calling = next((place for place, each in enumerate(frames) if _calls_work(each)), None)
    if calling is None:
        return None
    inside = frames[: calling + 1]
    return next((each for each in reversed(inside) if each.file != inside[-1].file), inside[0])


def _calls_work(frame: Site) -> bool:
    return any(frame.file.endswith(file) and frame.function.endswith(name) for file, name in _PLACES)


def may_be_cause(each: Calls) -> bool:
    """Whether calls of a pool's work may be why a program is slow. A library that sleeps or selects in a pool waits for
    its next turn, and what receives there waits for a client, or for the next message."""
    if not each.work:
        return False
    if each.kind == "sleep":
        return each.work.file.endswith(_FILES)
    return each.intrinsic not in SELECTORS and not is_receive(each)
