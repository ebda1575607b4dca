"""Child processes as they are read: their ends, the tree, who was not followed."""

import json

import pytest
from starting import told

from interpose.analysis.recording.ending import ending
from interpose.analysis.recording.lineage import tree, walk
from interpose.analysis.recording.unfollowed_cpu import unfollowed_cpu
from interpose.experiments.format.children import EXEC, FORK, SPAWN, split_lineage
from interpose.experiments.model.experiment import Experiment
from tests.build import SECOND, START_NS, Build

pytestmark = pytest.mark.any_python


# --- reading what was built


def forked(tmp_path, **record):
    """A founder that forked once, and the child, which nobody saw end."""
    build = Build(tmp_path / "t.1.er")
    build.child(how=FORK, pid=77, number=1, **record)
    path = build.write()
    Build(path / "_f1.er", pid=77, start_ns=START_NS + SECOND).write()
    return Experiment(str(path))


def test_the_end_that_the_parent_saw_is_the_childs(tmp_path):
    end = ending(forked(tmp_path, end_ns=START_NS + 9 * SECOND, status=11 | 0x80).processes[1])

    assert (end.state, end.signal, end.end_ns) == ("killed", 11, START_NS + 9 * SECOND)


def test_a_child_that_nobody_waited_for_ended_unseen(tmp_path):
    assert ending(forked(tmp_path).processes[1]).state == "unseen"


def test_of_two_with_the_same_number_each_has_its_own_end(tmp_path):
    build = Build(tmp_path / "t.1.er")
    for turn in range(3):
        start_ns = START_NS + turn * 10 * SECOND
        build.child(how=SPAWN, pid=77, start_ns=start_ns, end_ns=start_ns + 5 * SECOND, status=(turn + 1) << 8)
    path = build.write()
    for number, turn in ((1, 0), (2, 2)):
        Build(path / f"_c{number}.er", pid=77, start_ns=START_NS + (turn * 10 + 1) * SECOND).write()
    experiment = Experiment(str(path))

    assert told(experiment) == [("", "unseen", 0), ("_c1", "exit", 1), (None, "exit", 2), ("_c2", "exit", 3)]


def test_what_a_process_became_has_the_end_of_its_number(tmp_path):
    build = Build(tmp_path / "t.1.er", pid=70)
    build.child(how=EXEC, pid=70, error=2)
    build.child(how=EXEC, pid=70, start_ns=START_NS + SECOND, command=build.string("/usr/bin/python3"))
    build.log_events.append(f'<event kind="exit" time_ns="{START_NS + 8 * SECOND}" signal="15"/>')
    path = build.write()
    Build(path / "_x1.er", pid=70, start_ns=START_NS + 2 * SECOND).write()
    founder, successor = Experiment(str(path)).processes

    assert (ending(founder).state, ending(founder).end_ns) == ("exec", START_NS + SECOND)
    assert ending(founder).command == "/usr/bin/python3"
    assert (ending(successor).state, ending(successor).signal) == ("killed", 15)


def test_what_a_shell_started_is_below_it(tmp_path):
    build = Build(tmp_path / "t.1.er", pid=70)
    build.child(how=SPAWN, pid=71, command=build.string("/bin/sh"), why=build.string("not Python"))
    path = build.write()
    Build(path / "_c1.er", pid=72, ppid=71, start_ns=START_NS + SECOND).write()

    rows = list(walk(tree(Experiment(str(path)))))

    assert [(depth, node.pid) for depth, node in rows] == [(0, 70), (1, 71), (2, 72)]


@pytest.mark.parametrize("namespace, pid, ppid", [(5, 1, 0), (5, 73, 71), (5, 71, 70)])
def test_numbers_of_another_namespace_are_not_compared(tmp_path, namespace, pid, ppid):
    build = Build(tmp_path / "t.1.er", pid=70, pid_namespace=4)
    command, end = build.string("/usr/bin/unshare"), {"end_ns": START_NS + 9 * SECOND, "usage": 1}
    for number, cpu_ns in ((71, SECOND // 10), (72, SECOND)):
        begun = {"start_ns": START_NS + number, "why": build.string("not Python"), **end}
        build.child(how=SPAWN, pid=number, command=command, cpu_ns=cpu_ns, **begun)
    path = build.write()
    inside = Build(path / "_c1.er", pid=pid, ppid=ppid, pid_namespace=namespace, start_ns=START_NS + SECOND)
    inside.ended(2 * SECOND, SECOND // 2)
    inside.write()

    experiment = Experiment(str(path))

    rows = [(depth, node.pid) for depth, node in walk(tree(experiment))]
    assert rows == [(0, 70), (1, 71), (1, 72), (2, pid)]
    assert [each.cpu_ns for each in unfollowed_cpu(experiment)] == [SECOND // 10 + SECOND // 2]


@pytest.mark.parametrize(
    "lineage, parts",
    [
        ("", ("", "", 0)),
        ("_f3", ("", "f", 3)),
        ("_f1_x12", ("_f1", "x", 12)),
        ("_f" + "9" * 99, ("", "f", 10**18 - 1)),
    ],
)
def test_a_lineage_is_its_starters_and_a_step(lineage, parts):
    assert split_lineage(lineage) == parts


def test_the_command_shows_a_tree_and_the_report_who_was_not_followed(interpose_here, tmp_path):
    build = Build(tmp_path / "work" / "t.1.er", pid=70)
    shell, reason = build.string("/bin/sh"), build.string("not Python")
    started = build.stack(build.site("/home/u/orders.py", 7, "print_all"))
    for pid in (71, 72):
        used = {"cpu_ns": SECOND // 4, "memory_kib": 3 * 1024, "stack": started, "usage": 1, "major_faults": 7}
        used |= {"system_ns": SECOND // 20, "out_blocks": 8}
        build.child(how=SPAWN, pid=pid, command=shell, why=reason, end_ns=START_NS + SECOND, status=3 << 8, **used)
    build.ended(2 * SECOND, SECOND)
    build.write()

    shown = interpose_here("processes")
    report = interpose_here("report")

    founder, shown_child = [" ".join(line.split()) for line in shown.stdout.splitlines()[1:3]]
    assert founder.startswith("founder 70 0.000 s 2.000 s exit 0 ")
    assert shown_child == "- 71 0.000 s 1.000 s 250 ms exit 3 sh not Python"
    told = json.loads(interpose_here("processes", "--format", "json").stdout)[1]
    assert (told["cpu_ns"], told["memory_bytes"]) == (SECOND // 4, 3 << 20)
    assert (told["system_ns"], told["major_faults"], told["written_bytes"]) == (SECOND // 20, 7, 4096)
    assert (told["is_usage_exact"], told["is_memory_at_most"]) == (True, False)
    assert (told["site"], told["function"]) == ("/home/u/orders.py:7", "print_all")
    assert " not followed  2 processes: 2 x /bin/sh (not Python)\n" in report.stdout
    assert " CPU of children not followed  500 ms  not in the table: sh 500 ms\n" in report.stdout
    whole = json.loads(interpose_here("report", "--format", "json").stdout)
    assert whole["children_not_followed"] == [{"program": "sh", "cpu_ns": SECOND // 2, "is_estimated": False}]
    assert " children     2.00 s  2 x sh  orders.py:7  2 failed, CPU 500 ms, memory 3.00 MiB\n" in report.stdout
