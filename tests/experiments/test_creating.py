"""What root adds to another user's experiment is that user's, and root gives nothing away that was not just made."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from tracing import environment, start_in

from interpose.cli.main import main
from interpose.errors import ExperimentError
from interpose.experiments.maintenance.repair import repair
from interpose.experiments.metadata.creating import Directory, replacing
from interpose.experiments.model.experiment import Experiment
from tests.build import Build

pytestmark = [
    pytest.mark.any_python,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root becomes other users"),
]

USER = 50_000
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]


@pytest.fixture
def theirs():
    """A directory of the user's, which every user reaches."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chown(name, USER, USER)
        yield Path(name)


@pytest.fixture
def options(theirs):
    """What lets the user run our interpreter, which may be one that only we may read."""
    for options in ([], ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]):
        words = [*AS_USER, *options, sys.executable, "-c", "import interpose"]
        if subprocess.run(words, cwd=theirs, capture_output=True).returncode == 0:
            return options
    pytest.skip("other users cannot run this interpreter")


@pytest.fixture
def as_user(theirs, options):
    """Runs a command of interpose as the user."""

    def run(*words):
        command = [*AS_USER, *options, sys.executable, "-m", "interpose", *words]
        variables = {**environment(), "HOME": str(theirs), "COLUMNS": "200"}
        return subprocess.run(command, cwd=theirs, env=variables, capture_output=True, text=True)

    return run


def give(path):
    for each in [path, *path.rglob("*")]:
        os.lchown(each, USER, USER)


@pytest.fixture
def experiment(theirs):
    """An experiment of the user's, whose program has ended."""
    source = theirs / "orders.py"
    source.write_text("import os\n")
    build = Build(theirs / "test.1.er", host=os.uname().nodename, time_ns=time.time_ns(), cwd=str(theirs))
    build.intrinsic("os.stat", "file")
    build.stack(build.site(str(source), 1, "main"))
    build.events([{"intrinsic": 1, "thread": 1, "stack": 1, "start_ns": 5, "wall_ns": 5, "call": 1}])
    build.thread(recorded=1, main=1)
    build.ended(2 * 10**9, 10)
    build.log_events.append(f'<root path="{theirs}"/>')
    made = build.write()
    give(theirs)
    return made


def not_theirs(directory):
    """What is another user's, or the user may not read, as another program says that runs with the user's rights."""
    words = [*AS_USER, "find", str(directory), "(", "-not", "-uid", str(USER), "-or", "-not", "-readable", ")"]
    found = subprocess.run(words, cwd="/", capture_output=True, text=True)
    return found.stdout.splitlines() + found.stderr.splitlines()


@pytest.mark.parametrize(
    "words",
    [
        ["notes", "EXPERIMENT", "--add", "by root"],
        ["label", "-o", "EXPERIMENT", "-n", "warm", "-t", "start"],
        ["archive", "EXPERIMENT"],
        ["consolidate", "--replace", "EXPERIMENT"],
    ],
    ids=lambda words: words[0],
)
def test_what_root_adds_is_the_owner_s_who_reads_it(experiment, as_user, words):
    code = main([str(experiment) if word == "EXPERIMENT" else word for word in words])

    checked = as_user("check", str(experiment))
    assert code == 0
    assert not_theirs(experiment) == []
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_what_root_adds_is_shown_to_its_owner(experiment, as_user):
    assert main(["notes", str(experiment), "--add", "by root"]) == 0
    assert main(["archive", str(experiment)]) == 0

    assert as_user("report", str(experiment)).stdout.splitlines()[0] == "by root"
    assert as_user("cp", str(experiment), "copy.er").returncode == 0
    assert as_user("rm", str(experiment)).returncode == 0


def test_root_gives_the_owner_no_copy_of_a_file_that_only_root_reads(experiment, theirs):
    source = theirs / "orders.py"
    os.chown(source, 0, 0)
    source.chmod(0o600)

    main(["archive", str(experiment)])

    assert [each for each in (experiment / "archives").iterdir() if each.name.startswith("orders.py")] == []
    assert "Permission denied" in (experiment / "archive.log").read_text()
    assert (os.geteuid(), os.getegid()) == (0, 0)


def test_contents_that_are_shared_with_others_are_copied_for_the_owner(experiment, tmp_path):
    (tmp_path / "common").mkdir()

    assert main(["archive", "-d", str(tmp_path / "common"), str(experiment)]) == 0

    assert not_theirs(experiment) == []
    assert os.stat(tmp_path / "common").st_uid == 0


