"""Makes the pictures of `interpose view` in docs/: `python docs/view_pictures.py`, with the extra `tui` installed."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from interpose.experiments.model.experiment import Experiment
from interpose.view.app import View

TOP = Path(__file__).parents[1]
SIZE = (100, 24)
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.S)  # a picture loads nothing
NUMBERED = re.compile(r"terminal-\d+")
PICTURES = {"view-source.svg": ["5"], "view-flame.svg": ["4", "c", "down", "down", "down"]}  # the keys to press


async def drawn(experiment: Experiment, keys: list[str]) -> str:
    """The picture of the view after these keys."""
    app = View(experiment)
    async with app.run_test(size=SIZE) as pilot:
        for key in [[], *([key] for key in keys)]:
            await pilot.press(*key)
            while not app.is_settled:
                await pilot.pause(0.05)
            await pilot.pause()
        return app.export_screenshot(title="interpose view")


def main() -> None:
    """Record the example, and draw it."""
    with tempfile.TemporaryDirectory() as directory:
        for name in ("orders.py", "orders.txt"):
            shutil.copy(TOP / "examples" / name, directory)
        words = [sys.executable, "-m", "interpose", "run", "orders.py", "orders.txt"]
        subprocess.run(words, cwd=directory, stdout=subprocess.DEVNULL, check=True)
        for name, keys in PICTURES.items():
            picture = asyncio.run(drawn(Experiment(f"{directory}/test.1.er"), keys))
            plain = NUMBERED.sub("terminal", FONTS.sub("", picture))
            (TOP / "docs" / name).write_text("\n".join(line.rstrip() for line in plain.splitlines()) + "\n")


if __name__ == "__main__":
    main()
