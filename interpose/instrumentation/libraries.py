"""The libraries other than the system library: finding them, checking whether they are trusted, and their declarations.

The traced program imports this module if any place for libraries exists. Nothing here raises or prints: mistakes of a
library are noted in the experiment, and the others are used.
"""

import os
import stat
import sys

from interpose import library
from interpose.config import project_file, settings_file
from interpose.config.trust import distrust
from interpose.library import Intrinsic

LARGEST_BYTES = 1 << 20
GROUP, ACCOUNT, PACKAGE = "group", "account", "package"
LIBRARY_DIRECTORY = "interpose.d"
PACKAGES = ("site-packages", "dist-packages")
COLLECTOR = "@collector"  # for a library's declarations under another name
OF_COLLECTORS = "interpose_"  # how files of data collectors begin (interpose.capture.collecting)


class Candidate:
    """A library that may be used: where it was found, its name there, its file, and the name of its declarations."""

    __slots__ = ("attribute", "level", "name", "path", "why_not")

    def __init__(self, level, name, path, attribute="INTRINSICS", why_not=""):
        self.level = level
        self.name = f"{level}:{name}"
        self.path = path
        self.attribute = attribute
        self.why_not = why_not

    def is_called(self, name):
        """Whether a word of INTERPOSE_XL means it."""
        return name in (self.level, self.name, self.name.partition(":")[2], self.path)


class Found:
    """The libraries other than the system library: their declarations in search order, the notes, the catch-all."""

    def __init__(self):
        self.libraries = []  # names and intrinsics
        self.notes = []  # names and fields of elements in map.xml
        self.paths = []
        self.catch_all = None
        self.has_system = False

    def sound(self, name, intrinsics):
        """Those of a library's declarations that are some; the others are noted."""
        kept = []
        for intrinsic in intrinsics:
            why = library.wrong_with(intrinsic)
            if not why:
                kept.append(intrinsic)
                continue
            target = str(intrinsic.target)[:200]
            self.notes.append(("failure", {"library": name, "target": target, "place": intrinsic.place, "why": why}))
        return kept

    def resolve(self, ours, layers):
        """The intrinsics of all, ours last unless they have another place."""
        ordered = [ours if name == library.SYSTEM else (name, had) for name, had in self.libraries]
        try:
            return library.resolve(ordered if self.has_system else [*ordered, ours], layers)
        except Exception as error:  # invalid declarations
            self.notes.append(("library", {"name": "all", "used": "0", "why": type(error).__name__}))
            return library.resolve([ours], layers)


def load(wanted, places):
    """The requested libraries among those in `places`: the group's directory, the account's, the resolved ones."""
    found = Found()
    for candidate in choose(candidates(*places), wanted.xl):
        if candidate is None:
            found.libraries.append((library.SYSTEM, ()))
            found.has_system = True
        else:
            _load(candidate, found, wanted.unsat)
    if found.catch_all is None and wanted.unsat not in ("off", "skip"):
        why_not = "no library has such a function"
        fields = {"name": wanted.unsat, "used": "0", "why": why_not, "place": "INTERPOSE_UNSAT"}
        found.notes.append(("library", fields))
    return found


def candidates(group, account, resolved):
    """The libraries that there are, in search order."""
    sources = read_resolved(resolved) if resolved else {}
    found = []
    if group:
        found += in_directory(GROUP, os.path.join(group, LIBRARY_DIRECTORY))
        found += _of_project(os.path.join(group, settings_file.FILE), sources)
    if account:
        found += in_directory(ACCOUNT, account)
    for source, (stamp, named) in sources.items():
        if source.endswith(PACKAGES) and source in sys.path:
            found += known(PACKAGE, source, stamp, [each for each in named if not is_collector(each[2])])
    return found


def is_collector(attribute):
    """Whether what a package named is no library but a data collector."""
    return attribute.startswith(COLLECTOR)


def in_directory(level, directory):
    """The libraries of a directory by name: its Python files with names that begin with a letter."""
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    return [
        Candidate(level, name[:-3], os.path.join(directory, name))
        for name in names
        if name.endswith(".py") and name[0] not in "._" and not name.startswith(OF_COLLECTORS)
    ]


def _of_project(path, sources):
    """The libraries that a project's file names; without its TOML being read."""
    data = settings_file.read_plain(path)
    if data is None or not project_file.names_libraries(data):
        return []
    if why_not := distrust(path) or ("" if path in sources else _stale(path)):
        return [Candidate(GROUP, settings_file.FILE, path, why_not=why_not)]
    return known(GROUP, path, *sources[path])


