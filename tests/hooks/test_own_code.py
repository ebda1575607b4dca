"""Which code is the program's own: what installers generate for a package is not."""

import os
import subprocess
import sys
from zipfile import ZipFile

import pytest
from tracing import Traced, events_of, write_program

from interpose.analysis.coverage.coverage import Asked, coverage
from interpose.experiments.model.sampled import Sampled

GENERATED = {
    "pip": """
import sys
from mimetypes import init
if __name__ == '__main__':
    sys.argv[0] = sys.argv[0].removesuffix('.exe')
    sys.exit(init())
""",
    "pip until 25": r"""
# -*- coding: utf-8 -*-
import re
import sys
from mimetypes import init
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\.pyw|\.exe)?$', '', sys.argv[0])
    sys.exit(init())
""",
    "uv": """
import sys
from mimetypes import init
if __name__ == "__main__":
    if sys.argv[0].endswith("-script.pyw"):
        sys.argv[0] = sys.argv[0][:-11]
    elif sys.argv[0].endswith(".exe"):
        sys.argv[0] = sys.argv[0][:-4]
    sys.exit(init())
""",
}
WRITTEN = {
    "another ending": """
import sys
from mimetypes import init
if __name__ == "__main__":
    if sys.argv[0].endswith(".gz"):
        sys.argv[0] = sys.argv[0][:-3]
    sys.exit(init())
""",
    "one more text": """
import sys
from mimetypes import init
if __name__ == "__main__":
    for path in sys.argv[1:]:
        if path.endswith(".exe"):
            sys.exit("no programs")
    init()
""",
    "no function of a package": """
import sys
import mimetypes
if __name__ == "__main__":
    if sys.argv[0].endswith(".exe"):
        sys.exit(1)
    mimetypes.init()
""",
}


def own_functions(done):
    """The program's own functions that calls were made from."""
    process = done.experiment.founder
    found = [process.own_line(event.stack) for event in events_of(process, "os.stat")]
    return {line.function for line in found if line and line.own}


@pytest.mark.parametrize("source", GENERATED.values(), ids=GENERATED)
def test_a_console_script_is_not_the_programs_own_code(traced, source):
    done = traced(source).ended_well()

    assert list(events_of(done.experiment.founder, "os.stat"))
    assert own_functions(done) == set()


@pytest.mark.parametrize("source", WRITTEN.values(), ids=WRITTEN)
def test_a_program_that_looks_much_like_one_is_own_code(traced, source):
    done = traced(source).ended_well()

    assert own_functions(done) == {"<module>"}


LIBRARY = """
import os, time

def compute():
    os.stat(".")
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass
"""
WAYS = {  # where the module lies, how it joins the path (if not at the start), and whether it is the program's own
    "packages, joined as by a start-up file": ("base/site-packages", "import site; site.addsitedir({!r})", False),
    "packages of Debian's": ("python3/dist-packages", "import site; site.addsitedir({!r})", False),
    "packages, inserted by the program": ("late/site-packages", "import sys; sys.path.insert(0, {!r})", False),
    "an editable installation": ("source", "import site; site.addsitedir({!r} + '/../venv/site-packages')", True),
    "a directory of another name": ("my-site-packages", "import sys; sys.path.insert(0, {!r})", True),
    "an archive": ("app.zip", "import sys; sys.path.insert(0, {!r})", True),
    "an archive at the start": ("app.zip", "", True),
    "packages in an archive, by a relative name": (
        "site-packages/app.zip",
        "import os, sys; sys.path.insert(0, os.path.relpath({!r}))",
        False,
    ),
    "packages at the start": ("base/site-packages", "", False),
}


def put_module(place):
    if place.suffix == ".zip":
        place.parent.mkdir(exist_ok=True)
        with ZipFile(place, "w") as archive:
            archive.writestr("somebodys.py", LIBRARY)
        return
    place.mkdir(parents=True)
    (place / "somebodys.py").write_text(LIBRARY)
    packages = place.parent / "venv/site-packages"
    packages.mkdir(parents=True)
    (packages / "editable.pth").write_text(f"{place}\n")


@pytest.mark.long
@pytest.mark.interpreter_lock
@pytest.mark.any_python
@pytest.mark.parametrize("way", WAYS)
def test_packages_are_a_librarys_whenever_they_join_the_path(tmp_path, own_environment, way):
    directory, join, is_own = WAYS[way]
    place = tmp_path / directory
    put_module(place)
    program = write_program(tmp_path, f"{join.format(str(place))}\nimport somebodys\nsomebodys.compute()\n")
    variables = own_environment if join else {**own_environment, "PYTHONPATH": str(place)}
    words = [sys.executable, "-m", "interpose", "run", "--record", "calls,coverage,profile", str(program)]

    done = Traced(tmp_path, subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True))

    founder = done.experiment.founder
    sampled = Sampled(founder)
    sites = {site for each in sampled.samples() for site in sampled.frames(each.stack)}
    covered = {os.path.basename(module.path) for module in coverage(done.experiment, Asked()).modules}
    assert ("compute" in own_functions(done)) == is_own
    assert {site.own for site in sites if site.function == "compute"} == {is_own}
    assert ("somebodys.py" in covered) == is_own


@pytest.mark.long
@pytest.mark.interpreter_lock
@pytest.mark.any_python
def test_samples_and_calls_name_a_file_alike_if_its_name_is_not_utf_8(tmp_path, own_environment):
    make = f"import os; exec(compile({LIBRARY!r}, os.fsdecode(b'/home/u/\\xe9t\\xe9.py'), 'exec'))\ncompute()\n"
    words = [sys.executable, "-m", "interpose", "run", "--record", "calls,profile", str(write_program(tmp_path, make))]

    done = Traced(tmp_path, subprocess.run(words, cwd=tmp_path, env=own_environment, capture_output=True, text=True))

    founder = done.experiment.founder
    sampled = Sampled(founder)
    sites = {site for each in sampled.samples() for site in sampled.frames(each.stack)}
    called = {founder.own_line(event.stack) for event in events_of(founder, "os.stat")}
    names = {site.file for site in called if site and site.function == "compute"}
    assert len(names) == 1
    assert {site.file for site in sites if site.function == "compute"} == names


@pytest.mark.any_python
def test_code_without_the_name_of_a_file_leaves_a_sound_experiment(traced, interpose):
    done = traced("import time\nexec(compile('time.sleep(0)\\n', '', 'exec'), {'time': time})\n")

    (event,) = events_of(done.experiment.founder, "time.sleep")
    assert done.experiment.founder.own_line(event.stack).file == "?"
    assert interpose("check", done.path).returncode == 0
