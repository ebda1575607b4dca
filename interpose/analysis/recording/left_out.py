"""Which calls were not recorded or not timed, in words: time between recorded calls may have been in these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from interpose.analysis.calls.account import ProcessAccount
from interpose.analysis.recording.ending import recording_stopped
from interpose.experiments.metadata.log import FILTERED, LOWERED
from interpose.experiments.model.process import Process
from interpose.kinds import IN_PROGRAMS, ON_REQUEST

ALL, COUNT, OFF, TIME = "all", "count", "off", "time"
_MATTERS = 100  # if fewer than one event in so many was lost, that explains nothing


def left_out(accounts: Iterable[ProcessAccount]) -> list[str]:
    """The calls that are missing, a phrase for each reason; none if all were recorded and timed."""
    return list(dict.fromkeys(phrase for account in accounts for phrase in _of_process(account)))


def has_lost(accounts: Iterable[ProcessAccount]) -> bool:
    """Whether calls are missing that should have been recorded: there was no room for them, or no longer any."""
    return any(_lost(account) for account in accounts)


def _lost(account: ProcessAccount) -> str:
    if recording_stopped(account.process) is not None:
        return "calls after recording stopped"
    return "lost events" if (account.dropped + account.missing) * _MATTERS > account.found else ""


def _of_process(account: ProcessAccount) -> Iterator[str]:
    process = account.process
    if lost := _lost(account):
        yield lost
    if "calls" not in process.log.recorded:
        yield "calls (INTERPOSE does not include them)"
        return
    if any(share.paused_wall_ns for share in account.threads.values()):
        yield "calls that began in a pause"
    yield from kinds_left_out(process)
    settings = process.log.settings
    if any(each.endswith((COUNT, OFF)) for each in settings.get("INTERPOSE_LEVELS", "").split(",")):
        yield "calls at a lower level (INTERPOSE_LEVELS)"
    if settings.get("INTERPOSE_FILTER", OFF) != OFF or any(each.kind == FILTERED for each in process.log.events):
        yield "calls that a filter excluded"
    if any(each.kind == LOWERED for each in process.log.events):
        yield "calls that the budget throttled"


def kinds_left_out(process: Process) -> Iterator[str]:
    """A phrase for the kinds that INTERPOSE_KINDS left out, and one for those of which calls were only counted."""
    levels = _levels(process.log.settings.get("INTERPOSE_KINDS", ALL))
    timed = [kind for kind, level in levels.items() if level == TIME]
    counted = [kind for kind, level in levels.items() if level == COUNT]
    off = [kind for kind, level in levels.items() if level == OFF]
    if off:
        kept = [*timed, *counted]
        said = f"all but {', '.join(kept)}" if kept and len(off) > len(levels) // 2 else ", ".join(off)
        yield f"kinds that were not recorded: {said}"
    if counted:
        yield f"kinds that were only counted: {', '.join(counted)}"


def _levels(text: str) -> dict[str, str]:
    """The level of each kind that is usually recorded, as `interpose.config.levels` defines the setting."""
    usual = [kind for kind in IN_PROGRAMS if kind not in ON_REQUEST]
    found = dict.fromkeys(usual, OFF)
    for word in text.split(","):
        kind, equals, level = (part.strip() for part in word.partition("="))
        named = usual if kind == ALL else [kind] if kind in found else []
        found.update(dict.fromkeys(named, level if equals else TIME))
    return found
