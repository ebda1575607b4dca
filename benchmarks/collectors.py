"""What a data collector costs a recorded call: one in C and one in Python, that name nothing or every call, or fail."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

from environments import HERE, Environments
from measuring import Effort, Row, take_turns

TITLE = "Data collectors, on a raw file's tell()"

ROUNDS = 25
CALLS = 1_000
SOURCES = HERE / "programs" / "collectors"
IN_C, IN_PYTHON, OFF = "at most 20 ns more", "at most 400 ns more", "nothing"
SUBJECTS = {
    "in C, declines": ("idle.so", IN_C),
    "in C, names every call": ("naming.so", ""),
    "in Python, declines": ("idle.py", IN_PYTHON),
    "in Python, names every call": ("naming.py", IN_PYTHON),
    "in Python, has raised ten times": ("raising.py", OFF),
}


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """What the quickest rounds take more than with no collector."""
    directory = environments.directory / "collectors"
    why_not = _prepare(environments, directory)
    if why_not:
        return [Row("not measured", why_not)]
    run = partial(environments.run, "collectors.py", ROUNDS, CALLS)
    subjects = {"none": partial(run, traced={"INTERPOSE_COLLECTORS": "off"})}
    for name, (file, _) in SUBJECTS.items():
        subjects[name] = partial(run, traced={"INTERPOSE_COLLECTORS": str(directory / file)})
    least_ns = {name: min(turns) for name, turns in take_turns(subjects, effort.turns).items()}
    rows = [Row("without a collector", f"{least_ns['none']:,.0f} ns")]
    for name, (_, reach) in SUBJECTS.items():
        rows.append(Row(name, f"{least_ns[name] - least_ns['none']:+,.0f} ns", reach=reach))
    return rows


def _prepare(environments: Environments, directory: Path) -> str:
    """Compile those in C beside those in Python; why that cannot be, if it cannot."""
    shutil.copytree(SOURCES, directory, dirs_exist_ok=True)
    for path in (directory, *directory.iterdir()):
        os.chmod(path, 0o700)
    asked = "import interpose; print(interpose.__path__[0])"
    words = [str(environments.with_interpose), "-c", asked]
    package = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    for name in ("idle", "naming"):
        source, library = directory / f"{name}.c", directory / f"{name}.so"
        compiler = [os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", f"-I{package}/include"]
        try:
            subprocess.run([*compiler, str(source), "-o", str(library)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            return str(error)
    return ""
