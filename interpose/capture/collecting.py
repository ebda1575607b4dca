"""The data collectors of a program: finding them, checking whether they are trusted, and loading their files.

The traced program imports this module if there may be collectors. Nothing here raises or prints: mistakes of a
collector are noted in the experiment, and the others are used.
"""

import os
import sys

from interpose.config.trust import distrust
from interpose.instrumentation import collectors, libraries
from interpose.instrumentation.libraries import OF_COLLECTORS, Candidate

LARGEST_COUNT = 8
PREFIX = "collector:"  # of names in the experiment


class Collected:
    """The collectors in the order of their calls, as (name, declaration); the notes; their files."""

    def __init__(self):
        self.chosen = []
        self.notes = []
        self.paths = []

    def add(self, candidate, declared):
        """Take in what a file declares."""
        self.paths.append(candidate.path)
        for each in declared:
            name = each.function.__name__ if each.function else ""
            shown = candidate.name if len(declared) == 1 else f"{candidate.name}.{name}"
            if len(self.chosen) == LARGEST_COUNT:
                self.refuse(Candidate("", shown, candidate.path), f"there are {LARGEST_COUNT} before it")
                continue
            self.chosen.append((PREFIX + shown, each))
            self._note(shown, candidate.path, used="1", per=each.per, programs=" ".join(each.programs))

    def refuse(self, candidate, why, place=""):
        """Note that it is not used."""
        self._note(candidate.name.removeprefix(":"), candidate.path, used="0", why=why, place=place or candidate.path)

    def _note(self, name, path, **fields):
        self.notes.append(("collector", {"name": PREFIX + name, "path": path, **fields}))


def find(wanted, places, program, load_native):
    """The collectors of a program with that name: those that `wanted` names or, if that is None, those found in
    `places` (the group's directory, the account's, the file of resolved libraries). None if there are none."""
    found = Collected()
    for candidate in choose(candidates(*places), wanted, program):
        load(candidate, found, program if wanted is None else None, load_native)
    return found if found.chosen or found.notes else None


def candidates(group, account, resolved):
    """The collectors that there are, the group's first, then the account's, then those of packages."""
    found = []
    if group:
        found += in_directory(libraries.GROUP, os.path.join(group, libraries.LIBRARY_DIRECTORY))
    if account:
        found += in_directory(libraries.ACCOUNT, account)
    for source, (stamp, named) in (libraries.read_resolved(resolved) if resolved else {}).items():
        if source.endswith(libraries.PACKAGES) and source in sys.path:
            of_collectors = [each for each in named if libraries.is_collector(each[2])]
            found += libraries.known(libraries.PACKAGE, source, stamp, of_collectors)
    return found


def in_directory(level, directory):
    """The collectors of a directory: the files `interpose_<prefix>.py` and `.so`."""
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    return [
        Candidate(level, name[len(OF_COLLECTORS) : -3], os.path.join(directory, name))
        for name in names
        if name.startswith(OF_COLLECTORS) and name.endswith((".py", ".so")) and len(name) > len(OF_COLLECTORS) + 3
    ]


def choose(there, wanted, program):
    """The collectors given by name or path, in that order; otherwise those with a prefix that begins the program's
    name, and those of packages."""
    if wanted is None:
        return [each for each in there if _is_for_prefix(each, program)]
    chosen = []
    for name in wanted:
        named = [each for each in there if each.is_called(name)]
        if not named and "/" in name:
            named = [Candidate("path", os.path.basename(name).rpartition(".")[0], os.path.abspath(name))]
        chosen += named[:1] or [Candidate("named", name, "", why_not="no such data collector")]
    return chosen


def _is_for_prefix(candidate, program):
    level, _, prefix = candidate.name.partition(":")
    return level == libraries.PACKAGE or program.startswith(prefix)


def load(candidate, found, program, load_native):
    """Add what a file declares, if the file is trusted and the collector is for this program; None: for any program."""
    why_not, place, declared = candidate.why_not, "", []
    if not why_not:
        why_not = distrust(candidate.path)
    if not why_not and candidate.path.endswith(".so"):
        declared, why_not = load_native(candidate.path, collectors.Collector)
    elif not why_not:
        names, why_not, place = libraries.run_file(candidate.path, candidate.name)
        declared = declarations(names, candidate.attribute.partition(":")[2])
    if not why_not and not declared:
        why_not = "it declares no data collector"
    if why_not:
        found.refuse(candidate, why_not, place or ("" if candidate.path else "INTERPOSE_COLLECTORS"))
        return
    declared = [each for each in declared if program is None or each.is_for(program)]
    if declared:
        found.add(candidate, declared)


def declarations(names, only=""):
    """The collectors among what a file made, each once, in the order in which they were made; or `only` that name's."""
    made = [names.get(only)] if only else names.values()
    declared = [getattr(each, collectors.DECLARED, None) for each in made if type(each) is type(load)]
    return list({id(each): each for each in declared if type(each) is collectors.Collector}.values())
