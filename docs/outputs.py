"""Puts what commands print into the pages: `python docs/outputs.py`, or only into the pages named after it.

A comment `<!-- output of COMMAND -->` in a page has a block of text below it: what the command prints about the
experiment that `OUTPUTS` names for it.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from recorded_examples import TOP, Workplace

WIDTH = 100
# The experiment that a command is about, by page and command.
OUTPUTS = {
    ("native.md", "interpose report --by intrinsic --limit 6"): "commits",
    ("native.md", "interpose processes"): "pipe",
    ("many-experiments.md", "interpose report 'nightly.*.er'"): "nightly",
    ("counters.md", "interpose report --by function --limit 8"): "counted",
    ("counters.md", "interpose display -metrics e.cpu:e.faults:i.faults:i.switches -limit 5 -functions"): "counted",
    ("filters.md", """interpose events --filter "KIND == 'db' && WALLL > 5ms\""""): "orders",
}
_BLOCK = re.compile(r"(<!-- output of (?P<command>[^\n]+) -->\n\n```text\n)(?P<shown>.*?)(?=```)", re.S)


def blocks(page: str) -> dict[str, str]:
    """What a page shows of commands, by command."""
    text = (TOP / "docs" / page).read_text(encoding="utf-8")
    return {found["command"]: found["shown"] for found in _BLOCK.finditer(text)}


def printed(place: Workplace, page: str, command: str) -> str:
    """What the command of a page prints now."""
    experiment = getattr(place, OUTPUTS[page, command])
    asked = command if experiment in command else f"{command} {experiment}"
    lines = place.shown(f"COLUMNS={WIDTH} {asked} 2>&1 | cat").split("\n")
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _write(place: Workplace, page: str) -> None:
    path = TOP / "docs" / page
    text = path.read_text(encoding="utf-8")
    path.write_text(_BLOCK.sub(lambda found: found[1] + printed(place, page, found["command"]), text))


def main(chosen: list[str]) -> None:
    """Record the examples, and write the blocks of the pages that are chosen, or of all."""
    with tempfile.TemporaryDirectory() as directory:
        place = Workplace(directory)
        for page in chosen or dict.fromkeys(page for page, _ in OUTPUTS):
            _write(place, page)


if __name__ == "__main__":
    main(sys.argv[1:])
