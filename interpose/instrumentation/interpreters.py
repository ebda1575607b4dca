"""Which interpreter a command starts, and whether that interpreter would record.

A command is resolved as `interpose run` would start it; an interpreter is asked by running it briefly.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

from interpose.errors import Caught

ASK_SECONDS = 20
OLDEST = (3, 11)
PYTHON_NAME = re.compile(r"(python|pypy)([0-9]+(\.[0-9]+)?t?)?(d|-dbg)?")
OPTIONS_WITH_A_WORD = "XW"
OPTIONS_THAT_MATTER = "SIEsP"

REQUIRED = {"wrapt": "calls cannot be wrapped", "zstandard": "nothing is compressed or sampled"}

# What an interpreter is asked to print. It must run on any Python, also 2.7, must not import the working directory's
# files, and says where the start-up files lie in the directories that `site` reads.
QUESTION = f"required = {[*REQUIRED]}" + """
import sys
sys.path[:] = [path for path in sys.path if path]
import json, os, site
sites = list(getattr(site, "getsitepackages", list)())
if getattr(site, "ENABLE_USER_SITE", False):
    sites.append(site.getusersitepackages())
files = [os.path.join(path, name) for path in sites for name in ("interpose.pth", "interpose.start")]
try:
    import interpose
    version = interpose.__version__
except Exception:
    version = None
missing = []
for name in required:
    try:
        __import__(name)
    except Exception:
        missing.append(name)
print(json.dumps({
    "executable": sys.executable,
    "implementation": getattr(getattr(sys, "implementation", None), "name", "cpython"),
    "python": list(sys.version_info[:3]),
    "version": version,
    "flags": getattr(sys, "abiflags", ""),
    "missing": missing if version else [],
    "site": not sys.flags.no_site,
    "startup_files": [path for path in files if os.path.exists(path)],
}))
"""


class NotPython(Caught):
    """A command does not start Python itself; says what it is instead."""


class Interpreter(NamedTuple):
    """An interpreter, the options that it is started with, and the words after them (a script, `-m`, ...)."""

    path: str
    options: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


class Answer(NamedTuple):
    """What an interpreter said of itself; `version` is that of its own interpose, or None."""

    executable: str
    implementation: str
    python: tuple[int, ...]
    version: str | None
    site: bool
    startup_files: Sequence[str] = ()
    flags: str = ""  # of its ABI: "t" where it has no interpreter lock
    missing: Sequence[str] = ()  # packages that its interpose needs
    preloaded: bool = False  # our boot library is, where no start-up file of ours is read

    @property
    def python_version(self) -> str:
        """As one writes it: 3.12.1."""
        return ".".join(map(str, self.python))

    @property
    def is_free_threaded(self) -> bool:
        """Whether it has no interpreter lock."""
        return "t" in self.flags

    def install_command(self, package: str) -> str:
        """What installs a package there."""
        return f"{self.executable} -m pip install {package}"


def command_words(words: Sequence[str]) -> list[str]:
    """The words that `interpose run` starts for a command: our own interpreter for scripts, modules, directories."""
    if words[0] == "-m" or words[0].endswith(".py") or (os.path.isdir(words[0]) and not shutil.which(words[0])):
        return [sys.executable, *words]
    return list(words)


def interpreter_of(words: Sequence[str]) -> Interpreter:
    """The interpreter that a command starts.

    Raises NotPython where it starts something else, FileNotFoundError where there is no such command.
    """
    words = command_words(words)
    path = shutil.which(words[0])
    if path is None:
        raise FileNotFoundError(words[0])
    if is_python_name(path):
        return _split_options(path, words[1:])
    interpreter = _shebang(path)
    if not interpreter:
        raise NotPython(f"{path} is not Python")
    found = shutil.which(interpreter[0])
    if found is None:
        raise FileNotFoundError(interpreter[0])
    if not is_python_name(found):
        raise NotPython(f"{path} is run by {found}, not by Python")
    return _split_options(found, [*interpreter[1:], path, *words[1:]])


def is_python_name(path: str) -> bool:
    """Whether a program, or the file that it is a link to, is called as interpreters are: python, python3.12, pypy3."""
    return any(PYTHON_NAME.fullmatch(os.path.basename(each)) for each in (path, os.path.realpath(path)))


def ask(interpreter: Interpreter) -> Answer | None:
    """What the interpreter says of itself, with the options that matter; None if that makes no sense."""
    options = [option for option in interpreter.options if option[1] in OPTIONS_THAT_MATTER]
    environment = {**os.environ, "INTERPOSE": "0"}
    try:
        done = subprocess.run(
            [interpreter.path, *options, "-c", QUESTION],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ASK_SECONDS,
            check=True,
        )
        said = json.loads(done.stdout.splitlines()[-1])
        library = boot_library([interpreter.path, *interpreter.options])
        ours = tuple(said["python"][:2]) == sys.version_info[:2]
        return Answer(**{**said, "python": tuple(said["python"]), "preloaded": bool(library) and ours})
    except (OSError, ValueError, TypeError, KeyError, IndexError, subprocess.SubprocessError):
        return None


def boot_library(words: Sequence[str]) -> str:
    """The library that must be preloaded into a command's interpreter for recording; empty if none is needed."""
    try:
        from interpose.timing import shims
    except ImportError:  # nothing is compiled for this Python
        return ""
    path = shutil.which(words[0])
    library = shims.boot_library(os.fsencode(path), map(os.fsencode, words)) if path else b""
    return os.fsdecode(library)


