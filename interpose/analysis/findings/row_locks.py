"""Which transactions had the locks of a database that statements waited for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from interpose.analysis.findings.finding import LARGE, Calls
from interpose.analysis.findings.survey import Survey, total_of
from interpose.analysis.time.row_locks import LOCKS
from interpose.experiments.model.stacks import Site


def held_meanwhile(
    survey: Survey, rows: Sequence[Calls], wall_ns: int = 0, awaited_ns: int = 0, has_failed: bool = False
) -> dict[str, Any]:
    """What a finding says of the transactions that these statements waited for; nothing if the waits are small.
    Awaits of tasks, of `awaited_ns` together, overlap: at least one of them lasted for `wall_ns`."""
    waiting = [each for each in rows if each.kind == "db" and LOCKS.match(each.detail)]
    if not waiting or (wall_ns or total_of(waiting)[1]) < LARGE.least_ns(survey.matters_ns):
        return {}
    holders: Counter[Site] = Counter()
    for intrinsic, site in dict.fromkeys((each.intrinsic, each.site) for each in waiting):
        holders += survey.row_locks.holders(intrinsic, site, has_failed)
    held_ns = holders.total() * wall_ns // awaited_ns if awaited_ns else holders.total()
    return {"held_at": tuple(site for site, _ in holders.most_common()), "held_ns": held_ns}
