"""Copying, moving and removing experiments: what is there is never overwritten, strangers and links never touched."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.cli.main import main
from interpose.experiments.model.experiment import Experiment
from interpose.monitor import Monitor
from tests.experiments.test_hostile import small
from tests.tracing import environment

pytestmark = [pytest.mark.usefixtures("place"), pytest.mark.any_python]


@pytest.fixture
def interpose(capsys):
    """Runs a command line; gives exit code and what it said."""

    def run(*words):
        code = main(words)
        return code, capsys.readouterr().err

    return run


@pytest.fixture
def experiment(tmp_path):
    path = small(tmp_path / "test.1.er").write()
    small(path / "_f1.er").write()
    (path / "archives").mkdir()
    (path / "archives" / "index.jsonl").write_text("")
    return path


def contents(path):
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def test_a_copy_is_the_same_with_the_same_dates(tmp_path, experiment, interpose):
    os.utime(experiment / "log.xml", (1, 1))

    assert interpose("cp", "test.1.er", "copy.er") == (0, "")

    assert contents(tmp_path / "copy.er") == contents(experiment)
    assert os.stat("copy.er/log.xml").st_mtime == 1
    assert os.stat("copy.er").st_mode & 0o777 == 0o700


def test_several_are_copied_into_a_directory(tmp_path, experiment, interpose):
    small(tmp_path / "test.2.er").write()
    (tmp_path / "kept").mkdir()

    assert interpose("cp", "test.1.er", "test.2.er", "kept") == (0, "")

    assert sorted(os.listdir("kept")) == ["test.1.er", "test.2.er"]


def test_a_moved_experiment_is_at_its_new_place_alone(tmp_path, experiment, interpose):
    before = contents(experiment)

    assert interpose("mv", "test.1.er", "new.er") == (0, "")

    assert not experiment.exists()
    assert contents(tmp_path / "new.er") == before


@pytest.mark.parametrize("command", ["cp", "mv"])
def test_an_existing_target_is_an_error(tmp_path, experiment, interpose, command):
    (tmp_path / "new.er").mkdir()

    assert interpose(command, "test.1.er", "new.er") == (1, "interpose: new.er: already exists\n")

    assert os.listdir("new.er") == []
    assert experiment.exists()


@pytest.mark.parametrize("command", ["cp", "mv"])
def test_a_target_must_be_a_place_for_experiments(tmp_path, experiment, interpose, command):
    assert interpose(command, "test.1.er", "nowhere") == (
        2,
        "interpose: nowhere: not a directory, and does not end with .er\n",
    )
    assert interpose(command, "test.1.er", "test.1.er", "new.er")[0] == 2


def not_experiments(tmp_path):
    (tmp_path / "plain.er").mkdir()
    (tmp_path / "link.er").symlink_to(tmp_path / "test.1.er")
    (tmp_path / "file.er").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "log.xml").write_text("<experiment/>")
    (tmp_path / "foreign.er").mkdir()
    (tmp_path / "foreign.er" / "log.xml").write_text("<html/>")
    return ["plain.er", "link.er", "file.er", "other", "foreign.er", "gone.er", "test.1.er/_f1.er"]


@pytest.mark.parametrize("command", [["cp"], ["mv"], ["mv", "-f"], ["rm"], ["rm", "-f"]], ids=" ".join)
def test_only_experiments_are_touched(tmp_path, experiment, interpose, command):
    others = not_experiments(tmp_path)
    before = contents(tmp_path)

    for other in others:
        code, said = interpose(*command, other, *(["new.er"] if command[0] != "rm" else []))
        assert code == (0 if (other, command) == ("gone.er", ["rm", "-f"]) else 1), other
        assert said.count("\n") == code

    assert contents(tmp_path) == before
    assert os.path.islink("link.er")


def test_a_removed_experiment_is_gone_and_what_its_links_lead_to_is_not(tmp_path, experiment, interpose):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kept").write_text("x")
    (experiment / "link").symlink_to(tmp_path / "mine")
    (experiment / "_f2.er").symlink_to(tmp_path / "mine")

    refused = interpose("rm", "test.1.er")
    done = interpose("rm", "-f", "test.1.er")

    assert refused == (1, "interpose: test.1.er/_f2.er: not a file of the experiment; -f removes it all the same\n")
    assert done == (0, "")
    assert not experiment.exists()
    assert (tmp_path / "mine" / "kept").exists()


def test_the_names_of_descendants_that_were_not_recorded_are_the_experiment_s_own(tmp_path, interpose):
    show = f"for each in app01 app02 app03; do {sys.executable} -c 'import os' $each; done"
    assert interpose("run", "-F", "=app02", "--", "sh", "-c", show)[0] == 0
    assert (tmp_path / "test.1.er" / "_c1.er").is_file()
    assert interpose("cp", "test.1.er", "copy.er") == (0, "")

    assert interpose("rm", "test.1.er") == (0, "")

    assert not os.path.exists("copy.er/_c1.er")


def test_links_in_an_experiment_are_not_copied(tmp_path, experiment, interpose):
    (tmp_path / "secret").write_text("x")
    (experiment / "notes").symlink_to(tmp_path / "secret")

    interpose("cp", "test.1.er", "copy.er")

    assert not os.path.lexists("copy.er/notes")


def test_a_group_is_removed_with_its_experiments(tmp_path, experiment, interpose):
    small(tmp_path / "test.2.er").write()
    small(tmp_path / "test.3.er").write()
    (tmp_path / "both.erg").write_text("#interpose experiment group\ntest.1.er\ntest.2.er\n")

    assert interpose("rm", "both.erg") == (0, "")

    assert sorted(name for name in os.listdir() if ".er" in name) == ["test.3.er"]


def test_nothing_of_a_group_is_removed_where_one_cannot_be(tmp_path, experiment, interpose):
    (tmp_path / "both.erg").write_text("#interpose experiment group\ntest.1.er\ngone.er\n")

    assert interpose("rm", "both.erg") == (1, "interpose: gone.er: no such experiment\n")

    assert experiment.exists()


# Whole blocks at full speed, then a little rest: who reads all of it comes to an end.
BUSY = """
import os, sys, time
print(flush=True)
end = time.monotonic() + 30
while time.monotonic() < end:
    for _ in range(2000):
        os.stat(".")
    time.sleep(0.01)
