"""The interpreter takes a second chunk of memory for frames, and gives it back: the frames are read in each state."""

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.any_python

TOP = Path(__file__).parents[2]
READERS = [TOP / "cext" / "sampler" / f"{name}.c" for name in ("stack_memory", "pieces", "remote", "beside")]


@pytest.mark.parametrize("inner", ["below", "above"])
def test_frames_are_read_while_a_chunk_is_given_back_and_afterwards(tmp_path, compiler, inner):
    """Until the chunk is unmapped, the thread still notes the end of that chunk, which may be below its frames."""
    sources = [Path(__file__).with_name("moving_frames.c"), *READERS]
    words = [compiler, "-O1", f"-I{TOP / 'cext'}", *sources, "-o", tmp_path / "moving"]
    subprocess.run([str(word) for word in words], check=True)

    done = subprocess.run([tmp_path / "moving", inner], capture_output=True, text=True, check=True)

    assert done.stdout.split("\n")[:-1] == ["9000 1", "600 1", "9000 1", "8000 1", "9160 1"]
