"""What the tests of data collectors record with."""

import textwrap

import pytest
from collecting import BEFORE, PROGRAM


@pytest.fixture
def collected(traced, tmp_path):
    """Run a program's source with a data collector's source in its interpose.d."""

    def run(collecting, source, *arguments, file="interpose_program.py", timeout_s=120, **variables):
        directory = tmp_path / "interpose.d"
        directory.mkdir(exist_ok=True)
        (directory / file).write_text(BEFORE + textwrap.dedent(collecting))
        return traced(textwrap.dedent(PROGRAM) + textwrap.dedent(source), *arguments, timeout_s=timeout_s, **variables)

    return run
