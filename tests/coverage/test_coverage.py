"""Statement coverage: which places of code are noted as executed, which way conditions went, and in what context."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tracing import Traced

from interpose.analysis.coverage.coverage import Asked, coverage
from interpose.experiments.format.covered import Covered
from interpose.experiments.model.process import Process

NEWER = sys.version_info >= (3, 12)


@pytest.fixture(params=[True] if NEWER else [True, False])
def by_probes(request):
    """On 3.11: by probes, or by the trace function."""
    return request.param


@pytest.fixture
def traced(traced, by_probes):
    """`traced` with coverage recorded in that way."""

    def run(*words, **variables):
        return traced(*words, **{"INTERPOSE_PROBES": str(int(by_probes)), **variables})

    return run


def codes(process: Process, function: str, context: str = "") -> list[int]:
    """The numbers of the records of a function in a context."""
    table = process.raw_table("covered")
    records = [(number, record) for number, record, _ in (table.bounded(10_000) if table else ()) if record.kind == 1]
    named = [(number, process.string(record.function), process.string(record.context)) for number, record in records]
    return [number for number, name, within in named if (name, within) == (function, context)]


def places(traced: Traced, function: str, context: str = "") -> dict[tuple[int, int], bool]:
    """By line and column, each from 1: whether a place was come to in one of the processes."""
    found: dict[tuple[int, int], bool] = {}
    for process in traced.experiment.processes:
        numbers = codes(process, function, context)
        table = process.raw_table("places")
        for _, place, _ in table.bounded(100_000) if table else ():
            if place.code in numbers:
                at = (place.line, place.column)
                found[at] = found.get(at, False) or bool(place.executed)
    return found


def lines(traced: Traced, function: str, context: str = "") -> dict[int, bool]:
    """By line: whether one of its places was come to."""
    found: dict[int, bool] = {}
    for (line, _), executed in places(traced, function, context).items():
        found[line] = found.get(line, False) or executed
    return found


def branches(traced: Traced, function: str) -> list[tuple[int, int, int, bool, bool]]:
    """Of each jump the lines that it is in, goes on to, and jumps to (0: the end), and whether it went there."""
    found = []
    for process in traced.experiment.processes:
        numbers = codes(process, function)
        table, jumps = process.raw_table("places"), process.raw_table("branches")
        line_of = {number: place.line for number, place, _ in (table.bounded(100_000) if table else ())}
        for _, jump, _ in jumps.bounded(100_000) if jumps else ():
            if jump.code in numbers:
                at = [line_of.get(place, 0) for place in (jump.origin, jump.next, jump.other)]
                found.append((*at, bool(jump.went_next), bool(jump.went_other)))
    return found


def missed(traced: Traced) -> list[str]:
    """What the experiment says was not recorded."""
    return [why for process in traced.experiment.processes for why in process.log.missed("coverage")]


def test_lines_that_ran_are_told_from_those_that_did_not(traced):
    done = traced(
        """
        def f(x):
            if x:
                y = 1
            else:
                y = 2
            return y

        def never():
            return 1

        f(1)
        """,
        INTERPOSE="coverage",
    )

    assert lines(done, "f") == {3: True, 4: True, 6: False, 7: True}
    assert lines(done, "never") == {}


def test_statements_on_one_line_are_told_apart(traced):
    done = traced(
        """
        def f(x):
            if x: y = 1; z = 2
            else: z = 3
            return z

        f(0)
        """,
        INTERPOSE="coverage",
    )

    found = places(done, "f")
    assert found[(3, 8)] and not found[(3, 15)] and not found[(3, 22)]
    assert found[(4, 15)] and found[(5, 12)]


def test_bodies_that_stand_behind_their_heads_are_told_apart_from_these(traced):
    done = traced(
        """
        def f(a, x):
            for i in a: print(i)
            try: a.index
            except AttributeError: print(2)
            with x: print(3)

        import contextlib
        f([], contextlib.nullcontext())
        """,
        INTERPOSE="coverage",
    )

    found = places(done, "f")
    assert found[(3, 14)] and not found[(3, 17)]
    assert found[(4, 10)] and not found[(5, 28)]
    assert found[(6, 10)] and found[(6, 13)]


def test_a_statement_after_one_that_raised_was_not_executed(traced):
    done = traced(
        """
        def f(x):
            a = 1; b = 1 / x; c = 2

        try:
            f(0)
        except ZeroDivisionError:
            pass
        """,
        INTERPOSE="coverage",
    )

    executed = [place for place, was in places(done, "f").items() if was]
    assert (3, 27) not in executed
    assert {line for line, _ in executed} == {3} and len(executed) == 2


def test_it_is_noted_which_way_conditions_went(traced):
    done = traced(
        """
        def f(x):
            for i in range(x):
                if i > 5:
                    x += 1
            return x

        f(3)
        """,
        INTERPOSE="coverage",
        INTERPOSE_BRANCHES="1",
    )

    assert (3, 4, 6, True, True) in branches(done, "f")
    assert {(5, False), (3, True)} <= {
        end for origin, next_, other, went, jumped in branches(done, "f") if origin == 4
        for end in ((next_, went), (other, jumped))
    }  # fmt: skip


def test_it_is_noted_which_way_conditions_went_where_a_line_has_several_statements(traced):
    """Then instructions have events, and an event of a branch does not tell the jump, but what is behind it."""
    done = traced(
        """
        def f(x):
            for i in range(x): x -= 1; x += 1
            if x: x = 5
            while x > 3: x -= 1; x -= 1
            for i in range(x):
                if i > x:
                    x += 1
            return x

        f(3); f(0)
        """,
        INTERPOSE="coverage",
        INTERPOSE_BRANCHES="1",
    )

    gone = {(origin, went, jumped) for origin, _, _, went, jumped in branches(done, "f")}
    assert {(3, True, True), (4, True, True), (6, True, True)} <= gone
    assert len({(went, jumped) for origin, went, jumped in gone if origin == 7} & {(True, False), (False, True)}) == 1


def test_branches_are_not_noted_unless_asked_for(traced):
    done = traced("def f(x):\n    if x:\n        x = 1\nf(1)\n", INTERPOSE="coverage")

    assert lines(done, "f") == {2: True, 3: True}
    assert branches(done, "f") == []


def test_generators_coroutines_and_classes_are_covered(traced):
    done = traced(
        """
        import asyncio

        class A:
            x = 1

            def g(self):
                for i in range(2):
                    yield i
                return 3

        async def c():
            await asyncio.sleep(0)
            return list(A().g())

        asyncio.run(c())
        """,
        INTERPOSE="coverage",
    )

    assert lines(done, "A.g") == {8: True, 9: True, 10: True}
    assert lines(done, "c") == {13: True, 14: True}
    assert lines(done, "A")[5]


def test_only_the_chosen_functions_are_covered(traced):
    program = """
        import json

        class A:
            def f(self):
                return json.dumps([])

            def g(self):
                return 1

        A().f(), A().g()
        """

    own = traced(program, INTERPOSE="coverage")
    chosen = traced(program, INTERPOSE="coverage", INTERPOSE_COVERAGE="__main__:A.f,json")

    assert lines(own, "A.f") and lines(own, "A.g") and not lines(own, "dumps")
    assert lines(chosen, "A.f") and not lines(chosen, "A.g") and lines(chosen, "dumps")


@pytest.mark.parametrize("chosen", ["shop", "shop.child", "shop.*:main", "__main__"])
@pytest.mark.parametrize("what", ["coverage", "lines"])
def test_a_module_that_runs_as_the_main_one_is_chosen_by_its_name(traced, tmp_path, chosen, what):
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "child.py").write_text(
        "def main():\n    return 7\n\nif __name__ == '__main__':\n    print(main(), __name__)\n"
    )
    program = "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'shop.child'], check=True)\n"

    done = traced(program, INTERPOSE=what, **{f"INTERPOSE_{what.upper()}": chosen})

    modules = coverage(done.experiment, Asked(place=str(done.directory))).modules
    found = {Path(each.path).name: each.own.part for each in modules}
    assert done.stdout == "7 __main__\n"
    assert found.get("child.py", 0) == (1 if chosen == "shop.*:main" else 4)


def test_what_namedtuple_makes_is_not_the_programs_own_and_what_the_program_makes_is(traced):
    program = """
        import collections
        Point = collections.namedtuple("Point", "x y")
        def add(point):
            return point.x + point.y
        names = {"__name__": "made"}
        exec("def twice(x):\\n    return 2 * x", names)
        print(names["twice"](add(Point(1, 2))))
    """
    done = traced(program, INTERPOSE="coverage")

    assert done.stdout == "6\n"
    files = {
        process.string(record.file)
        for process in done.experiment.processes
        for _, record, _ in process.raw_table("covered").bounded(10_000)
        if process.string(record.module).startswith("namedtuple")
    }
    assert files == set()
    assert lines(done, "add") == {5: True}
    assert lines(done, "twice") == {2: True}


def test_what_a_child_without_a_source_made_is_not_the_main_programs(traced):
    made = "".join(f"def f{number}(x):\n    return x\n" for number in range(5)) + "print(f0(1), f1(0))"
    child = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {made!r}])\n"
    own = "exec('def g(x):\\n    return x')\ng(1)\n"

    found = {}
    for what, program in {"child": child, "own": own, "both": child + own}.items():
        done = traced(program, INTERPOSE="coverage")
        modules = coverage(done.experiment, Asked(place=str(done.directory))).modules
        found[what] = {Path(each.path).name: (each.with_generated.whole - each.own.whole, each.why) for each in modules}

    assert found["child"]["program.py"][0] == 0
    assert found["own"] == {"program.py": (found["own"]["program.py"][0], "")} and found["own"]["program.py"][0] > 0
    assert found["both"]["program.py"] == found["own"]["program.py"]
    assert found["child"]["<string>"] == found["both"]["<string>"]
    assert "of __main__" in found["child"]["<string>"][1]


def test_code_that_interpose_makes_for_itself_is_not_the_programs(traced):
    done = traced("import asyncio\nasync def f():\n    return 1\nasyncio.run(f())\n", INTERPOSE="calls,coverage")

    files = {
        Path(process.string(record.file)).name
        for process in done.experiment.processes
        for _, record, _ in process.raw_table("covered").bounded(10_000)
    }
    assert files == {"program.py"}


def test_each_transaction_has_its_own_coverage_where_asked(traced):
    done = traced(
        """
        from interpose import transaction

        def f(x):
            if x:
                return 1
            return 2

        for each in range(2):
            with transaction("one"):
                f(1)
        with transaction("other"):
            f(0)
        """,
        INTERPOSE="calls,coverage",
        INTERPOSE_CONTEXTS="1",
    )

    assert lines(done, "f", "one") == {5: True, 6: True, 7: False}
    assert lines(done, "f", "other") == {5: True, 6: False, 7: True}
    assert lines(done, "<module>")[12]


def test_a_forked_child_has_coverage_of_its_own(traced):
    done = traced(
        """
        import os

        def f(x):
            if x:
                return 1
            return 2

        f(1)
        pid = os.fork()
        if not pid:
            f(0)
            os._exit(0)
        os.waitpid(pid, 0)
        """,
        INTERPOSE="coverage",
    )

    assert len(done.experiment.processes) == 2
    assert lines(done, "f") == {5: True, 6: True, 7: True}


def test_what_runs_while_recording_is_paused_is_not_noted_and_not_lost(traced):
    done = traced(
        """
        def f(x):
            if x:
                return 1
            return 2

        f(1)
        """,
        INTERPOSE="coverage",
        INTERPOSE_PAUSED="1",
    )

    assert not any(lines(done, "f").values())


@pytest.mark.skipif(not NEWER, reason="there is no sys.monitoring")
def test_where_others_have_the_tools_it_is_said_and_the_program_goes_on(traced, tmp_path):
    before = tmp_path / "sitecustomize.py"
    before.write_text("import sys\nfor number in (3, 4):\n    sys.monitoring.use_tool_id(number, 'other')\n")
    done = traced("import sys\nprint(sys.monitoring.get_tool(3))\n", INTERPOSE="coverage", PYTHONPATH=str(tmp_path))

    assert done.stdout in ("other\n", "interpose\n")
    assert done.stdout == "interpose\n" or any("taken by others" in why for why in missed(done))


def test_coverage_py_covers_the_same_program_beside_us(traced, by_probes):
    pytest.importorskip("coverage")
    program = """
        import coverage, sys
        measured = coverage.Coverage(data_file=None)
        measured.start()
        def f(x):
            if x:
                return 1
            return 2
        f(1)
        measured.stop()
        print(sorted(measured.get_data().lines(__file__))[-4:])
        """

    with_us = traced(program, INTERPOSE="coverage")
    without = traced(program, INTERPOSE="0")

    assert with_us.stdout == without.stdout
    if by_probes:
        assert lines(with_us, "f") == {6: True, 7: True, 8: False}
    else:  # there is one trace function to a thread, and the program's own goes before
        assert not any(lines(with_us, "f").values())


def test_who_traces_is_told_what_it_asked_for_and_we_go_on_afterwards(traced, by_probes):
    program = """
        import sys

        def f(x):
            if x: return 1
            return 2

        def trace(frame, event, argument):
            told.append(event)
            return trace

        def traced():
            frame = sys._getframe()
            frame.f_trace = trace
            sys.settrace(trace)
            x = 1; y = 2
            f(1)
            sys.settrace(None)
            return f(0)

        told = []
        print(traced(), told, sys.gettrace())
        """

    with_us = traced(program, INTERPOSE="coverage")
    without = traced(program, INTERPOSE="0")

    assert with_us.stdout == without.stdout
    assert lines(with_us, "f")[6]
    told = missed(with_us)
    assert told == ([] if by_probes else ["what ran under the program's own trace function (sys.settrace)"])


def test_the_end_of_a_recording_ends_coverage(recorded):
    done = recorded(
        """
        record()
        session.begin_coverage(precedence.resolve({}, {"INTERPOSE": "coverage"}, {}))
        def f():
            return 1
        f()
        monitoring = getattr(sys, "monitoring", None)
        tools = lambda: [monitoring and monitoring.get_tool(number) for number in (3, 4)]
        during = tools()
        shims.end()
        print("interpose" in during, tools(), sys.gettrace())
        """
    )

    assert done.stdout == f"{NEWER} [None, None] None\n"


def test_code_without_columns_is_covered_by_lines(traced):
    done = traced(
        """
        def f(x):
            if x: y = 1
            return 2

        f(0)
        """,
        INTERPOSE="coverage",
        PYTHONNODEBUGRANGES="1",
    )

    assert places(done, "f") == {(3, 0): True, (4, 0): True}


@pytest.mark.parametrize("without_columns", ["", "1"])
def test_a_return_that_the_compiler_repeats_ran_wherever_it_ran(traced, without_columns):
    done = traced(
        """
        def f(items, most):
            found = []
            while items:
                some = []
                while items:
                    some.append(items.pop())
                if some:
                    if most is None or (len(found) < most and (not items or unknown < 3)):
                        found.append(some)
                    else:
                        break
            return found

        f(list("abc"), None)
        """,
        INTERPOSE="coverage",
        PYTHONNODEBUGRANGES=without_columns,
    )

    found = lines(done, "f")
    assert found.pop(12, False) is False  # on 3.12 and before, `break` has no code
    assert found == dict.fromkeys((*range(3, 11), 13), True)


def test_line_trace_and_coverage_of_the_same_functions_agree(traced, by_probes):
    done = traced(
        """
        def f(x):
            for i in range(x):
                if i > 3:
                    break
            return x

        f(2)
        """,
        INTERPOSE="lines,coverage",
    )

    if by_probes:
        assert lines(done, "f") == {3: True, 4: True, 5: False, 6: True}
    else:  # there is one trace function to a thread
        assert "another trace function is installed" in missed(done)


@pytest.mark.skipif(not NEWER, reason="there is no sys.monitoring")
def test_statements_on_one_line_are_told_apart_when_another_tool_has_come(traced):
    done = traced(
        """
        import sys

        def f(x):
            a = 1; b = 2
            sys.settrace(lambda *told: None)
            sys.settrace(None)
            a = 3; b = 4
            if x: return a
            return b

        f(1)
        """,
        INTERPOSE="coverage",
    )

    assert lines(done, "f") == {5: True, 6: True, 7: True, 8: True, 9: True, 10: False}
    assert {place for place, was in places(done, "f").items() if not was} == {(10, 12)}


@pytest.mark.skipif(not NEWER, reason="there is no sys.monitoring")
@pytest.mark.parametrize("what", ["coverage", "lines"])
def test_who_monitors_instructions_is_told_of_all_of_them(traced, what):
    program = """
        import sys

        def f(x):
            if x: y = 1; z = 2
            return y

        told = []
        monitoring, events = sys.monitoring, sys.monitoring.events
        monitoring.use_tool_id(5, "the program's")
        monitoring.register_callback(5, events.LINE, lambda code, line: told.append(line))
        monitoring.register_callback(5, events.INSTRUCTION, lambda code, place: told.append(place))
        monitoring.set_local_events(5, f.__code__, events.LINE | events.INSTRUCTION)
        f(1), f(1)
        print(told)
        """

    assert traced(program, INTERPOSE=what).stdout == traced(program, INTERPOSE="0").stdout


@pytest.mark.slow
def test_a_function_of_very_many_lines_is_covered(traced):
    done = traced(
        """
        body = "".join(f"    if x > {n}:\\n        x += 1\\n" for n in range(17_000))
        exec(compile(f"def f(x):\\n{body}    return x\\nf(0)\\n", "made.py", "exec"))
        """,
        INTERPOSE="coverage",
        INTERPOSE_BRANCHES="1",
        INTERPOSE_CONTEXTS="1",  # no event is switched off: CPython takes long for it in large code
    )

    found = Covered(done.experiment.founder)
    places = {point.line: was for code, point, was in found.places() if code.function == "f"}
    jumps = [jump for code, jump in found.jumps() if code.function == "f"]
    ways = {(jump.origin.line, jump.target.line): jump.was_gone for jump in jumps}
    assert places == {line: line % 2 == 0 for line in range(2, 34_003)}
    assert ways == {(line, line + by): by == 2 for line in range(2, 34_002, 2) for by in (1, 2)}
    assert found.left_out == 0
