"""The lines of libraries that pickle what is sent to other processes."""

from __future__ import annotations

from interpose.experiments.model.stacks import Site

_PICKLES = ("/multiprocessing/reduction.py", "/cloudpickle/cloudpickle.py", "/loky/backend/reduction.py")
_SENDS = ("/multiprocessing/queues.py", "/multiprocess/queues.py")


def pickles(site: Site) -> bool:
    """Whether a line pickles an object to send it to another process."""
    return site.file.endswith(_PICKLES) and site.function.rpartition(".")[2] in ("dump", "dumps")


def sends(site: Site) -> bool:
    """Whether a line pickles such objects, or is that of the thread which sends them."""
    return pickles(site) or (site.file.endswith(_SENDS) and site.function.rpartition(".")[2] == "_feed")
