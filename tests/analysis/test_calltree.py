"""The tree of calls and its views, against a plain and slow reckoning over every single call."""

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls import calltree as calltree_module
from interpose.analysis.calls.calltree import TOTAL, Function, calls_of
from interpose.analysis.calls.chosen import selecting
from interpose.analysis.calls.folding import API, HIDE, LIBRARY, Folding
from interpose.analysis.calls.functions import (
    by_function,
    by_line,
    by_object,
    by_source_line,
    callers_and_called,
    callers_of_all,
    functions_only,
)
from interpose.analysis.calls.groupings import GROUPINGS
from interpose.analysis.calls.profile import profile
from interpose.experiments.model.experiment import Experiment
from tests.build import START_NS, Build, event
from tests.random_calls import INTRINSICS, calls, processes, write

on_disk = settings(max_examples=40)  # each of them writes an experiment
ORDERS = "/home/u/shop/orders.py"


def made_of(given_processes):
    directory = tempfile.TemporaryDirectory()
    path, found = write(Path(directory.name) / "t.1.er", given_processes)
    return directory, Experiment(str(path)), found


def walls(rows, name_of=lambda what: getattr(what, "name", what)):
    """Exclusive and inclusive wall time by name; where several rows have a name they are added."""
    exclusive, inclusive = Counter(), Counter()
    for row in rows:
        exclusive[name_of(row.what)] += row.exclusive[0]
        inclusive[name_of(row.what)] += row.inclusive[0]
    return exclusive, inclusive


@pytest.mark.long
@on_disk
@given(processes())
def test_every_view_adds_up_to_the_total_and_all_totals_agree(made):
    directory, experiment, found = made_of(made)
    with directory:
        looked_at = calls_of(Analysis(experiment))
        tree = looked_at.tree
        totals = {by: profile(Analysis(experiment), by).total for by in GROUPINGS}
        whole = tree.totals()[tree.root]

        assert {(total.wall_ns, total.cpu_ns) for total in totals.values()} == {tuple(whole[:2])}
        assert whole[2] == whole[0] - whole[1]
        assert whole[3] == len(found)
        assert whole[4] == sum(call.failed for call in found)
        assert whole[5] == sum(call.moved for call in found)
        for rows in (by_function(tree), by_line(tree), by_object(tree)):
            assert rows[0].exclusive == rows[0].inclusive == whole
            for place, value in enumerate(whole):
                assert sum(row.exclusive[place] for row in rows[1:]) == value
        for place, value in enumerate(whole):
            assert sum(vector[place] for vector in looked_at.threads.values()) == value
        assert experiment.damages.found == []


@pytest.mark.long
@on_disk
@given(processes())
def test_functions_have_what_was_called_in_them_and_below_once(made):
    directory, experiment, found = made_of(made)
    with directory:
        exclusive, inclusive = walls(by_function(calls_of(Analysis(experiment)).tree))

    for name in {name for call in found for name in call.path}:
        assert exclusive[name] == sum(call.self_wall_ns for call in found if call.path[-1] == name)
        assert inclusive[name] == sum(call.self_wall_ns for call in found if name in call.path)


@pytest.mark.long
@on_disk
@given(processes())
def test_lines_of_a_source_have_what_was_called_from_them(made):
    directory, experiment, found = made_of(made)
    with directory:
        rows = by_source_line(calls_of(Analysis(experiment)).tree, ORDERS)

    expected = Counter()
    for call in found:
        lines = {line for name, line in call.lines if name in ("main", "save", "<module>")}
        expected.update(dict.fromkeys(lines, call.self_wall_ns))
    assert {line: row.inclusive[0] for line, row in rows.items()} == expected