def test_what_stands_in_the_place_of_a_new_file_is_left_as_it_was(theirs, tmp_path):
    (tmp_path / "root's").write_text("root's")
    (theirs / "link").symlink_to(tmp_path / "root's")
    os.link(tmp_path / "root's", theirs / "hard")

    with Directory(str(theirs)) as directory:
        for attempt in (directory.create, directory.open, partial(directory.open_or_create, access=os.O_RDWR)):
            with pytest.raises(OSError):
                attempt("link")
        os.close(directory.open_or_create("hard", os.O_RDWR))
        (theirs / "directory").symlink_to(tmp_path)
        with pytest.raises(FileExistsError):
            directory.create_directory("directory")
        with pytest.raises(ExperimentError):
            directory.below("directory")
    with replacing(str(theirs / "link")) as file:
        file.write(b"theirs")

    kept = os.stat(tmp_path / "root's")
    assert (kept.st_uid, (tmp_path / "root's").read_text()) == (0, "root's")
    assert os.stat(tmp_path).st_uid == 0
    assert (theirs / "link").read_text() == "theirs"
    assert os.lstat(theirs / "link").st_uid == USER


def test_a_writer_that_fails_leaves_what_was_there(theirs):
    (theirs / "notes").write_text("before\n")

    with pytest.raises(ZeroDivisionError), replacing(str(theirs / "notes")) as file:
        file.write(b"half")
        raise ZeroDivisionError

    assert [each.name for each in theirs.iterdir()] == ["notes"]
    assert (theirs / "notes").read_text() == "before\n"


def test_a_directory_is_for_the_group_where_the_experiment_is(theirs):
    theirs.chmod(0o2750)

    with Directory(str(theirs)) as directory, directory.below("archives") as archives:
        os.close(archives.create("index.jsonl"))

    modes = [oct(os.stat(theirs / each).st_mode & 0o7777) for each in ("archives", "archives/index.jsonl")]
    assert modes == ["0o2750", "0o640"]
    assert not_theirs(theirs) == []


def as_their_owner(*words):
    subprocess.run([*AS_USER, *words], check=True)


def swap(path, target):
    """What the user does to have what is written at `path` written at `target`."""
    as_their_owner("mv", str(path), f"{path}.old")
    as_their_owner("ln", "-s", str(target), str(path))


def wait_until_it_has_open(process, path):
    descriptors = Path(f"/proc/{process.pid}/fd")
    while process.poll() is None:
        for each in descriptors.iterdir():
            with suppress(OSError):
                if each.samefile(path):
                    return
    raise AssertionError(process.communicate())


def archive_as_root(experiment, target, swapped):
    """Archive, and have the user swap a directory once the index is open, which another process holds until then."""
    index = experiment / "archives" / "index.jsonl"
    index.parent.mkdir()
    index.touch()
    give(experiment)
    command = [sys.executable, "-m", "interpose", "archive", str(experiment)]
    with open(index) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True)
        wait_until_it_has_open(process, index)
        swap(swapped, target)
    return process.communicate()[1]


def test_root_archives_into_the_directory_that_it_opened_though_the_user_puts_a_link_there(experiment, tmp_path):
    said = archive_as_root(experiment, tmp_path, experiment / "archives")

    kept = experiment / "archives.old"
    assert said == "interpose: test.1.er: 1 file archived\n"
    assert list(tmp_path.iterdir()) == []
    assert len([each for each in kept.iterdir() if each.name.startswith("orders.py_")]) == 1
    assert not_theirs(kept) == []


def test_root_archives_nothing_elsewhere_if_the_user_puts_a_link_in_place_of_the_experiment(experiment, tmp_path):
    (tmp_path / "archives").mkdir()

    archive_as_root(experiment, tmp_path, experiment)

    assert list(tmp_path.rglob("*")) == [tmp_path / "archives"]


@pytest.mark.parametrize("swapped", ["runs/test.1.er", "runs"])
def test_root_s_notes_go_nowhere_else_if_the_user_swaps_directories_while_an_editor_is_open(
    experiment, theirs, tmp_path, monkeypatch, capsys, swapped
):
    (theirs / "runs").mkdir()
    experiment = experiment.rename(theirs / "runs" / "test.1.er")
    give(theirs)
    (tmp_path / "test.1.er").mkdir()
    target = tmp_path if swapped == "runs" else tmp_path / "test.1.er"
    (tmp_path / "test.1.er" / "notes").write_text("root's")
    there, as_user = theirs / swapped, " ".join(AS_USER)
    editor = tmp_path / "editor"
    editor.write_text(f'{as_user} mv {there} {there}.old\n{as_user} ln -s {target} {there}\necho ADDED >> "$1"\n')
    monkeypatch.setenv("VISUAL", f"sh {editor}")

    code = main(["notes", "--edit", str(experiment)])

    assert (code, capsys.readouterr().err) == (
        1,
        f"interpose: {experiment}: {there.name} is a link or a file, not a directory\n",
    )
    assert (tmp_path / "test.1.er" / "notes").read_text() == "root's"
    assert [each.name for each in (tmp_path / "test.1.er").iterdir()] == ["notes"]


