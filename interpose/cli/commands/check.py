"""`interpose check`: whether an experiment is complete and undamaged, and a repaired copy of one that is not."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Iterator
from functools import partial

from interpose.analysis.recording.soundness import read_all
from interpose.cli.destinations import do, refuse_running
from interpose.cli.experiment_choice import open_experiment
from interpose.errors import ExperimentError, UsageError
from interpose.experiments.maintenance.copying import copy, refuse_what_is_none
from interpose.experiments.maintenance.packed import DamagedArchive
from interpose.experiments.maintenance.repair import repair
from interpose.experiments.metadata import names
from interpose.experiments.metadata.creating import without_links
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import Damage
from interpose.reports.formats.table import clean
from interpose.reports.formats.units import count

NAME = "check"
HELP = "check whether an experiment is undamaged, and repair a copy"
EXAMPLE = "interpose check test.1.er"
DAMAGED = 3
ALIKE = 3  # so many damages that differ in numbers only are shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiments", nargs="+", metavar="EXPERIMENT", help="an experiment's directory or archive")
    parser.add_argument("--repair", action="store_true", help="copy everything that can be read")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("-o", dest="output", metavar="NEW.er", help="the copy (default: NAME.repaired.er)")
    place.add_argument("--in-place", action="store_true", help="repair the experiment itself instead of a copy")


def run(arguments: argparse.Namespace) -> int:
    if (arguments.output or arguments.in_place) and not arguments.repair:
        raise UsageError("-o and --in-place need --repair")
    if arguments.output and len(arguments.experiments) > 1:
        raise UsageError("-o takes a single experiment")
    return max([_check(path, arguments) for path in arguments.experiments], default=0)


def _check(path: str, arguments: argparse.Namespace) -> int:
    if arguments.repair:
        path = _repaired(path.rstrip("/"), arguments)
    try:
        experiment = open_experiment(path, archive=False)
    except DamagedArchive as error:
        print(clean(f"{error}: damaged, and nothing can be read"))
        return DAMAGED
    for line in _lines(experiment, path.rstrip("/")):
        print(clean(line))
    return DAMAGED if experiment.damages.count else 0


def _lines(experiment: Experiment, path: str) -> Iterator[str]:
    """That all is undamaged, or each thing that is not; then what there is. The experiment is called `path`."""
    calls, archived = read_all(experiment)
    damages = experiment.damages
    for alike in _alike(damages.found).values():
        yield from (_called(experiment, str(each), path) for each in alike[:ALIKE])
        if len(alike) > ALIKE:
            yield _called(experiment, f"{alike[0].place}: {len(alike) - ALIKE:,} more of this kind", path)
    if damages.count > len(damages.found):
        yield f"{path}: and {damages.count - len(damages.found):,} more"
    processes = len(experiment.processes)
    told = "1 process" if processes == 1 else f"{processes:,} processes"
    told += f", {count(calls, 'call')}, {count(archived, 'archived file')}"
    yield f"{path}: {'damaged; read' if damages.count else 'undamaged'}: {told}"


def _alike(damages: Iterable[Damage]) -> dict[tuple[str, str], list[Damage]]:
    """The damages of one place that differ in numbers only, together."""
    found: dict[tuple[str, str], list[Damage]] = {}
    for each in damages:
        found.setdefault((each.place, re.sub("[0-9]+", "0", each.what)), []).append(each)
    return found


def _called(experiment: Experiment, damage: str, path: str) -> str:
    """What is damaged, with the path as it was given; the files in an archive have the experiment's own name."""
    if experiment.packed:
        return f"{path}: {damage.removeprefix(f'{os.path.basename(path)}: ')}"
    is_in = damage.startswith((f"{experiment.name}/", f"{experiment.name}:"))
    return path + damage.removeprefix(experiment.name) if is_in else damage


def _repaired(path: str, arguments: argparse.Namespace) -> str:
    """Repair the experiment at `path` or a copy of it; returns the path of which. Raises InterposeError."""
    refuse_what_is_none(path)
    refuse_running(path)
    target = path
    if not arguments.in_place:
        target = arguments.output or f"{path.removesuffix(names.SUFFIX)}.repaired{names.SUFFIX}"
        if not target.endswith(names.SUFFIX):
            raise UsageError(f"-o {target}: its name must end with {names.SUFFIX}")
        if os.path.lexists(target):
            raise ExperimentError(f"{target}: already exists")
        do(partial(copy, path, target), target)
    do(partial(repair, without_links(target)), target)
    return target
