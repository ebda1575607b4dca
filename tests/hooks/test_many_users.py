"""One directory for the experiments of many users: whose each is, and who may read it."""

import os
import stat
import subprocess
import sys
import tempfile

import pytest

from interpose.cli.main import main
from interpose.experiments.metadata import names
from tests.tracing import environment

PROGRAM = """
import os
os.stat(".")
if not os.fork():
    os.stat("/")
    os._exit(0)
os.wait()
os.spawnv(os.P_WAIT, {python!r}, [{python!r}, "-c", "import os; os.stat('.')"])
"""
# The tests' own process has threads where several run at once.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")


@pytest.fixture(autouse=True)
def app(place):
    (place / "app.py").write_text(PROGRAM.format(python=sys.executable))


def run(tmp_path, **variables):
    """Run the program with recording on."""
    subprocess.run(
        [sys.executable, "app.py"],
        cwd=tmp_path,
        env=environment(INTERPOSE="1", **variables),
        check=True,
    )


def modes(path):
    found = [path, *path.rglob("*")]
    return {stat.S_IMODE(os.stat(each).st_mode) for each in found if each.name not in (".gitignore", "state")}


def test_experiments_are_their_owner_s_alone(tmp_path):
    run(tmp_path)
    main(["report", "test.1.er"])
    main(["notes", "test.1.er", "--add", "x"])

    assert modes(tmp_path / "test.1.er") == {0o700, 0o600}


def test_the_group_may_read_all_of_it_where_it_should(tmp_path):
    os.chmod(tmp_path, 0o750)
    run(tmp_path, INTERPOSE_GROUP_READS="1", INTERPOSE_ARCHIVE="all")
    main(["report", "test.1.er"])
    main(["notes", "test.1.er", "--add", "x"])
    main(["label", "-o", "test.1.er", "-n", "x", "-t", "start=0"])

    assert {"_f1.er", "archives", "notes", "labels.xml", "objects"} <= set(os.listdir("test.1.er"))
    assert modes(tmp_path / "test.1.er") == {0o2750, 0o640}


def make_as(user, groups, directory, group_reads):
    """Have a user make an experiment there."""
    child = os.fork()
    if not child:
        try:
            os.setgroups(groups)
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            names.create(directory, "test", group_reads)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.fixture
def shared():
    """A sticky directory of a group, where all can reach it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o755)
        path = os.path.join(directory, "all")
        os.mkdir(path)
        os.chown(path, 0, 12009)
        os.chmod(path, 0o1777)
        yield path


def found(path):
    status = os.stat(path)
    return status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)


@as_root
def test_in_a_directory_of_many_each_experiment_is_its_owner_s(shared):
    make_as(12001, [], shared, False)
    make_as(12002, [], shared, False)

    assert found(f"{shared}/test.1.er") == (12001, 12001, 0o700)
    assert found(f"{shared}/test.2.er") == (12002, 12002, 0o700)


@as_root
def test_only_a_group_that_the_user_is_in_may_read(shared):
    make_as(12001, [], shared, True)
    make_as(12001, [12009], shared, True)

    assert found(f"{shared}/test.1.er") == (12001, 12001, 0o700)
    assert found(f"{shared}/test.2.er") == (12001, 12009, 0o2750)