"""


@pytest.fixture
def start(tmp_path, started):
    """Starts a program that is busy after its first line; it ends with the test."""

    def start(source):
        (tmp_path / "busy.py").write_text(source)
        started([sys.executable, "busy.py"], env=environment(INTERPOSE="1", INTERPOSE_NAME="busy"))
        time.sleep(0.05)

    return start


@pytest.fixture
def running(tmp_path, start):
    """The experiment of a program that is busy."""
    start(BUSY)
    return tmp_path / "busy.1.er"


@pytest.mark.parametrize("command", [["mv", "busy.1.er", "new.er"], ["rm", "busy.1.er"]])
def test_what_still_runs_is_left_alone_unless_forced(running, interpose, command):
    code, said = interpose(*command)
    assert (code, running.exists()) == (1, True)
    assert said.endswith(" it all the same\n") and "still runs; -f" in said

    assert interpose(*command, "-f") == (0, "")
    assert not running.exists()


@pytest.mark.long
def test_a_copy_of_what_still_runs_is_consistent(running, tmp_path, interpose):
    for number in range(20):
        assert interpose("cp", "busy.1.er", f"copy{number}.er") == (0, "")

        copied = Experiment(f"copy{number}.er")
        made = profile(Analysis(copied), "site")
        recorded = sum(thread.record.recorded for thread in copied.founder.threads)
        assert copied.damages.found == []
        assert sum(row.sums.calls for row in made.rows) >= recorded


@pytest.mark.interpreter_lock
@pytest.mark.long
def test_a_copy_of_what_still_runs_and_is_compressed_is_as_it_was_at_one_instant(running, tmp_path, interpose):
    monitor = Monitor(str(running))
    for number in range(5):
        until = time.monotonic() + 0.1
        while time.monotonic() < until:
            monitor.look()
        assert interpose("cp", "busy.1.er", f"copy{number}.er") == (0, "")

        copied = Experiment(f"copy{number}.er").founder
        calls = [event.call for block in copied.events.blocks() for event in copied.events.events(block)]
        assert calls == list(range(calls[0], calls[0] + len(calls)))
        assert len(calls) >= copied.threads[0].record.recorded
        assert interpose("check", f"copy{number}.er") == (0, "")
    monitor.close()
    assert (running / "events.zst").stat().st_size > 0


STARTING = """
import os, time
print(flush=True)
for number in range(10**9):
    if number % 20 == 0:
        time.sleep(0.005)  # who copies it comes to an end
    try:
        os.posix_spawn(f"/nowhere/{number}", ["x"], {})
    except OSError:
        pass
