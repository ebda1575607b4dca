"""Where benchmarks run: two environments of one interpreter, with a wheel of this checkout and without it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent
NOT_SOURCE = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "*.er", "__pycache__")
# What would make a start dearer than it is, or trace what is to be untraced.
NOT_INHERITED = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONSTARTUP", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Environments:
    """The interpreter without interpose and the one with it, a directory for what they write, and the peers to compare
    with: all, if that is None."""

    without: Path
    with_interpose: Path
    directory: Path
    against: frozenset[str] | None = None

    def run(
        self,
        program: str,
        *arguments: object,
        traced: Mapping[str, str] | None = None,
        keep: str = "",
        under: Sequence[str] = (),
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> Any:
        """What a program of `programs/` prints as JSON, run with interpose installed.

        `traced` are settings to trace it with, none if it is left out. The experiment is removed, or kept
        under the name `keep`. `under` are words in front of the program, for a peer. Raises RuntimeError where the
        program fails or nothing was recorded.
        """
        words = [str(self.with_interpose), *under, str(HERE / "programs" / program), *map(str, arguments)]
        with tempfile.TemporaryDirectory(dir=self.directory, ignore_cleanup_errors=True) as place:
            given = {**self.variables(place, traced), **variables}
            done = subprocess.run(words, env=given, stdout=subprocess.PIPE, cwd=place, text=True)
            if done.returncode:
                raise RuntimeError(f"{program} ended with {done.returncode}")
            experiment = Path(place, "test.1.er")
            if experiment.exists() != (traced is not None):
                raise RuntimeError(f"{program} was {'not ' if traced is not None else ''}traced")
            if keep:
                experiment.rename(self.directory / keep)
        return json.loads(done.stdout)

    def remove(self, kept: str) -> None:
        """Remove an experiment that was kept."""
        shutil.rmtree(self.directory / kept)

    def install(self, *packages: str) -> bool:
        """Install packages beside interpose; False if they cannot be."""
        try:
            _pip(self.with_interpose, "install", "--quiet", *packages)
        except subprocess.CalledProcessError:
            return False
        return True

    def has_peer(self, name: str, *packages: str) -> bool:
        """Whether a peer is to be compared with, and can be: its packages are installed."""
        wanted = self.against is None or name.lower() in self.against
        return wanted and (not packages or self.install(*packages))

    def variables(self, place: str, traced: Mapping[str, str] | None) -> dict[str, str]:
        """The environment variables of a program that is traced into `place`, or not traced."""
        kept = {
            name: text
            for name, text in os.environ.items()
            if name not in NOT_INHERITED and not name.startswith("INTERPOSE")
        }
        kept["XDG_STATE_HOME"] = place
        return kept if traced is None else {**kept, "INTERPOSE": "1", "INTERPOSE_DIR": place, **traced}


def make_environments(directory: Path, against: frozenset[str] | None = None) -> Environments:
    """The two environments, below `directory`. Raises subprocess.CalledProcessError where they cannot be."""
    without, with_interpose = (_make_environment(directory / name) for name in ("without", "with"))
    _pip(with_interpose, "install", "--quiet", str(_build_wheel(with_interpose, directory)))
    return Environments(without, with_interpose, directory, against)


def _make_environment(directory: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    return directory / "bin" / "python"


def _build_wheel(python: Path, directory: Path) -> Path:
    """A wheel of the checkout, built from a copy: a build leaves nothing in the tree."""
    source, wheels = directory / "source", directory / "wheels"
    shutil.copytree(CHECKOUT, source, ignore=NOT_SOURCE)
    _pip(python, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(source))
    return next(wheels.glob("interpose-*.whl"))


def _pip(python: Path, *words: str) -> None:
    """Run pip; what it says is shown where it fails."""
    variables = {name: text for name, text in os.environ.items() if name not in NOT_INHERITED}
    done = subprocess.run(
        [str(python), "-m", "pip", "--disable-pip-version-check", *words],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.stderr.write(done.stdout)
        done.check_returncode()
