"""Groups of experiments, and several experiments in one report."""

import getpass
import json
import os
from collections import Counter

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.cli.main import main
from interpose.errors import ExperimentError
from interpose.experiments.metadata.group import MEMBERS_AT_MOST, members
from tests.build import SECOND, Build, event

FIRST = "#interpose experiment group\n"


pytestmark = pytest.mark.usefixtures("place")


def made(path, calls, host="h", uid=1000, terminal="/dev/pts/1", time_ns=10**18, start_ns=5 * SECOND):
    build = Build(path, host=host, time_ns=time_ns, start_ns=start_ns)
    build.intrinsic("os.write", "file")
    shift_ns = start_ns - 5_000 * SECOND
    build.events([event(number * 1000 + shift_ns, 100, 10, call=number) for number in range(1, calls + 1)])
    build.thread(start_ns=start_ns, end_ns=start_ns + SECOND, end_cpu_ns=SECOND // 2, recorded=calls, main=1)
    build.ended(SECOND, SECOND // 2)
    build.log_events.append(f'<user uid="{uid}" terminal="{terminal}"/>')
    return build.write()


def three(tmp_path):
    made(tmp_path / "a.er", 1, uid=1000)
    made(tmp_path / "b.er", 2, uid=1001, terminal="", time_ns=10**18 + 60 * SECOND, start_ns=77 * SECOND)
    made(tmp_path / "c.er", 4, uid=1000, host="other")



def test_several_experiments_make_one_report(tmp_path, run_main):
    three(tmp_path)

    code, out, err = run_main("report", "a.er", "b.er", "c.er")

    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[:2] == ["3 experiments  a.er, b.er, c.er", "complete"]
    assert lines[2] == "elapsed 61.00 s   thread time 3.00 s"
    assert lines[3].startswith("CPU 1.50 s   7 calls   3 processes")


def test_the_same_experiment_counts_once(tmp_path, run_main):
    three(tmp_path)
    (tmp_path / "g.erg").write_text(f"{FIRST}a.er\n./a.er\n")

    assert run_main("report", "a.er", f"{tmp_path}/a.er", "g.erg")[1].startswith("a.er")


@pytest.mark.parametrize(
    ("by", "calls"),
    [
        ("user", {"1000": 5, "1001": 2}),
        ("terminal", {"/dev/pts/1": 5, "none": 2}),
        ("host", {"h": 3, "other": 4}),
        ("experiment", {"a.er": 1, "b.er": 2, "c.er": 4}),
        ("process", {f"{name}.er {2**22 + 1}": number for name, number in (("a", 1), ("b", 2), ("c", 4))}),
    ],
)
def test_rows_are_of_users_terminals_hosts_experiments(tmp_path, run_main, by, calls):
    three(tmp_path)
    code, out, _ = run_main("report", "--format", "json", "--by", by, "a.er", "b.er", "c.er")

    found = Counter()
    for row in json.loads(out):
        found[row[by]] += row["calls"]

    assert code == 0
    assert +found == calls


def test_a_user_of_this_host_has_a_name(tmp_path, run_main):
    made(tmp_path / "a.er", 1, host=os.uname().nodename, uid=os.getuid())

    assert getpass.getuser() in run_main("report", "--by", "user", "a.er")[1]


def test_self_times_of_several_add_up_to_their_thread_time(tmp_path, run_main):
    three(tmp_path)
    for by in ("user", "host", "experiment", "intrinsic"):
        found = json.loads(run_main("report", "--format", "json", "--by", by, "a.er", "b.er", "c.er")[1])
        assert sum(row["self_wall_ns"] for row in found) == 3 * SECOND


def test_what_was_recorded_names_its_user(traced):
    done = traced("import os\nos.stat('.')")

    assert done.experiment.founder.log.user == {"uid": str(os.getuid()), "terminal": "", "streams": ""}
    assert profile(Analysis(done.experiment), "user").rows


@pytest.mark.parametrize("first", [FIRST, "#analyzer experiment group\n"])
def test_a_group_is_read_like_its_experiments(tmp_path, run_main, first):
    three(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "g.erg").write_text(f"{first}# these two\n../a.er\n\n{tmp_path}/b.er\n")

    as_group = run_main("report", "sub/g.erg")

    assert as_group == run_main("report", "a.er", "b.er")


def test_groups_may_be_in_groups(tmp_path, run_main):
    three(tmp_path)
    (tmp_path / "two.erg").write_text(f"{FIRST}a.er\nb.er\n")
    (tmp_path / "all.erg").write_text(f"{FIRST}two.erg\nc.er\n")

    assert run_main("report", "all.erg")[1].startswith("3 experiments")


def test_what_cannot_be_read_of_a_group_is_noted_and_the_rest_read(tmp_path, run_main):
    three(tmp_path)
    (tmp_path / "g.erg").write_text(f"{FIRST}a.er\ngone.er\nb.er\n")

    code, out, err = run_main("report", "g.erg")

    assert code == 3
    assert out.startswith("2 experiments")
    assert err == "interpose: gone.er: no such experiment\n"


def test_commands_that_read_one_take_a_group_of_one(tmp_path, capsys):
    three(tmp_path)
    (tmp_path / "one.erg").write_text(f"{FIRST}b.er\n")
    (tmp_path / "two.erg").write_text(f"{FIRST}b.er\na.er\n")

    assert main(["events", "one.erg"]) == 0
    assert main(["events", "two.erg"]) == 1
    assert "names 2 experiments; this command reads one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a group"),
        ("a.er\n", "not a group"),
        (FIRST, "names no experiment"),
        (FIRST + "x.erg\n", "the group contains itself"),
        (FIRST + "y.erg\n", "the group contains itself"),
        (FIRST + "a" * 5000, "x.erg:2: is not a path"),
        (FIRST + "a\0b", "x.erg:2: is not a path"),
        (FIRST + "deep0.erg\n", "groups are nested more than 8 deep"),
        (FIRST + "".join(f"{number}.er\n" for number in range(MEMBERS_AT_MOST + 1)), "more than 10,000 experiments"),
        (FIRST + "a\n" * 600_000, "longer than 1 MiB"),
        (FIRST + "gone.erg\n", "No such file"),
    ],
)
def test_a_hostile_group_is_refused_in_one_line(tmp_path, text, said, capsys):
    (tmp_path / "x.erg").write_text(text)
    (tmp_path / "y.erg").write_text(f"{FIRST}x.erg\n")
    for number in range(10):
        (tmp_path / f"deep{number}.erg").write_text(f"{FIRST}deep{number + 1}.erg\n")

    code = main(["report", "x.erg"])

    err = capsys.readouterr().err
    assert code == 1
    assert said in err
    assert err.count("\n") == 1


def test_a_group_that_names_itself_by_a_link_is_refused(tmp_path):
    (tmp_path / "x.erg").write_text(f"{FIRST}link.erg\n")
    (tmp_path / "link.erg").symlink_to("x.erg")

    with pytest.raises(ExperimentError, match="the group contains itself"):
        members("x.erg")