@pytest.mark.long
@on_disk
@given(processes())
def test_what_callers_are_attributed_adds_up_to_the_function(made):
    directory, experiment, found = made_of(made)
    with directory:
        tree = functions_only(calls_of(Analysis(experiment)).tree)
        of = {row.what: row for row in by_function(tree)}
        in_one_pass = callers_of_all(tree)

    assert set(in_one_pass) == set(of)
    for function, all_callers in in_one_pass.items():
        alone = callers_and_called(tree, [function])
        assert alone == all_callers
        row = of[function]
        called = [sum(column) for column in zip(alone.exclusive, *alone.called.values(), strict=True)]
        assert called == alone.inclusive == row.inclusive
        if function != TOTAL:
            assert [sum(column) for column in zip(*alone.callers.values(), strict=True)] == row.inclusive
            assert alone.exclusive == row.exclusive
        expected = Counter()
        for call in found:
            if function.name in call.path:
                expected[["<Total>", *call.path][call.path.index(function.name)]] += call.self_wall_ns
        if not function.name.startswith("<") or function.name == "<module>":
            attributed = Counter()
            for caller, vector in alone.callers.items():
                attributed[caller.name] += vector[0]
            assert attributed == expected


@pytest.mark.long
@on_disk
@given(processes(), st.sampled_from([HIDE, API]), st.sampled_from([["all"], ["library"], [ORDERS], ["sqlite3"]]))
def test_objects_shown_otherwise_leave_the_total_as_it_is(made, mode, objects):
    directory, experiment, _ = made_of(made)
    with directory:
        tree = calls_of(Analysis(experiment)).tree
        folding = Folding()
        folding.set(objects, mode)
        folded = folding.folded(tree)

        assert folded.totals()[folded.root] == tree.totals()[tree.root]
        rows = by_function(folded)
        assert sum(row.exclusive[0] for row in rows[1:]) == rows[0].inclusive[0]


@pytest.mark.long
@on_disk
@given(calls(), st.integers(0, len(INTRINSICS) - 1))
def test_of_chosen_calls_alone_no_second_of_a_function_counts_twice(made, wanted):
    directory, experiment, found = made_of([[made]])
    with directory:
        selects = selecting(lambda process: lambda event, depth: event.intrinsic == wanted + 1)
        chosen = calls_of(Analysis(experiment, selects))
        exclusive, inclusive = walls(by_function(chosen.tree))

    kept = [call for call in found if call.intrinsic == wanted]
    assert inclusive["<Total>"] == sum(call.self_wall_ns for call in kept)
    assert "<code>" not in inclusive
    for name in {name for call in found for name in call.path}:
        assert exclusive[name] == sum(call.self_wall_ns for call in kept if call.path[-1] == name)
        assert inclusive[name] == sum(call.self_wall_ns for call in kept if name in call.path)


def test_a_fragment_is_where_its_functions_call_each_other_at_once(tmp_path):
    build = Build(tmp_path / "t.1.er")
    write_file = build.intrinsic("os.write", "file")
    sites = {name: build.site("/home/u/a.py", line, name) for line, name in enumerate(("<module>", "f", "g", "h"), 1)}

    def stack(*names):
        outer = 0
        for name in names:
            outer = build.stack(sites[name], outer)
        return outer

    paths = [("<module>", "f", "g"), ("<module>", "g", "f"), ("<module>", "f", "g", "h"), ("<module>", "f", "f", "g")]
    build.block(
        [event(10 * n, 1 << n, call=n + 1, intrinsic=write_file, stack=stack(*names)) for n, names in enumerate(paths)]
    )
    build.thread(end_ns=START_NS + 100, recorded=4)
    tree = calls_of(Analysis(Experiment(str(build.write())))).tree
    function = {node.frame.function.name: node.frame.function for node in tree.nodes}

    found = callers_and_called(tree, [function["f"], function["g"]])

    assert found.inclusive[0] == 1 + 4 + 8
    assert {caller.name: vector[0] for caller, vector in found.callers.items()} == {"<module>": 5, "f": 8}
    assert {called.name: vector[0] for called, vector in found.called.items()} == {"os.write": 9, "h": 4}
    assert found.exclusive[0] == 0


