"""The archive: what is copied into an experiment, what never is, who does it when, and hostile ones read."""

import json
import os
import socket
import stat
import time

import pytest

from interpose.analysis.recording.ending import ending
from interpose.cli.main import main
from interpose.experiments.maintenance.archives import ENTRIES_AT_MOST, Archive, is_content, read_index
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import Damages
from interpose.experiments.model.sources import Sources
from interpose.experiments.model.stacks import Site
from tests.build import Build, event

KEY = "-----BEGIN OPENSSH PRIVATE " + "KEY-----"  # apart, lest it be taken for one here


pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture
def shop(tmp_path):
    """A directory that a program is imported from."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "orders.py").write_text("import os\n")
    return tmp_path / "shop"


def made(directory, root, *files, host=None, ended=True, mode="usedsrc", cwd=None):
    """An experiment whose sites name `files`, of a program that ended just now."""
    now_ns = time.time_ns()
    build = Build(directory, host=host or os.uname().nodename, cwd=str(cwd or root), time_ns=now_ns - 10**9)
    build.intrinsic("os.write", "file")
    for file in files:
        build.stack(build.site(str(file), 1, "main"))
    build.events([event(0, 10)])
    build.thread(recorded=1, main=1)
    if ended:
        build.ended(2 * 10**9, 10)
    build.log_events.append(f'<root path="{root}"/>')
    build.log_events.append(f'<settings><setting name="INTERPOSE_ARCHIVE" value="{mode}"/></settings>')
    return build.write()


def archived(experiment):
    return {path: entry.changed for path, entry in read_index(str(experiment), "x", Damages()).items()}


def test_sources_are_copied_once_under_names_of_their_content(tmp_path, shop, capsys):
    (shop / "same.py").write_text("import os\n")
    experiment = made(tmp_path / "test.1.er", shop, shop / "orders.py", "same.py")

    assert main(["archive", "test.1.er"]) == 0
    assert main(["archive", "test.1.er"]) == 0

    names = sorted(os.listdir(experiment / "archives"))
    assert names[0] == "index.jsonl"
    assert [is_content(name) for name in names[1:]] == [True, True]
    assert archived(experiment) == {str(shop / "orders.py"): False, str(shop / "same.py"): False}
    assert "0 files archived, 2 archived already" in capsys.readouterr().err
    assert stat.S_IMODE(os.stat(experiment / "archives").st_mode) == 0o700
    assert {stat.S_IMODE(os.stat(experiment / "archives" / name).st_mode) for name in names} == {0o600}


def secrets(shop, tmp_path):
    (tmp_path / "outside.py").write_text("x\n")
    (shop / "link.py").symlink_to(tmp_path / "outside.py")
    (shop / ".env").write_text("PASSWORD=x\n")
    (shop / "server.key").write_text("x\n")
    (shop / "held.py").write_text(f'KEY = """{KEY}\n"""\n')
    (shop / ".ssh").mkdir()
    (shop / ".ssh" / "config.py").write_text("x\n")
    (shop / "taxes.txt").write_text("x\n")
    os.mkfifo(shop / "pipe.py")
    (shop / "directory.py").mkdir()
    inside = ["link.py", ".env", "server.key", "held.py", "taxes.txt", ".ssh/config.py"]
    inside += ["pipe.py", "directory.py", "gone.py"]
    return [*(shop / name for name in inside), tmp_path / "outside.py", "/etc/passwd", "../outside.py"]


def test_secrets_and_what_lies_outside_are_never_copied(tmp_path, shop, capsys):
    files = secrets(shop, tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s.py")
        os.rename("s.py", shop / "s.py")
        experiment = made(tmp_path / "test.1.er", shop, *files, shop / "s.py")

        code = main(["archive", "test.1.er"])

    assert code == 0
    assert archived(experiment) == {}
    assert os.listdir(experiment / "archives") == ["index.jsonl"]
    log = (experiment / "archive.log").read_text()
    assert log.count("not archived") == len(log.splitlines()) == len(files)
    assert f"{shop}/.env: its name is that of a secret" in log
    assert f"{shop}/held.py: a private key is in it" in log
    assert "/etc/passwd: not below a directory that the program imported from" in log


def test_what_recorded_is_not_archived(tmp_path, shop):
    (shop / "interpose" / "capture").mkdir(parents=True)
    ours = [shop / "interpose" / "boot.py", shop / "interpose" / "capture" / "session.py"]
    for path in ours:
        path.write_text("import os\n")
    experiment = made(tmp_path / "test.1.er", shop, shop / "orders.py", *ours)

    assert main(["archive", str(experiment)]) == 0
    assert archived(experiment) == {str(shop / "orders.py"): False}


def test_a_script_without_a_suffix_is_a_source(tmp_path, shop):
    (shop / "app").write_text("#!/usr/bin/env python\n")
    experiment = made(tmp_path / "test.1.er", shop, shop / "app")

    main(["archive", "-q", "test.1.er"])

    assert list(archived(experiment)) == [str(shop / "app")]


def test_a_source_changed_since_is_kept_and_marked(tmp_path, shop):
    experiment = made(tmp_path / "test.1.er", shop, shop / "orders.py")
    later_s = time.time() + 3600
    os.utime(shop / "orders.py", (later_s, later_s))

    main(["archive", "-q", "test.1.er"])

    assert archived(experiment) == {str(shop / "orders.py"): True}
    assert "changed since" in (experiment / "archive.log").read_text()


def test_archiving_is_for_the_host_of_the_recording(tmp_path, shop, capsys):
    experiment = made(tmp_path / "test.1.er", shop, shop / "orders.py", host="elsewhere")

    code = main(["archive", "test.1.er"])

    assert code == 1
    told = "test.1.er: was recorded on elsewhere; archive it there, where its sources are"
    assert capsys.readouterr().err == f"interpose: {told}\n"
    assert not (experiment / "archives").exists()


def test_the_first_reader_archives_in_silence(tmp_path, shop, capsys):
    experiment = made(tmp_path / "test.1.er", shop, shop / "orders.py")

    code = main(["report", "test.1.er"])

    assert code == 0
    assert capsys.readouterr().err == ""
    assert list(archived(experiment)) == [str(shop / "orders.py")]


@pytest.mark.parametrize("more", [{"host": "elsewhere"}, {"mode": "off"}, {"mode": "all of it"}])
def test_the_first_reader_archives_only_what_it_should(tmp_path, shop, more):
    experiment = made(tmp_path / "test.1.er", shop, shop / "orders.py", **more)

    main(["report", "test.1.er"])

    assert not (experiment / "archives").exists()


@pytest.mark.long
def test_nothing_is_archived_of_a_program_that_runs(traced, tmp_path):
    done = traced("import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'interpose', 'report'])")

    assert "running" in done.stdout
    assert not os.path.exists(f"{done.path}/archives")
    assert ending(done.experiment.founder).state == "exit"


def test_a_descendant_s_sources_go_into_the_founder(tmp_path, shop):
    (shop / "child.py").write_text("pass\n")
    experiment = made(tmp_path / "test.1.er", shop, shop / "orders.py")
    made(experiment / "_c1.er", shop, shop / "child.py", shop / "orders.py")

    main(["archive", "-q", "-n", "test.1.er"])
    founder_alone = set(archived(experiment))
    main(["archive", "-q", "test.1.er/_c1.er"])

    assert founder_alone == {str(shop / "orders.py")}
    assert set(archived(experiment)) == {str(shop / "orders.py"), str(shop / "child.py")}
    assert not (experiment / "_c1.er" / "archives").exists()
    assert main(["archive", "-F", "test.1.er/_c1.er"]) == 2


def test_only_what_matches_is_archived_and_anew_where_forced(tmp_path, shop, capsys):
    (shop / "other.py").write_text("1\n")
    experiment = made(tmp_path / "test.1.er", shop, shop / "orders.py", shop / "other.py")

    main(["archive", "-m", "oth", "test.1.er"])
    matching = set(archived(experiment))
    (shop / "other.py").write_text("2\n")
    main(["archive", "-F", "test.1.er"])

    assert matching == {str(shop / "other.py")}
    assert "2 files archived" in capsys.readouterr().err
    assert len(os.listdir(experiment / "archives")) == 4
    assert main(["archive", "-m", "(", "test.1.er"]) == 2


def test_experiments_share_copies_in_a_common_directory(tmp_path, shop):
    (tmp_path / "common").mkdir()
    for number in (1, 2):
        made(tmp_path / f"test.{number}.er", shop, shop / "orders.py")

    main(["archive", "-q", "-d", "common", "test.1.er", "test.2.er"])

    [content] = os.listdir("common")
    files = {os.stat(path).st_ino for path in (f"test.{n}.er/archives/{content}" for n in (1, 2))}
    assert files == {os.stat(f"common/{content}").st_ino}


def test_load_objects_are_archived_where_asked_for(interpose, tmp_path):
    app = tmp_path / "work" / "app.py"
    app.write_text("import os, _sqlite3\nos.stat('.')\n")

    done = interpose("run", "-a", "all", "app.py")

    assert done.returncode == 0
    paths = archived(tmp_path / "work" / "test.1.er")
    assert str(app) in paths
    assert any("libinterpose" in path for path in paths)
    assert any("sqlite3" in path for path in paths)


def test_a_directory_that_is_imported_from_later_counts(traced, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "late.py").write_text("import os\ndef f(): os.stat('.')\n")
    (tmp_path / "apart").mkdir()
    (tmp_path / "apart" / "app.py").write_text(
        f"import sys\nsys.path.append({str(elsewhere)!r})\nimport late\nlate.f()\n"
    )

    done = traced("import os, sys\nos.execv(sys.executable, [sys.executable, 'apart/app.py'])")
    main(["report", done.path])

    assert str(elsewhere / "late.py") in archived(done.path)


def source(experiment, file):
    opened = Experiment(str(experiment))
    found = Sources(opened).source_of(opened.founder, Site(str(file), 1, "main", True))
    return found and found.text, opened.damages.count


@pytest.mark.parametrize("is_archived", [True, False])
def test_a_source_named_through_a_link_and_upward_is_the_one_that_ran(tmp_path, shop, is_archived):
    (tmp_path / "far" / "in").mkdir(parents=True)
    (tmp_path / "far" / "orders.py").write_text("far\n")
    (shop / "link").symlink_to(tmp_path / "far" / "in")
    for each in (tmp_path / "far" / "orders.py", shop / "orders.py"):
        os.utime(each, (1, 1))
    files = [f"{shop}/link/../orders.py", "link/../orders.py"]
    experiment = made(tmp_path / "test.1.er", tmp_path, *files, cwd=shop)
    if is_archived:
        main(["archive", "-q", "test.1.er"])
        (tmp_path / "far" / "orders.py").unlink()

    assert [source(experiment, each) for each in files] == [("far\n", 0)] * 2
    assert source(experiment, "../shop/orders.py") == ("import os\n", 0)


def test_a_source_is_read_from_the_archive_then_from_the_file_if_that_is_older(tmp_path, shop):
    (shop / "unnamed.py").write_text("not archived\n")
    os.utime(shop / "unnamed.py", (1, 1))
    experiment = made(tmp_path / "test.1.er", shop, shop / "orders.py")
    main(["archive", "-q", "test.1.er"])
    (shop / "orders.py").write_text("changed\n")

    assert source(experiment, shop / "orders.py") == ("import os\n", 0)
    assert source(experiment, shop / "unnamed.py") == ("not archived\n", 0)
    assert source(experiment, "/etc/passwd") == (None, 0)


def test_an_archived_source_that_is_not_what_it_was_is_not_shown(tmp_path, shop):
    experiment = made(tmp_path / "test.1.er", shop, shop / "orders.py")
    main(["archive", "-q", "test.1.er"])
    [content] = [name for name in os.listdir(experiment / "archives") if is_content(name)]
    (experiment / "archives" / content).write_text("forged\n")
    (shop / "orders.py").write_text("changed\n")

    assert source(experiment, shop / "orders.py") == (None, 1)


@pytest.mark.parametrize(
    "content", ["../../secret", "/etc/passwd", "a_" + "0" * 31, "a/b_" + "0" * 32, "", "x" * 65 + "_" + "0" * 32]
)
def test_an_index_leads_nowhere_else(tmp_path, shop, content):
    experiment = made(tmp_path / "test.1.er", shop, shop / "orders.py")
    (experiment / "archives").mkdir()
    line = {"path": "/p", "content": content, "kind": "source", "bytes": 1, "mtime_ns": 1, "changed": False}
    (experiment / "archives" / "index.jsonl").write_text(json.dumps(line) + "\n")
    damages = Damages()

    assert read_index(str(experiment), "x", damages) == {}
    assert damages.count == 1


@pytest.mark.parametrize(
    "data", [b"\0" * 100_000, b"[" * 100_000, b"{}\n" * 3, b"null\n", b'{"path": 1}\n', b"\xff\n", b'{"path": "'],
    ids=["zeros", "deep", "empty", "null", "wrong", "no-text", "cut"],
)
def test_an_index_that_is_none_is_noted(tmp_path, data):
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / "index.jsonl").write_bytes(data)
    damages = Damages()

    assert read_index(str(tmp_path), "x", damages) == {}
    assert damages.count


@pytest.mark.long
def test_an_index_without_end_is_read_in_part(tmp_path):
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / "index.jsonl").write_bytes(b"{}\n" * (ENTRIES_AT_MOST + 1))
    damages = Damages()

    read_index(str(tmp_path), "x", damages)

    assert damages.count == ENTRIES_AT_MOST + 1


def test_archives_that_are_a_link_are_not_written_through(tmp_path, shop, capsys):
    experiment = made(tmp_path / "test.1.er", shop, shop / "orders.py")
    (tmp_path / "elsewhere").mkdir()
    (experiment / "archives").symlink_to(tmp_path / "elsewhere")

    code = main(["archive", "test.1.er"])

    assert code == 1
    assert os.listdir(tmp_path / "elsewhere") == []


def test_only_one_adds_to_an_archive_at_a_time(tmp_path):
    with Archive(str(tmp_path)), pytest.raises(BlockingIOError), Archive(str(tmp_path), wait=False):
        pass
