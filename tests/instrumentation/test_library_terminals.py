"""The system library's packages for terminals and files: what is shown, asked and opened."""

import sys

import pytest
from exercises import assert_recorded_as_said, source_of
from tracing import Traced, run_in, write_program

pytestmark = pytest.mark.packages


def test_what_rich_click_and_prompt_toolkit_show_and_ask_is_recorded(tmp_path):
    for package in ("rich", "click", "prompt_toolkit", "aiofiles"):
        pytest.importorskip(package)
    program = write_program(tmp_path, source_of("at_the_terminal"))

    done = Traced(
        tmp_path,
        run_in(tmp_path, [sys.executable, str(program)], input="sesame\ny\n", INTERPOSE="1"),
    )

    assert_recorded_as_said(done, "at_the_terminal")