@pytest.mark.parametrize("owner", [0, USER + 1])
def test_root_archives_nothing_into_a_directory_of_another_owner(experiment, owner, capsys):
    (experiment / "archives").mkdir()
    os.chown(experiment / "archives", owner, owner)

    code = main(["archive", str(experiment)])

    assert (code, list((experiment / "archives").iterdir())) == (1, [])
    expected = f"interpose: {experiment}/archives: has another owner than the experiment\n"
    assert capsys.readouterr().err == expected


def test_an_experiment_may_be_named_by_a_link(experiment, theirs):
    (theirs / "latest.er").symlink_to("test.1.er")

    assert main(["notes", str(theirs / "latest.er"), "--add", "by root"]) == 0
    assert main(["archive", str(theirs / "latest.er")]) == 0

    assert (experiment / "notes").read_text() == "by root\n"
    assert not_theirs(experiment) == []


def test_a_link_in_the_place_of_an_experiment_is_not_repaired(experiment, tmp_path):
    shutil.copytree(experiment, tmp_path / "root's.er")
    log = tmp_path / "root's.er" / "log.xml"
    log.write_bytes(log.read_bytes()[:-5])
    before = log.read_bytes()
    swap(experiment, tmp_path / "root's.er")

    with pytest.raises(ExperimentError):
        repair(str(experiment))

    assert log.read_bytes() == before


STEPS = """
import os, sys
print(flush=True)
for line in sys.stdin:
    os.stat("/" + line.strip())
    print(os.getpid(), flush=True)
"""


@pytest.fixture
def steps(theirs, options):
    """The user's recorded program, which asks for a path for each line it is given, and has begun."""
    variables = {"INTERPOSE": "1", "INTERPOSE_DIR": str(theirs), "INTERPOSE_ARCHIVE": "off"}
    process = start_in(theirs, [*AS_USER, *options, sys.executable, "-c", STEPS], **variables)
    process.stdout.readline()

    def go_on(path):
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    def end():
        process.communicate()
        return process.returncode

    yield go_on, end
    process.kill()
    process.stdin.close()
    process.stdout.close()
    process.wait()


def asked_for(theirs):
    """The paths that were recorded."""
    (process,) = Experiment(str(theirs / "test.1.er")).processes
    found = []
    for block in process.events.blocks():
        found += [process.string(event.detail) for event in process.events.events(block) if event.detail]
    return {path for path in found if path in ("/usr", "/etc", "/var", "/tmp")}


def test_a_filter_set_by_root_is_in_force_in_another_user_s_program(theirs, steps):
    go_on, end = steps
    go_on("usr")
    assert main(["control", str(theirs / "test.1.er"), "filter", "kind=db"]) == 0
    go_on("etc")

    assert end() == 0
    assert not_theirs(theirs / "test.1.er") == []
    assert asked_for(theirs) == {"/usr"}


def test_root_names_another_user_s_program_by_the_number_of_its_process(theirs, steps, capsys):
    go_on, end = steps
    pid = go_on("usr")

    assert main(["control", pid]) == 0
    assert f"process {pid}  recording" in capsys.readouterr().out
    assert main(["top", "--once", pid]) == 0
    assert main(["control", pid, "filter", "kind=db"]) == 0
    go_on("etc")

    assert end() == 0
    assert asked_for(theirs) == {"/usr"}


def test_root_takes_no_experiment_of_a_third_user(theirs, steps, capsys):
    go_on, _ = steps
    pid = go_on("usr")
    os.chown(theirs / "test.1.er", USER + 1, USER + 1)

    code = main(["control", pid])

    assert (code, capsys.readouterr().err) == (1, f"interpose: process {pid} is not recorded\n")


def test_attach_says_where_the_experiment_of_a_program_is_that_may_not_write_there(theirs, options, tmp_path, capsys):
    program = "import os; print(flush=True)\nwhile not os.path.exists('over'): pass"
    variables = {"HOME": str(theirs), "XDG_STATE_HOME": str(theirs / "state")}
    (theirs / "state").mkdir()
    give(theirs)
    process = start_in(theirs, [*AS_USER, *options, sys.executable, "-c", program], **variables)
    process.stdout.readline()
    try:
        code = main(["attach", "--dir", str(tmp_path), str(process.pid)])
        out, err = capsys.readouterr()
        directory = theirs / "state" / "interpose" / "experiments"
        assert code == 0, err
        assert out.startswith(f"{directory}/")
        assert f"the program could not create an experiment in {tmp_path}; it created one in {directory}\n" in err
    finally:
        (theirs / "over").touch()
        process.communicate()