def preload(environment: dict[str, str], words: Sequence[str]) -> dict[str, str]:
    """The environment for a command, with the boot library after other preloaded libraries, if it is needed."""
    library = boot_library(words)
    if not library:
        return environment
    before = [environment["LD_PRELOAD"]] if "LD_PRELOAD" in environment else []
    return {**environment, "LD_PRELOAD": ":".join([*before, library])}


def obstacles(answer: Answer) -> list[str]:
    """Why the interpreter would not record, in words; empty if it would."""
    if answer.implementation != "cpython":
        return [f"{answer.executable} is {answer.implementation}; interpose records CPython"]
    if answer.python[:2] < OLDEST:
        return [
            f"{answer.executable} is Python {answer.python_version};"
            f" interpose records {'.'.join(map(str, OLDEST))} and later"
        ]
    if answer.preloaded:
        return _without(answer)
    if not answer.site:
        return [f"{answer.executable} is started with -S: start-up files are not read"]
    if answer.version is None:
        return [f"{answer.executable} has no interpose; install it there: {answer.install_command('interpose')}"]
    if not answer.startup_files:
        return [f"{answer.executable} has interpose, but no interpose.pth where start-up files are read"]
    return _without(answer)


def _without(answer: Answer) -> list[str]:
    """What does not work for lack of a package, and how to install it."""
    return [
        f"{answer.executable} has no package {name}: {REQUIRED[name]}; install it: {answer.install_command(name)}"
        for name in answer.missing
    ]


def _split_options(path: str, words: Sequence[str]) -> Interpreter:
    """Separate the interpreter's own options, one letter each, from the script or `-m` and what follows."""
    options: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        for place, letter in enumerate(rest[0][1:], 1):
            if letter in "cm":
                return Interpreter(path, tuple(options), tuple(rest))
            if letter in OPTIONS_WITH_A_WORD:
                joined = rest[0][place + 1 :] or "".join(rest[1:2])
                options.append(f"-{letter}{joined}")
                del rest[: 0 if rest[0][place + 1 :] else 1]
                break
            options.append(f"-{letter}")
        del rest[:1]
    return Interpreter(path, tuple(options), tuple(rest))


def _shebang(path: str) -> list[str]:
    """The words of a script's first line after `#!`, without env; empty if it is not a script."""
    try:
        with open(path, "rb") as file:
            first, second = file.readline(512), file.readline(512)
    except OSError:
        return []
    if not first.startswith(b"#!"):
        return []
    words = os.fsdecode(first[2:]).split()
    if words and os.path.basename(words[0]) == "env":
        words = words[2:] if words[1:2] == ["-S"] else words[1:]
    if words == ["/bin/sh"] and second.startswith(b"'''exec' "):  # how installers write a long path
        words = [os.fsdecode(second[len(b"'''exec' ") :]).partition(' "$0"')[0].strip().strip('"')]
    return words
