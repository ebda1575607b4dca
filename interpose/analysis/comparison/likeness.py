"""Whether runs were made and recorded alike: what differs of host, Python, settings, clock and sources, in lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.account import ProcessAccount
from interpose.experiments.maintenance.archives import read_index
from interpose.experiments.metadata.log import LOWERED, Log

# Settings for where things go and how much is kept, not for what is timed and how.
MEAN_NOTHING = frozenset(
    f"INTERPOSE_{name}"
    for name in ("DIR", "NAME", "SAVES", "ARCHIVE", "GROUP", "GROUP_READS", "TRIGGER", "LIMIT", "POOL", "SEED")
)
_SHOWN = 3
COMMAND = "command"
NOT_RECORDED = "?"  # a word of a command


@dataclass(frozen=True)
class Circumstances:
    """What a run was made with, by what each is called; its sources, and what makes its figures doubtful."""

    name: str
    facts: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()


def circumstances(analysis: Analysis) -> Circumstances:
    """Those of a run: of its founder, and of how it was recorded."""
    experiment = analysis.experiment
    log = experiment.founder.log
    index = read_index(experiment.founder_directory, experiment.name, experiment.damages)
    cwd = f"{log.cwd.rstrip('/')}/"
    sources = {path.removeprefix(cwd): entry.content for path, entry in index.items() if entry.kind == "source"}
    return Circumstances(experiment.name, _facts(log), sources, tuple(_doubts(analysis.accounts)))


def _facts(log: Log) -> dict[str, str]:
    facts = {
        "host": log.system.get("host", ""),
        "processors": log.system.get("cpus", ""),
        "system": log.system.get("os", ""),
        "Python": f"{log.collector.get('implementation', '')} {log.collector.get('python', '')}".strip(),
        "interpose": log.collector.get("version", ""),
        "clock": log.clock.get("kind", ""),
        "shims": log.interposed.get("by", ""),
        COMMAND: " ".join(log.arguments),
    }
    return facts | {name: value for name, value in log.settings.items() if name not in MEAN_NOTHING}


def _doubts(accounts: Sequence[ProcessAccount]) -> Iterator[str]:
    if any(each.ending.state == "running" for each in accounts):
        yield "still runs; its figures are of now"
    if dropped := sum(each.dropped for each in accounts):
        yield f"{dropped:,} calls were dropped"
    if overwritten := sum(each.overwritten for each in accounts):
        yield f"{overwritten:,} calls were written over in the ring"
    if any(event.kind == LOWERED for each in accounts for event in each.process.log.events):
        yield "recording was throttled to keep to its budget"
    if any(share.paused_wall_ns for each in accounts for share in each.threads.values()):
        yield "recording was paused in between"
    if not any(each.found for each in accounts):
        yield "no call was recorded"


def unlike(a: Sequence[Circumstances], b: Sequence[Circumstances]) -> list[str]:
    """Differences between or within the sides, and doubts about runs, a line each."""
    lines = [f"{each.name}: {doubt}" for each in (*a, *b) for doubt in each.doubts]
    for fact in dict.fromkeys(fact for each in (*a, *b) for fact in each.facts):
        values_a, values_b = ([each.facts.get(fact, "") for each in side] for side in (a, b))
        if _differ(fact, {*values_a, *values_b}):
            lines.append(f"{fact} differs: {_shown(values_a)}, then {_shown(values_b)}")
    if files := _changed_sources([*a, *b]):
        lines.append(f"sources differ, lines may have moved: {_few(files)}")
    if some := [each.name for each in (*a, *b) if not each.sources]:
        lines.append(f"sources were not kept, whether they differ is not known: {_few(some)}")
    return lines


def _differ(fact: str, values: Collection[str]) -> bool:
    """Words that were not recorded may be equal: a file's name is recorded only if the file exists."""
    if fact != COMMAND or len(values) < 2:
        return len(values) > 1
    commands = [value.split(" ") for value in values]
    is_longer = len({len(words) for words in commands}) > 1
    return is_longer or any(len({*each} - {NOT_RECORDED}) > 1 for each in zip(*commands, strict=True))


def _changed_sources(runs: Sequence[Circumstances]) -> list[str]:
    """The files that two runs have different contents of."""
    contents: dict[str, set[str]] = {}
    for run in runs:
        for file, content in run.sources.items():
            contents.setdefault(file, set()).add(content)
    return [file for file, found in contents.items() if len(found) > 1]


def _shown(values: Sequence[str]) -> str:
    return _few([value or "none" for value in dict.fromkeys(values)])


def _few(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
