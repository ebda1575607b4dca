"""Which calls of databases have a statement or a command as their detail."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from interpose.experiments.model.process import Process

DATABASE, NETWORK = "db", "net"
_CONNECTS = re.compile(r"connect|open", re.IGNORECASE)  # to an address, or a file
_WITH_TOPICS = ("confluent_kafka.",)


@lru_cache(maxsize=16)
def with_statements(process: Process) -> frozenset[str]:
    """The names of the intrinsics of `process` whose calls of the kind `db` have statements: not those that connect,
    and not those by which drivers talk to servers, which are of the kind `net` elsewhere."""
    known = process.numbered_intrinsics.values()
    of_network = {each.name for each in known if each.kind == NETWORK}
    names = {each.name for each in known if each.kind == DATABASE} - of_network
    return frozenset(name for name in names if not _is_about_another(name))


def with_statements_in_any(processes: Iterable[Process]) -> frozenset[str]:
    """The same of several processes."""
    return frozenset().union(*map(with_statements, processes))


def _is_about_another(name: str) -> bool:
    return name.startswith(_WITH_TOPICS) or _CONNECTS.search(name.rpartition(".")[2]) is not None
