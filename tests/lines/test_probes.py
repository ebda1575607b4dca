"""Probes in the bytecode of 3.11: what the program sees of its code is as it was compiled, and every place is noted."""

from __future__ import annotations

import sys

import pytest

from tests.coverage.test_coverage import lines

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 12), reason="coverage is by sys.monitoring")


def agree(traced, program):
    """The same program under coverage of everything; what it prints is as without."""
    with_us = traced(program, INTERPOSE="coverage", INTERPOSE_COVERAGE="*")
    without = traced(program, INTERPOSE="0")

    assert with_us.stdout == without.stdout and with_us.stdout
    return with_us


def test_code_looks_as_it_was_compiled_before_it_runs_and_after(traced):
    done = agree(
        traced,
        """
        import marshal, sys

        def f(x):
            try:
                return [y for y in x if y]
            finally:
                x = 1

        def show(code):
            print(code.co_code.hex(), code.co_stacksize, list(code.co_positions()), list(code.co_lines()))
            print(code.co_linetable, code.co_exceptiontable, [type(each) for each in code.co_consts])

        show(f.__code__), show(sys._getframe().f_code)
        print(f([1]), marshal.loads(marshal.dumps(f.__code__)) == f.__code__, f.__code__ == show.__code__)
        print(hash(marshal.loads(marshal.dumps(f.__code__))) == hash(f.__code__))
        show(f.__code__), show(sys._getframe().f_code)
        """,
    )

    assert set(lines(done, "f").values()) == {True}


def test_the_complement_of_a_class_is_an_error_as_ever(traced):
    agree(
        traced,
        """
        class Meta(type):
            def __invert__(cls):
                return "inverted"

        class A(metaclass=Meta):
            pass

        for each in (AssertionError, int, A, type):
            try:
                print(~each)
            except TypeError as error:
                print(error)
        print(hasattr(type, "__invert__"))
        """,
    )


def test_places_of_a_long_function_are_noted(traced):
    body = "\n".join(f"    if x == {number}:\n        y += {number}" for number in range(400))
    done = traced(f"def f(x):\n    y = 0\n{body}\n    return y\nf(7)\n", INTERPOSE="coverage")

    found = lines(done, "f")
    executed = {line for line, was in found.items() if was}
    assert executed == {2, *range(3, 803, 2), 18, 803}
    assert set(found) == set(range(2, 804))


def test_a_trace_function_is_told_what_it_is_told_without_us(traced):
    agree(
        traced,
        """
        import sys

        def f(x):
            total = 0
            for each in range(x):
                if each: total += 1; total += 2
                while total > 5:
                    total -= 4
            try:
                raise ValueError
            except ValueError:
                pass
            return list(g(total))

        def g(x):
            yield x
            with open("/dev/null"):
                yield x + 1

        def tell(frame, event, argument):
            print(event, frame.f_lineno, frame.f_lasti)
            return tell

        sys.settrace(tell)
        f(5)
        sys.settrace(None)
        print(sys.gettrace())
        """,
    )


def test_generators_and_coroutines_go_on_where_they_were(traced):
    agree(
        traced,
        """
        import asyncio

        def inner():
            try:
                got = yield 1
                print("got", got)
                yield 2
            except KeyError:
                yield 3
            finally:
                print("closed")

        def outer():
            yield from inner()

        async def numbers():
            for each in range(3):
                await asyncio.sleep(0)
                yield each

        async def main():
            async with asyncio.timeout(5):
                return [each async for each in numbers()]

        one, two = outer(), outer()
        print(next(one), one.send(5), next(two), two.throw(KeyError), one.gi_yieldfrom is not None)
        one.close(), two.close()
        print(asyncio.run(main()))
        """,
    )


def test_functions_that_were_there_before_are_covered_where_chosen(traced):
    asked = {"INTERPOSE": "coverage", "INTERPOSE_COVERAGE": "posixpath"}
    done = traced("import os.path\nos.path.join('a', 'b')\n", **asked)

    assert any(lines(done, "join").values())


def test_what_exec_and_eval_run_is_covered(traced):
    done = traced(
        """
        names = {"__name__": "made"}
        exec("def f(x):\\n    return x\\n", names)
        exec(compile("g = f(1)", "made.py", "exec"), names)
        print(eval("f(g)", names), eval("1 +\\\\\\n 1"))
        """,
        INTERPOSE="coverage",
    )

    assert done.stdout == "1 2\n"
    assert lines(done, "f") == {2: True}


def test_probes_that_were_not_come_to_are_gone_after_the_recording(recorded):
    done = recorded(
        """
        record()
        session.begin_coverage(precedence.resolve({}, {"INTERPOSE": "coverage"}, {}))
        names = {}
        exec("def f(x):\\n    if x:\\n        return 1\\n    return 2\\n", names)
        during = (names["f"].__code__._co_code_adaptive[: len(names["f"].__code__.co_code)])
        shims.end()
        after = (names["f"].__code__._co_code_adaptive[: len(names["f"].__code__.co_code)])
        print(during != names["f"].__code__.co_code, after == names["f"].__code__.co_code, names["f"](0))
        """
    )

    assert done.stdout == "True True 2\n"


LONG = "\n".join(
    [
        "def f(items):",
        "    total = 0",
        "    for each in items:",
        *(f"        if each == {number}:\n            total += 1\n            continue" for number in range(60)),
        "        if each < 0:",
        "            continue",
        "        pass",
        "    return total",
        "print(f([3, 70, 59]))",
        "print(f([-1]))",
    ]
)


def test_of_a_long_function_whatever_ran_is_noted(traced):
    probed = traced(LONG, INTERPOSE="coverage")
    told = traced(LONG, INTERPOSE="coverage", INTERPOSE_PROBES="0")

    assert probed.stdout == told.stdout == "2\n0\n"
    assert {line for line, ran in lines(probed, "f").items() if ran} == {
        line for line, ran in lines(told, "f").items() if ran
    }


MODULES = ("textwrap", "shlex", "fnmatch", "heapq", "bisect", "csv", "configparser", "html", "functools", "argparse")
RUN = """
import random, sys, unittest
random.seed(0)
tests = unittest.defaultTestLoader.loadTestsFromName("test.test_" + sys.argv[1])
result = unittest.TextTestRunner(verbosity=0).run(tests)
print(result.testsRun, len(result.failures), len(result.errors))
"""


def executed(done, module):
    """The file, function, line and column of each place of a module that was come to."""
    found = set()
    for process in done.experiment.processes:
        codes = {
            number: process.string(record.function)
            for number, record, _ in process.raw_table("covered").bounded(10**6)
            if process.string(record.module) == module
        }
        found |= {
            (codes[place.code], place.line)
            for _, place, _ in process.raw_table("places").bounded(10**7)
            if place.executed and place.code in codes
        }
    return found


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_probes_note_what_the_trace_function_notes(traced, module):
    pytest.importorskip(f"test.test_{module}")
    asked = {"INTERPOSE": "coverage", "INTERPOSE_COVERAGE": module, "INTERPOSE_FOLLOW": "off", "PYTHONHASHSEED": "0"}

    probed = traced(RUN, module, timeout_s=600, **asked)
    told = traced(RUN, module, timeout_s=600, INTERPOSE_PROBES="0", **asked)

    assert probed.stdout == told.stdout
    assert executed(probed, module) == executed(told, module) != set()
