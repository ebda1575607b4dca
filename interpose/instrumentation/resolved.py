"""Libraries that only a command resolves, because it takes TOML or entry points: kept in a flat file for programs.

Any command brings it up to date. A program believes it where the stamps of its sources (a project's pyproject.toml, a
directory of installed packages) are still right (interpose.instrumentation.libraries). It is
there only where such a library is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder

from interpose.config import project_file, settings_file, state
from interpose.config.trust import distrust
from interpose.errors import SettingError
from interpose.instrumentation import libraries, search

ENTRY_POINTS = "interpose.libraries"
COLLECTORS = "interpose.collectors"
SOURCES_AT_MOST = 500
Named = list[tuple[str, str, str]]


def refresh(group: str) -> list[str]:
    """Bring the file up to date for what this interpreter has installed and for the project in the directory `group`,
    if any; does nothing if nothing can be kept. Returns a line for each library that programs did not use until now.

    Raises SettingError for a project file that cannot be understood.
    """
    known = libraries.read_resolved(search.resolved_file(os.environ))
    wanted = {each: libraries.stamp_of(each) for each in _sources(group)}
    stale = [each for each, stamp in wanted.items() if known.get(each, ("", []))[0] != stamp]
    kept = {each: known[each] for each in known if each not in stale and os.path.exists(each)}
    looked_at = {each: (wanted[each], _resolve(each)) for each in stale}
    found = {each: had for each, had in looked_at.items() if had[1] or not each.endswith(libraries.PACKAGES)}
    if {**kept, **found} == known:
        return []
    directory = state.directory()
    if directory is not None:
        _write(os.path.join(directory, "libraries"), list({**kept, **found}.items())[-SOURCES_AT_MOST:])
    why = "changed, and no command had looked at it"
    named = [(name, source) for source, (_, had) in found.items() for name, _, _ in had]
    return [f"{name} was not used until now: {source} {why}" for name, source in named]


def _sources(group: str) -> Iterator[str]:
    for path in dict.fromkeys(sys.path):
        if path.endswith(libraries.PACKAGES) and os.path.isdir(path):
            yield path
    project = os.path.join(group, settings_file.FILE) if group else ""
    data = settings_file.read_plain(project) if project else None
    if data is not None and project_file.names_libraries(data) and not distrust(project):
        yield project


def _resolve(source: str) -> Named:
    found = _of_packages(source) if source.endswith(libraries.PACKAGES) else _of_project(source)
    return [each for each in found if not any(letter in text for text in each for letter in "\t\n")]


def _of_project(path: str) -> Iterator[tuple[str, str, str]]:
    """The libraries that a pyproject.toml names, by their files. Raises SettingError."""
    import tomllib

    try:
        with open(path, "rb") as file:
            named = tomllib.load(file)["tool"]["interpose"][project_file.LIBRARIES_KEY]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingError(f"{path}: {project_file.LIBRARIES_KEY}: {error}") from error
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise SettingError(f"{path}: {project_file.LIBRARIES_KEY} is not a list of files")
    for each in named:
        file_path = os.path.normpath(os.path.join(os.path.dirname(path), os.path.expanduser(each)))
        yield os.path.basename(each).removesuffix(".py"), file_path, "INTRINSICS"


def _of_packages(directory: str) -> Iterator[tuple[str, str, str]]:
    """The libraries that packages installed in the directory give by entry points; nothing of them is run.

    Their files are read as they are: importlib.metadata takes 40 ms to import, and every command comes here.
    """
    for name in sorted(os.listdir(directory)):
        if not name.endswith((".dist-info", ".egg-info")):
            continue
        data = settings_file.read_plain(os.path.join(directory, name, "entry_points.txt"))
        for group, shown, value in _entry_points(data) if data is not None and b"interpose." in data else ():
            module, _, attribute = (part.strip() for part in value.partition("[")[0].partition(":"))
            if path := _file_of(module, directory):
                yield shown, path, _attribute(group, attribute)


def _attribute(group: str, attribute: str) -> str:
    """As it is kept: the name of a library's declarations; of a data collector its function's, if one is said."""
    if group == ENTRY_POINTS:
        return attribute or "INTRINSICS"
    return f"{libraries.COLLECTOR}:{attribute}"


def _entry_points(data: bytes) -> Iterator[tuple[str, str, str]]:
    """The group, name and value of what an entry_points.txt has for us."""
    ours = ""
    for line in data.decode("utf-8", "replace").splitlines():
        line = line.strip()
        name, equals, value = line.partition("=")
        if line.startswith("["):
            ours = line.strip("[]") if line in (f"[{ENTRY_POINTS}]", f"[{COLLECTORS}]") else ""
        elif ours and equals and not line.startswith(("#", ";")):
            yield ours, name.strip(), value.strip()


def _file_of(module: str, directory: str) -> str:
    """The path of a module, without importing its parents, as an editable package would require; empty if unknown."""
    places: Iterable[str] | None = [directory, *sys.path]
    spec = None
    for place in range(1, module.count(".") + 2):
        spec = PathFinder.find_spec(".".join(module.split(".")[:place]), list(places or ()))
        if spec is None:
            return ""
        places = spec.submodule_search_locations
    return spec.origin if spec is not None and spec.origin and spec.origin.endswith(".py") else ""


def _write(path: str, sources: list[tuple[str, tuple[str, Named]]]) -> None:
    """In a file that replaces the old one: a reader sees the one or the other; none if there is nothing to say."""
    lines = []
    for source, (stamp, named) in sources:
        lines.append(f"source\t{source}\t{stamp}\n")
        lines += ["\t".join(("library", *each)) + "\n" for each in named]
    newer = f"{path}.{os.getpid()}"
    try:
        if not lines:
            return os.unlink(path)
        descriptor = os.open(newer, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            file.write(os.fsencode("".join(lines)))
        os.rename(newer, path)
    except OSError:
        pass