def known(level, source, stamp, named):
    """The candidates that a source has named; not to be used where it has changed since."""
    why_not = "" if stamp == stamp_of(source) else _stale(source)
    return [Candidate(level, name, path, attribute, why_not) for name, path, attribute in named]


def _stale(source):
    return f"no interpose command has looked at {source} since it changed: any of them does, as interpose doctor"


def choose(candidates, wanted):
    """Those that `wanted` names, in its order, and None for ours; all where it names none."""
    chosen = [] if wanted else list(candidates)
    for name in wanted:
        if name == library.SYSTEM:
            chosen.append(None)
            continue
        named = [each for each in candidates if each.is_called(name)]
        if not named and "/" in name:
            named = [Candidate("path", os.path.basename(name).removesuffix(".py"), os.path.abspath(name))]
        chosen += named or [Candidate("xl", name, "", why_not="no such library")]
    return chosen


def _load(candidate, found, catch_all):
    why_not, place, names = candidate.why_not, "", {}
    if not why_not:
        why_not = distrust(candidate.path)
    if not why_not:
        names, why_not, place = run_file(candidate.path, candidate.name)
    intrinsics = names.get(candidate.attribute)
    if not why_not and not _are_declarations(intrinsics):
        why_not = f"{candidate.attribute} is not a list of Intrinsic"
    fields = {"name": candidate.name, "path": candidate.path, "used": "0" if why_not else "1"}
    if why_not:
        fields.update({"why": why_not, "place": place or candidate.path or "INTERPOSE_XL"})
    else:
        found.libraries.append((candidate.name, found.sound(candidate.name, intrinsics)))
        found.paths.append(candidate.path)
    if found.catch_all is None and callable(names.get(catch_all.rpartition(".")[2])):
        found.catch_all = names[catch_all.rpartition(".")[2]]
    found.notes.append(("library", fields))


def _are_declarations(found):
    return type(found) in (list, tuple) and all(type(each) is Intrinsic for each in found)


def run_file(path, name):
    """Run a library's file: the names it made, why that failed, and where."""
    made = type(sys)(name)
    made.__file__ = path
    library.loading(path)
    sys.modules[name] = made  # for as long as that takes: classes ask for their modules
    try:
        exec(compile(_read(path), path, "exec", dont_inherit=True), made.__dict__)
    except KeyboardInterrupt:
        raise
    except SyntaxError as error:
        return {}, f"{type(error).__name__}: {error.msg}", f"{path}:{error.lineno or 1}"
    except BaseException as error:
        return {}, f"{type(error).__name__}: {_text(error)}", f"{path}:{_line(error, path)}"
    finally:
        library.loading("")
        sys.modules.pop(name, None)
    return made.__dict__, "", ""


def _text(error):
    try:
        return str(error)[:200]
    except Exception:
        return "?"


def _line(error, path):
    line, traceback = 1, error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == path:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _read(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        parts, left = [], LARGEST_BYTES + 1
        while left and (part := os.read(descriptor, left)):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(descriptor)
    if not left:
        raise ValueError("it is too large for a library")
    return b"".join(parts)


# --- what was resolved by commands: a source's line (its path and stamp), then a line for each of its libraries


def stamp_of(path):
    """A text that changes when a file or directory does; empty if it does not exist."""
    try:
        there = os.stat(path)
    except OSError:
        return ""
    return f"{there.st_mtime_ns} {there.st_size} {there.st_ino}"


def read_resolved(path):
    """Of each source its stamp, and its libraries as (name, path, attribute); nothing if that file is not safe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        there = os.fstat(descriptor)
        safe = there.st_uid == os.geteuid() and stat.S_ISREG(there.st_mode) and not there.st_mode & 0o077
        data = os.read(descriptor, LARGEST_BYTES) if safe else b""
    except OSError:
        data = b""
    finally:
        os.close(descriptor)
    sources: dict[str, tuple[str, list[tuple[str, str, str]]]] = {}
    named: list[tuple[str, str, str]] = []
    for fields in [line.split("\t") for line in os.fsdecode(data).split("\n")]:
        if fields[0] == "source" and len(fields) == 3:
            named = []
            sources[fields[1]] = (fields[2], named)
        elif fields[0] == "library" and len(fields) == 4:
            named.append((fields[1], fields[2], fields[3]))
    return sources
