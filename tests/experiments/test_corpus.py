"""Hostile inputs that are kept: every command that reads refuses them in a line, or reads them in part."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import hostile
from tests.corpus.make import made

pytestmark = pytest.mark.slow

OUTSIDE = Path("/tmp/out.er")


@pytest.mark.parametrize("reader", hostile.readers())
def test_what_is_hostile_is_told_in_a_line_in_bounded_memory_and_writes_nothing_elsewhere(reader, tmp_path):
    places = {name: tmp_path / name for name in ("top", "tmp", "work", "state")}
    for place in places.values():
        place.mkdir()
    variables = {name: value for name, value in os.environ.items() if not name.startswith("INTERPOSE")}
    variables |= {"TMPDIR": str(places["tmp"]), "XDG_STATE_HOME": str(places["state"])}
    top = str(Path(__file__).parents[2])
    read = f"import sys; sys.path.append({top!r}); from tests.hostile import read_known; read_known(*sys.argv[1:])"

    done = subprocess.run(
        [sys.executable, "-c", read, reader, str(places["top"])],
        cwd=places["work"],
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert set(os.listdir(places["top"])) <= {hostile.NAME}
    assert not any(os.listdir(places[name]) for name in ("tmp", "work", "state"))
    assert not OUTSIDE.exists()


def test_every_reader_has_inputs_that_are_kept_and_what_made_them():
    kept = {f"{path.parent.name}/{path.name}" for path in hostile.CORPUS.glob("*/*")}
    by_hand = {name for name in kept if "/found-" not in name and "__pycache__" not in name}

    assert {name.partition("/")[0] for name in by_hand} == set(hostile.readers())
    # What they hold is as the format was when they were made.
    assert by_hand == {f"{reader}/{name}" for reader, name, _ in made()}
