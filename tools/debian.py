"""Debian's packages without installing them: fetched by apt into a cache, for a machine that may be another one.

The mirror is $DEBIAN_MIRROR, the cache $PYTHONS_CACHE or ~/.cache/pythons.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
NEWEST = "unstable"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
NOT_FETCHED = re.compile(r"^E: Failed to fetch (?P<file>\S+) *(?P<why>[^\[\n]*)", re.MULTILINE)  # [its address]
CACHE = Path(os.environ.get("PYTHONS_CACHE") or Path.home() / ".cache" / "pythons").absolute()


class Failed(Exception):
    """What could not be done, and why."""


class NotFetched(Failed):
    """A file that could not be fetched, and why."""


class Packages:
    """What apt knows of one suite for one machine: by default a machine like this one that has nothing yet.

    `place` is a directory of the cache, `architecture` Debian's name of it, `installed` dpkg's list of what the machine
    has already, which is not fetched.
    """

    def __init__(
        self,
        place: Path,
        suite: str = NEWEST,
        architecture: str | None = None,
        installed: Path | None = None,
    ) -> None:
        self.place, self.suite, self.architecture, self.installed = place, suite, architecture, installed

    def fetch(self, names: Iterable[str]) -> list[Path]:
        """The files of these packages and of all that they need, and of what was fetched before."""
        run(*self._apt_get("deb"), "install", "-y", "--download-only", *names)
        return sorted(self.place.glob("cache/archives/*.deb"))

    def fetch_alone(self, name: str, directory: Path) -> Path:
        """The file of this package."""
        run(*self._apt_get("deb"), "download", name, within=directory)
        return next(directory.glob(f"{name}_*.deb"))

    def fetch_source(self, name: str, directory: Path) -> Path:
        """The archive of the sources that the package is made from. Raises NotFetched if the mirror lacks it."""
        run(*self._apt_get("deb-src"), "source", "--download-only", "--tar-only", name, within=directory)
        return next(directory.glob("*.orig.tar.*z"))

    def _apt_get(self, sort: str) -> list[str]:
        """The first words of a command that uses packages of this sort."""
        for directory in ("lists/partial", "cache/archives/partial"):
            (self.place / directory).mkdir(parents=True, exist_ok=True)
        (self.place / "status").touch()
        (self.place / "sources.list").write_text(f"{sort} [signed-by={KEYS}] {MIRROR} {self.suite} main\n")
        options = {
            "Dir::Etc::sourcelist": f"{self.place}/sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": f"{self.place}/lists",
            "Dir::State::status": str(self.installed or self.place / "status"),
            "Dir::Cache": f"{self.place}/cache",
            "APT::Install-Recommends": "0",
            "Debug::NoLocking": "1",
        }
        if self.architecture:
            options |= {"APT::Architecture": self.architecture, "APT::Architectures": self.architecture}
        words = ["apt-get", "-qq", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
        run(*words, "update")
        return words


def unpack(archive: Path, root: Path) -> None:
    """Put the files of a package there."""
    run("dpkg-deb", "-x", str(archive), str(root))


def check(needed: dict[str, str]) -> None:
    """Raise Failed if one of the commands is missing, with the package that has it."""
    for command, package in needed.items():
        if not shutil.which(command):
            raise Failed(f"no {command} here: install the package {package}")


def run(*words: str, within: Path | None = None, env: dict[str, str] | None = None) -> None:
    """Raise Failed with the last line of what a command says, if it fails; NotFetched with the file that apt lacks."""
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(words, cwd=within, env={**os.environ, **(env or {})}, text=True, **both)
    if done.returncode and (missing := NOT_FETCHED.search(done.stdout)):
        raise NotFetched(f"could not fetch {missing['file']}: {' '.join(missing['why'].split())}")
    if done.returncode:
        raise Failed(f"{words[0]} failed: {last_line(done)}")


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """What a command said last."""
    return (done.stdout.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
