"""Findings about files of a recorded program: what was replaced in between could not be kept."""

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.files import reopened
from interpose.analysis.findings.finding import found
from interpose.analysis.findings.survey import Survey
from interpose.experiments.model.stacks import Site
from interpose.reports.sentences.sentences import Sentences

# Each way to save a file sixty times, with how many files that makes of what is forced.
SAVED = {
    "new, then renamed": ("wb", "os.replace('new', 'saved')", 60),
    "new, then linked": ("wb", "os.link('new', f'saved{number}'), os.unlink('new')", 60),
    "temporary": ("wb", "os.unlink('new')", 60),
    "appended": ("ab", "pass", 1),
    "appended, while others are renamed elsewhere": ("ab", "os.replace('other/a', 'other/b')", 1),
}
SAVE = """
import os, pathlib
os.mkdir("other")
counted = 0
for number in range(60):
    pathlib.Path("other/a").touch()
    with open("new", "{mode}") as file:
        file.write(b"1" * 1000)
        file.flush()
        os.fsync(file.fileno())
        counted += 1
    {way}
print(counted)
"""

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
    told = found_in(Survey(Analysis(done.experiment)), least_share=0)
    return "settings" in [each.about for each in told if each.rule == "repeated work"]


@pytest.mark.parametrize("way", REPLACED.values(), ids=REPLACED)
def test_what_is_read_after_it_was_replaced_is_not_repeated_work(traced, way):
    assert not is_repeated(traced(READ.format(write=WRITE.format(way=way))))


def test_what_is_read_while_others_are_replaced_is_repeated_work(traced):
    assert is_repeated(traced(READ.format(write=WRITE.format(way="os.replace(new, 'another')"))))


def forced(done):
    """The finding that a file was forced to the disk too often, if it is one, however little time that took."""
    assert done.returncode == 0, done.stderr
    told = found_in(Survey(Analysis(done.experiment)), least_share=0)
    return [(each.calls, each.units) for each in told if each.rule == "fsync storm"]


@pytest.mark.parametrize(("mode", "way", "files"), SAVED.values(), ids=SAVED)
def test_a_file_that_is_made_anew_and_forced_once_each_time_is_forced_as_often_as_it_must(traced, mode, way, files):
    done = traced(SAVE.format(mode=mode, way=way))

    assert forced(done) == ([(int(done.stdout), 1)] if files == 1 else [])


def test_a_file_that_is_made_anew_and_forced_at_each_write_is_forced_too_often(traced):
    done = traced("""
import os
counted = 0
for number in range(30):
    with open("new", "wb", buffering=0) as file:
        for _ in range(4):
            file.write(b"1" * 1000)
            os.fsync(file.fileno())
            counted += 1
    os.replace("new", "saved")
print(counted)
""")

    assert forced(done) == [(int(done.stdout), 30)]


def test_a_directory_that_is_forced_after_each_new_name_is_forced_as_often_as_it_must(traced):
    done = traced("""
import os
directory = os.open(".", os.O_RDONLY)
for number in range(30):
    with open("new", "wb", buffering=0) as file:
        file.write(b"1" * 1000)
    os.replace("new", "saved")
    os.fsync(directory)
""")

    assert forced(done) == []


REREAD = """
import os
opened = 0
def load(number):
    global opened
    with open("settings") as file:
        opened += 1
        return file.read()
def change(number):
    {change}
open("settings", "w").write("0" * 1000)
for number in range(30):
    load(number)
    change(number)
print(opened)
"""


@pytest.mark.parametrize(
    ("change", "is_told"),
    [
        ("pass", True),
        ("number == 20 and open('settings', 'a').write('1')", False),
        ("open('new', 'w').close(), number == 20 and os.replace('new', 'settings')", False),
    ],
    ids=["never", "written", "replaced"],
)
def test_a_file_that_a_function_opens_again_and_again_is_known_unless_it_changed_meanwhile(traced, change, is_told):
    done = traced(REREAD.format(change=change))
    assert done.returncode == 0, done.stderr

    again = reopened(Survey(Analysis(done.experiment)), ("load", str(done.directory / "program.py")))

    assert again == (("settings", int(done.stdout)) if is_told else ("", 0))


def test_what_a_function_opened_again_is_said_of_one_that_computes():
    site = Site("/home/u/app.py", 6, "load", True)

    finding = found("computing", (), time_ns=1_000_000_000, site=site, reopened=("/home/u/settings", 30))

    said = Sentences([finding], "/home/u", 2_000_000_000).of(finding)
    assert said.endswith(' (1.00 s of 2.00 s). It opened "settings" 30 times without a recorded change.')
