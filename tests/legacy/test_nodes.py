"""Line trace as GT.M stores it: targets, nodes, and how they are shown."""

from __future__ import annotations

import re
import sqlite3

import pytest

from interpose.analysis.lines.line_rows import line_trace
from interpose.cli.main import main
from interpose.errors import InterposeError, UsageError
from interpose.legacy.keytree import read_nodes, write_nodes
from interpose.legacy.nodes import Node, parse_target
from interpose.legacy.zwr import zwr

# The manual's example of VIEW "TRACE" (VMS), its single-line loops as comprehensions.
MANUAL = '''
import interpose

def bar(i):
    return i

def lv1():
    x = [bar(i) for i in range(10)]
    y = [j for i in range(5) for j in range(4)]

def lv2():
    interpose.trace_lines(True, '^elsewhere("A")')
    lv1()
    interpose.trace_lines(False, '^lvtr("MYTRACE",$J)')

lv2()
'''


def stored(traced, place, *words: str, **variables: str) -> list[str]:
    """What ZWRITE shows of a program's trace, its times and process numbers made the same."""
    done = traced(MANUAL, **variables)
    assert main(["lines", done.path, "--global", *words, "-o", str(place / "trace.db")]) == 0
    assert main(["display", "zwr", str(place / "trace.db"), "-o", str(place / "shown")]) == 0
    lines = (place / "shown").read_text().splitlines()
    pid = str(done.experiment.founder.log.pid)
    return [re.sub(r'((?:^|"|:)\d+):[\d:]+"', r'\1:T"', line.replace(f",{pid},", ",$J,")) for line in lines]


def test_the_manuals_example_gives_the_manuals_counts(traced, place):
    shown = stored(traced, place)

    assert [re.sub(r'="\d+:T"', '="T"', line) if "*" in line else line for line in shown] == [
        '^lvtr("MYTRACE",$J,"*CHILDREN")="T"',
        '^lvtr("MYTRACE",$J,"*RUN")="T"',
        '^lvtr("MYTRACE",$J,"__main__","bar")="10:T"',
        '^lvtr("MYTRACE",$J,"__main__","bar",0)="10:T"',
        '^lvtr("MYTRACE",$J,"__main__","bar",1)="10:T"',
        '^lvtr("MYTRACE",$J,"__main__","lv1")="1:T"',
        '^lvtr("MYTRACE",$J,"__main__","lv1",0)="1:T"',
        '^lvtr("MYTRACE",$J,"__main__","lv1",1)="1:T"',
        '^lvtr("MYTRACE",$J,"__main__","lv1",1,"FOR_LOOP",1)=10',
        '^lvtr("MYTRACE",$J,"__main__","lv1",2)="1:T"',
        '^lvtr("MYTRACE",$J,"__main__","lv1",2,"FOR_LOOP",1)=5',
        '^lvtr("MYTRACE",$J,"__main__","lv1",2,"FOR_LOOP",2)=20',
        '^lvtr("MYTRACE",$J,"__main__","lv2")="0:T"',
        '^lvtr("MYTRACE",$J,"__main__","lv2",2)="1:T"',
    ]


def test_another_global_may_be_named_when_it_is_stored(traced, place):
    assert '^%t(7,"__main__","bar")="10:T"' in stored(traced, place, "^%t(7)")


def test_user_and_system_time_make_five_figures(traced, place):
    done = traced(MANUAL, INTERPOSE_LINES_SYSTEM="1")
    main(["lines", done.path, "--global", "^t", "-o", "t.db"])

    values = {node.subscripts: node.value for node in read_nodes("t.db")}
    count, user, system, total, _ = map(int, values["__main__", "lv1", 1].split(":"))
    assert (count, user + system) == (1, total)


@pytest.mark.parametrize("text", ["", "lvtr", "^1", "^a(", "^a(b)", '^a("b"', "^a(1)x", "^a(01)", "^a(1,)"])
def test_what_is_no_global_is_refused(text):
    with pytest.raises(UsageError):
        parse_target(text)


def test_subscripts_are_texts_numbers_and_the_process():
    target = parse_target('^a("say ""no""", -3 ,$job)')

    assert (target.name, target.under(812)) == ("a", ('say "no"', -3, 812))


def test_nodes_are_shown_in_the_order_of_m_numbers_first():
    shown = list(zwr([Node("a", ("b",), "1"), Node("a", (10,), "1:2"), Node("a", (9, 'q"\n'), ""), Node("a", (), "x")]))

    assert shown == ['^a="x"', '^a(9,"q"""_$C(10))=""', '^a(10)="1:2"', '^a("b")=1']


def test_nodes_come_back_as_they_were_stored(place):
    nodes = [Node("a", ("b", 1), "x"), Node("a", (), "y")]

    write_nodes("t.db", nodes)
    write_nodes("t.db", nodes[:1])

    assert sorted(read_nodes("t.db"), key=str) == sorted(nodes, key=str)


@pytest.mark.parametrize("subscripts", ["x", "{}", "[1.5]", "[null]", "[true]"])
def test_a_file_with_other_subscripts_is_refused(place, subscripts):
    write_nodes("t.db", [])
    with sqlite3.connect("t.db") as tree:
        tree.execute("INSERT INTO nodes VALUES ('a', ?, 'v')", (subscripts,))

    with pytest.raises(InterposeError):
        list(read_nodes("t.db"))


def test_a_file_that_is_not_there_is_told_in_one_line(place, capsys):
    assert main(["display", "zwr", "none.db"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


AGAIN = '''
import interpose

def before():
    return 1

def after():
    return 2

before()
with interpose.trace_lines(True, '^named("A")'):
    after()
before()
'''


@pytest.mark.parametrize("recorded", ["calls,lines", "calls"])
def test_a_target_holds_also_where_lines_were_traced_already(traced, place, recorded):
    done = traced(AGAIN, INTERPOSE=recorded)

    assert main(["lines", done.path, "--global", "-o", str(place / "trace.db")]) == 0
    found = {node.subscripts: node.value.partition(":")[0] for node in read_nodes(str(place / "trace.db"))}
    assert found["A", "__main__", "after"] == "1"
    assert ("A", "__main__", "before") not in found
    rows = {each.place.function: each.figures.entered for each in line_trace(done.experiment).functions}
    assert rows.get("before", 0) == (2 if recorded == "calls,lines" else 0)