"""


@pytest.mark.long
@pytest.mark.parametrize("command", [["cp", "busy.1.er"], ["save", "busy.1.er", "-o"]], ids=["cp", "save"])
def test_what_is_begun_while_the_copy_is_made_is_in_it_with_its_name_or_not_at_all(tmp_path, start, interpose, command):
    start(STARTING)
    for number in range(10):
        assert interpose(*command, f"copy{number}.er") == (0, "")

        assert interpose("check", f"copy{number}.er") == (0, "")
        assert len(Experiment(f"copy{number}.er").founder.children) > 0


def test_no_directory_is_made_for_a_copy(running, interpose):
    code, said = interpose("cp", "busy.1.er", "nowhere/copy.er")

    assert (code, said.count("\n")) == (1, 1)
    assert not os.path.exists("nowhere")


def test_what_still_runs_is_packed_consistently(running, interpose, capsys):
    assert interpose("archive", "-q", "-o", "x.er.tar.zst", "busy.1.er") == (0, "")
    assert interpose("report", "x.er.tar.zst") == (0, "")


def without_rights_to_all_files(*words):
    """Ends as a user's `interpose` does, with root's number: exit code and what it said."""
    less = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner"] if os.geteuid() == 0 else []
    words = [*less, sys.executable, "-m", "interpose", *words]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="no setpriv")
@pytest.mark.parametrize("fixed", [".", "test.1.er", "test.1.er/_f1.er"])
def test_what_may_not_be_removed_as_a_whole_stays_as_a_whole(tmp_path, experiment, fixed):
    before = contents(experiment)
    (tmp_path / fixed).chmod(0o500)

    code, told = without_rights_to_all_files("rm", "test.1.er")

    (tmp_path / fixed).chmod(0o700)
    assert code == 1 and told.endswith(f"{Path(tmp_path, fixed).name}: Permission denied\n")
    assert contents(experiment) == before


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="no setpriv")
def test_what_may_not_be_read_is_not_said_to_be_no_experiment(experiment):
    (experiment / "log.xml").chmod(0)

    assert without_rights_to_all_files("rm", "test.1.er") == (1, f"interpose: {experiment}: Permission denied\n")


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="no setpriv")
def test_the_list_names_what_may_not_be_looked_into(experiment):
    experiment.chmod(0)

    code, told = without_rights_to_all_files("list", ".")

    experiment.chmod(0o700)
    assert (code, told) == (0, "interpose: ./test.1.er: Permission denied\n")


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="no setpriv")
def test_an_experiment_that_may_not_be_changed_is_packed(experiment, interpose):
    log = experiment / "log.xml"
    log.write_text(log.read_text().replace('host="h"', f'host="{os.uname().nodename}"'))
    (experiment / "archives").chmod(0o500)
    (experiment / "archives" / "index.jsonl").chmod(0o400)
    experiment.chmod(0o500)

    code, told = without_rights_to_all_files("archive", "test.1.er", "-o", "packed.er.tar.zst")

    experiment.chmod(0o700)
    assert (code, told) == (0, "interpose: test.1.er: may not be changed: packed with the sources that it has\n")
    assert interpose("check", "packed.er.tar.zst")[0] == 0