def test_frames_of_libraries_are_folded_into_what_was_entered_first(tmp_path):
    build = Build(tmp_path / "t.1.er")
    send = build.intrinsic("socket.socket.send", "net")
    own = build.stack(build.site("/home/u/shop/orders.py", 5, "save"))
    get = build.stack(build.site("/usr/lib/requests/api.py", 9, "get", own=0), own)
    urlopen = build.stack(build.site("/usr/lib/urllib3/pool.py", 7, "urlopen", own=0), get)
    build.block([event(0, 40, call=1, intrinsic=send, stack=urlopen), event(50, 2, call=2, intrinsic=send, stack=own)])
    build.thread(end_ns=START_NS + 100, recorded=2)
    tree = calls_of(Analysis(Experiment(str(build.write())))).tree

    by_api, hidden = Folding(), Folding()
    by_api.set([LIBRARY], API)
    hidden.set([LIBRARY], HIDE)

    exclusive, inclusive = walls(by_function(by_api.folded(tree)))
    assert (exclusive["get"], exclusive["socket.socket.send"], inclusive["save"]) == (40, 2, 42)
    assert "urlopen" not in exclusive
    exclusive, inclusive = walls(by_function(hidden.folded(tree)))
    assert (exclusive["<socket>"], exclusive["socket.socket.send"], inclusive["get"]) == (42, 0, 0)


def test_too_many_paths_are_put_into_one_and_no_time_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(calltree_module, "NODES_AT_MOST", 20)
    build = Build(tmp_path / "t.1.er")
    write_file = build.intrinsic("os.write", "file")
    stacks = [build.stack(build.site("/home/u/a.py", line, f"f{line}")) for line in range(1, 40)]
    build.block([event(10 * n, 5, call=n + 1, intrinsic=write_file, stack=each) for n, each in enumerate(stacks)])
    build.thread(end_ns=START_NS + 1000, recorded=len(stacks))
    experiment = Experiment(str(build.write()))

    tree = calls_of(Analysis(experiment)).tree

    assert tree.totals()[tree.root][0] == 1000
    assert len(tree.nodes) <= 22
    assert "call paths" in str(experiment.damages.found[0])


@pytest.mark.parametrize("stack", [0, 99])
def test_calls_whose_stack_is_not_there_are_of_unknown_callers(tmp_path, stack):
    build = Build(tmp_path / "t.1.er")
    build.block([event(0, 5, intrinsic=build.intrinsic("os.write", "file"), stack=stack)])
    build.thread(end_ns=START_NS + 10, recorded=1)

    _, inclusive = walls(by_function(calls_of(Analysis(Experiment(str(build.write())))).tree))

    assert inclusive["<Unknown>"] == 5


@pytest.mark.parametrize(("line", "outermost"), [(5, "<Truncated-stack>"), (0, "main")])
def test_a_stack_ends_early_with_a_line_of_your_own_and_native_code_has_none(tmp_path, line, outermost):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    stack = build.stack(build.site("/home/u/orders", line, "main"))
    build.block([event(0, 5, intrinsic=build.intrinsic("os.write", "file"), stack=stack)])
    build.thread(end_ns=START_NS + 10, recorded=1)

    tree = calls_of(Analysis(Experiment(str(build.write())))).tree

    assert [frame.function.name for frame in tree.root.inner if frame.function.name != "<code>"] == [outermost]


def test_functions_of_one_name_in_two_files_are_two():
    assert Function("get", "a.py", True) != Function("get", "b.py", True)


def test_sampled_code_stands_in_the_tree_in_the_place_of_the_program(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    request = build.intrinsic("flask.Flask.wsgi_app", "logic")
    build.block([event(0, 400, 300, intrinsic=request)])
    view = build.sampled_stack(("app.py", 3, "serve"), ("app.py", 9, "view"))
    for place in range(1, 5):
        build.thread_sample(START_NS + place * 100, cpu_ns=place * 70, stack=view, call=1, intrinsic=request)
    build.thread_sample(START_NS + 500, cpu_ns=300, stack=build.sampled_stack(("app.py", 3, "serve")))
    build.thread(end_ns=START_NS + 1000, end_cpu_ns=800, tid=1, main=1, recorded=1, made=1)
    build.ended(1000, 800)

    tree = calls_of(Analysis(Experiment(str(build.write())))).tree
    totals = {node.frame.function.name: figures[:2] for node, figures in tree.totals().items()}

    assert totals["<Total>"] == [1000, 800]
    assert totals["view"][1] == 300
    assert totals["flask.Flask.wsgi_app"] == [0, 0]
    assert "<code>" not in totals
