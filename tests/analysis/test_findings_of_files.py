"""Findings about files of a recorded program: what was replaced in between could not be kept."""

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey

# Each way to replace a file, with `new` for what replaces it.
REPLACED = {
    "os.replace": "os.replace(new, 'settings')",
    "os.rename by names": "os.rename(src=new, dst='settings')",
    "shutil.move": "shutil.move(new, 'settings')",
    "pathlib": "pathlib.Path(new).replace(pathlib.Path('settings'))",
    "os.link": "os.rename('settings', f'old{number}'), os.link(new, 'settings')",
    "os.symlink": "os.rename('settings', f'old{number}'), os.symlink(new, 'settings')",
}
READ = """
import os, pathlib, shutil
open("settings", "wb").write(b"0" * 1000)
for number in range(30):
    {write}
    with open("settings", "rb", buffering=0) as file:
        assert len(file.read(1000)) == 1000
"""
WRITE = """new = f"new{{number}}"
    with open(new, "wb") as file:
        file.write(b"1" * 1000)
    {way}"""


def is_repeated(done):
    """Whether the reads of the settings are found to be repeated work, however little time they take."""
    assert done.returncode == 0, done.stderr
    found = found_in(Survey(Analysis(done.experiment)), least_share=0)
    return "settings" in [each.about for each in found if each.rule == "repeated work"]


@pytest.mark.parametrize("way", REPLACED.values(), ids=REPLACED)
def test_what_is_read_after_it_was_replaced_is_not_repeated_work(traced, way):
    assert not is_repeated(traced(READ.format(write=WRITE.format(way=way))))


def test_what_is_read_while_others_are_replaced_is_repeated_work(traced):
    assert is_repeated(traced(READ.format(write=WRITE.format(way="os.replace(new, 'another')"))))
