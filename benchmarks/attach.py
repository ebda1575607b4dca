"""How long attaching to a running program takes, and for how long that stands still: it computes, or it waits."""

from __future__ import annotations

import re
import subprocess
import tempfile
from statistics import median

from environments import Environments
from measuring import Effort, Row

TITLE = "Attaching to a running program, and detaching"
PROGRAMS = {
    "computes": "import os\nprint(1, flush=True)\nwhile True: os.stat('/')",
    "waits": "import time\nprint(1, flush=True)\nwhile True: time.sleep(0.01)",
}
_FIGURES = re.compile(r"took ([\d.,]+) (m?s); the program stood still for ([\d.,]+) (m?s)")


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Medians and the longest of times in milliseconds."""
    rows = []
    for name, source in PROGRAMS.items():
        for command, found in _times_ms(environments, source, effort.starts).items():
            for what, reach, figures in (("took", "2 s", found[0]), ("stood still", "300 ms", found[1])):
                row = f"{command}, a program that {name}: {what}"
                rows.append(Row(row, f"{median(figures):.0f} ms", f"at most {max(figures):.0f} ms", "", reach))
    return rows


def _times_ms(environments: Environments, source: str, times: int) -> dict[str, tuple[list[float], list[float]]]:
    place = tempfile.mkdtemp(dir=environments.directory)
    python, variables = environments.with_interpose, environments.variables(place, None)
    program = subprocess.Popen([python, "-c", source], env=variables, cwd=place, stdout=subprocess.PIPE)
    found: dict[str, tuple[list[float], list[float]]] = {"attach": ([], []), "detach": ([], [])}
    try:
        assert program.stdout is not None
        program.stdout.readline()
        for _ in range(times):
            for command, (took, still) in found.items():
                words = [python, "-m", "interpose", command, str(program.pid)]
                done = subprocess.run(words, env=variables, cwd=place, capture_output=True, text=True, check=True)
                figures = _FIGURES.search(done.stdout)
                if figures is None:
                    raise RuntimeError(f"{command}: {done.stdout}")
                took.append(_milliseconds(figures[1], figures[2]))
                still.append(_milliseconds(figures[3], figures[4]))
    finally:
        program.kill()
        program.wait()
    return found


def _milliseconds(number: str, unit: str) -> float:
    return float(number.replace(",", "")) * (1 if unit == "ms" else 1000)
