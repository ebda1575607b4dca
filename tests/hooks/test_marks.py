"""Transactions that a program marks itself: interpose.transaction, where something is recorded and where nothing is."""

import sysconfig
from collections import Counter

import pytest

from interpose.cli.main import main
from interpose.transactions import transaction as nothing

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

MARKS = """
    import asyncio, contextlib, inspect, os, pickle, sys, threading, time, traceback
    import interpose
    from interpose import transaction
    def missing(path):
        try:
            os.stat(path)
        except FileNotFoundError:
            pass
"""


def tree(done, *names):
    """The chain of each event of the intrinsics: its own detail, then those of the calls that it was made inside of."""
    founder = done.experiment.founder
    events = done.events()
    by_number = {(event.thread, event.call): event for event in events}
    found = []
    for event in events:
        if founder.intrinsic(event.intrinsic).name in names:
            chain = [event]
            while outer := by_number.get((event.thread, chain[-1].parent)):
                chain.append(outer)
            found.append(tuple(founder.string(each.detail) for each in chain))
    return sorted(found)


def marked(done, name):
    founder = done.experiment.founder
    return [each for each in done.events("interpose.transaction") if founder.string(each.detail) == name]


def test_what_is_done_inside_is_inside_and_what_is_done_outside_is_not(traced):
    done = traced(MARKS + """
    @transaction("plain")
    def plain(number):
        missing(f"/plain/{number}")
    with transaction("outer"):
        missing("/outer")
        with transaction("inner"):
            time.sleep(0.01)
            missing("/inner")
        plain(1)
    plain(2)
    missing("/outside")
    """).ended_well()
    (outer,), (inner,) = marked(done, "outer"), marked(done, "inner")
    intrinsic = done.experiment.founder.intrinsic(outer.intrinsic)

    wanted = ("/inner", "/out", "/plain")
    assert [chain for chain in tree(done, "os.stat") if chain[0].startswith(wanted)] == [
        ("/inner", "inner", "outer"),
        ("/outer", "outer"),
        ("/outside",),
        ("/plain/1", "plain", "outer"),
        ("/plain/2", "plain"),
    ]
    assert (intrinsic.kind, intrinsic.transaction) == ("logic", "is")
    assert outer.wall_ns >= outer.inner_wall_ns >= inner.wall_ns >= inner.inner_wall_ns >= 10e6
    assert [thread.adds_up for thread in done.experiment.founder.threads] == [True]


SAME = MARKS + """
    @transaction("plain")
    def plain(first, /, second=2, *, third=3):
        "What it says."
        return first + second + third
    @transaction("awaited")
    async def awaited(number):
        await asyncio.sleep(0.001)
        return number
    @transaction("generator")
    def generator():
        yield 1
    @transaction("items")
    async def items():
        yield 2
    class Shop:
        @transaction("method")
        def method(self):
            return type(self).__name__
        @staticmethod
        @transaction("static, inside")
        def inside():
            return 1
        @transaction("static, outside")
        @staticmethod
        def outside():
            return 2
        @classmethod
        @transaction("class")
        def of_class(cls):
            return cls.__name__
        @property
        @transaction("property")
        def price(self):
            return 3
    async def all_items():
        return [item async for item in items()]
    print(inspect.signature(plain), plain.__doc__, plain.__qualname__, plain.__module__, plain(1, third=4))
    print(*map(inspect.iscoroutinefunction, (plain, awaited, generator, items, Shop.method)))
    print(inspect.isgeneratorfunction(generator), inspect.isasyncgenfunction(items), inspect.isfunction(plain))
    print(pickle.loads(pickle.dumps(plain)) is plain, list(generator()), asyncio.run(all_items()))
    print(asyncio.run(awaited(5)), Shop().method(), Shop.inside(), Shop().inside(), Shop.outside(), Shop().outside())
    print(Shop.of_class(), Shop().of_class(), Shop().price, transaction("x").name, transaction("x")(len) is len)
    try:
        with transaction("fails"):
            raise KeyError("no such order")
    except KeyError as error:
        print(repr(error), error.__context__, [line.lineno for line in traceback.extract_tb(error.__traceback__)])
    for wrong in (5, None, b"x"):
        try:
            transaction(wrong)
        except TypeError as error:
            print(error)
    never_entered = transaction("never entered")
    never_entered.__exit__(None, None, None)
    never_entered.__exit__(ValueError, ValueError("x"), None)
    never_entered.__exit__(1, 2, 3)
    again = transaction("again")
    with again, again, again:
        print("thrice")
    left = transaction("left open")
    left.__enter__()
    other = threading.Thread(target=left.__exit__, args=(None, None, None))
    other.start()
    other.join()
    def suspended():
        with transaction("suspended"):
            yield 1
            yield 2
    first = suspended()
    second = suspended()
    print(next(first), next(second), next(first))
    del first, second
    try:
        with transaction("a strange name \\ud800\\n" + "x" * 20000):
            pass
    except UnicodeError:
        print("raised")
    print("done")
"""


@pytest.mark.interpreter_lock
def test_a_program_is_the_same_with_and_without_a_recording(traced):
    on, off = traced(SAME), traced(SAME, INTERPOSE="0")

    assert (on.returncode, on.stdout, on.stderr) == (off.returncode, off.stdout, off.stderr)
    assert off.stdout.splitlines()[-1] == "done", off.stderr
    founder = on.experiment.founder
    counts = {}
    for event in on.events("interpose.transaction"):
        name = founder.string(event.detail)[:15]
        counts[name] = counts.get(name, 0) + 1
    assert counts.pop("a strange name ") == 1
    assert counts == {
        "plain": 1, "awaited": 1, "method": 1, "static, inside": 2, "static, outside": 2, "class": 2, "property": 1,
        "fails": 1, "again": 3, "suspended": 2,
    }  # fmt: skip
    (failed,) = marked(on, "fails")
    assert founder.string(failed.error) == "KeyError"
    assert founder.damages.count == 0


OVERLAPPING = MARKS + """
    @transaction("served")
    async def served(number):
        missing(f"/before/{number}")
        with transaction(f"step {number}"):
            for turn in range(5):
                missing(f"/in/{number}")
                await asyncio.sleep(0.002 * number)
        missing(f"/after/{number}")
        return number
    async def bare(number):
        with transaction("bare"):
            for turn in range(5):
                missing(f"/bare/{number}")
                await asyncio.sleep(0.001 * number)
                work = time.thread_time() + 0.002
                while time.thread_time() < work:
                    pass
        missing(f"/outside/{number}")
    async def main():
        print(await asyncio.gather(*[served(number) for number in range(1, 6)]))
        await asyncio.gather(*[bare(number) for number in range(1, 6)])
    asyncio.run(main())
"""


@pytest.mark.interpreter_lock
def test_tasks_that_overlap_are_kept_apart(traced):
    done = traced(OVERLAPPING).ended_well()
    founder = done.experiment.founder
    chains = [chain for chain in tree(done, "os.stat") if chain[0][:3] in ("/be", "/in", "/af", "/ba", "/ou")]
    numbers = range(1, 6)
    expected = [(f"/in/{number}", f"step {number}", "served") for number in numbers for _ in range(5)]
    expected += [(f"/bare/{number}", "bare") for number in numbers for _ in range(5)]
    expected += [(f"/{when}/{number}", "served") for number in numbers for when in ("before", "after")]
    expected += [(f"/outside/{number}",) for number in numbers]

    assert chains == sorted(expected)
    of_calls = {}
    for event in done.events("os.stat"):
        of_calls.setdefault(event.parent, set()).add(founder.string(event.detail))
    assert all(len(of_calls[each.call]) == 1 for each in marked(done, "bare"))  # and not another task's of that name
    assert all(each.task and each.wall_ns >= each.inner_wall_ns for each in done.events("interpose.transaction"))
    assert len({each.task for each in marked(done, "served")}) == 5
    for number, each in enumerate(sorted(marked(done, "bare"), key=lambda each: each.wall_ns), 1):
        assert each.wall_ns >= 5e6 * number
        assert 8e6 < each.cpu_ns < 20e6  # five times 2 ms, and a share of what the loop does
    assert all(thread.adds_up for thread in founder.threads)


def test_in_context_managers_of_ones_own_it_lasts_as_long_as_these(traced):
    done = traced(MARKS + """
    @contextlib.contextmanager
    def plain():
        with transaction("plain"):
            yield
    @contextlib.asynccontextmanager
    async def awaited():
        with transaction("awaited"):
            yield
    with plain():
        missing("/plain")
    async def one(number):
        with plain():
            await asyncio.sleep(0.001 * number)
            missing("/task")
        async with awaited():
            await asyncio.sleep(0.001 * number)
            missing("/asynchronous")
        missing("/outside")
    async def main():
        await asyncio.gather(one(1), one(2), one(3))
    asyncio.run(main())
    with contextlib.ExitStack() as stack:
        stack.enter_context(transaction("stacked"))
        missing("/stacked")
    """)
    chains = [chain for chain in tree(done, "os.stat") if chain[0].startswith(("/pl", "/ta", "/as", "/out", "/sta"))]

    assert chains == [
        *[("/asynchronous", "awaited")] * 3,
        *[("/outside",)] * 3,
        ("/plain", "plain"),
        ("/stacked", "stacked"),
        *[("/task", "plain")] * 3,
    ]


def test_one_object_serves_several_threads_and_children(traced):
    done = traced(MARKS + """
    order = transaction("order")
    def work(number):
        for _ in range(100):
            with order:
                missing(f"/thread/{number}")
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    with order:
        if os.fork() == 0:
            missing("/child")
            order.__exit__(None, None, None)
            with order:
                missing("/child/again")
            os._exit(0)
        os.wait()
    """)
    founder, child = done.experiment.processes

    assert [chain[1:] for chain in tree(done, "os.stat") if chain[0].startswith("/thread")] == [("order",)] * 400
    assert len(marked(done, "order")) == 401
    (inside,) = done.events("interpose.transaction", child)
    parents = {child.string(each.detail): each.parent for each in done.events("os.stat", child)}
    assert (parents["/child"], parents["/child/again"]) == (0, inside.call)
    assert founder.damages.count == child.damages.count == 0


@pytest.mark.parametrize(
    ("variables", "timed", "counted"),
    [
        ({"INTERPOSE_KINDS": "db"}, 0, 0),
        ({"INTERPOSE_LEVELS": "interpose.transaction=count"}, 0, 4),
        ({"INTERPOSE_BY": "wrapt"}, 4, 0),
    ],
)
def test_it_is_timed_counted_or_left_alone_as_asked_for(traced, variables, timed, counted):
    done = traced(
        MARKS + """
    @transaction("plain")
    def plain():
        pass
    for _ in range(2):
        plain()
        with transaction("inside"):
            pass
    print("done")
    """,
        **variables,
    )
    process = done.experiment.founder
    counts = {process.intrinsic(number).name: count for number, count in process.counts.items()}

    assert (done.stdout, done.stderr) == ("done\n", "")
    assert len(done.events("interpose.transaction")) == timed
    assert counts.get("interpose.transaction", 0) == counted


def test_after_the_end_functions_are_what_they_were(recorded):
    done = recorded("""
    from interpose.instrumentation.system_library import marks
    record(*marks.INTRINSICS)
    import interpose
    def plain():
        pass
    kind, made = type(plain), interpose.transaction("plain")
    made(plain)
    plain()
    with made:
        print(shims.end())
    plain()
    with made:
        pass
    print(type(plain) is kind)
    """)

    assert (done.stdout, done.stderr) == ("0\nTrue\n", "")
    assert len(done.events("interpose.transaction")) == 1


MANY = MARKS + """
    functions = []
    for number in range(6000):
        @transaction(f"number {number}")
        def one(number=number):
            return number
        functions.append(one)
    print(sum(each() for each in functions))
    del functions[::2]
    for number in range(2000):
        @transaction(f"later {number}")
        def one(number=number):
            return number
        functions.append(one)
    print(sum(each() for each in functions))
"""


@pytest.mark.skipif(FREE_THREADED, reason="stubs are not reused, as other threads may be on their way through them")
def test_all_of_many_functions_are_marked(traced):
    done = traced(MANY)

    founder = done.experiment.founder
    found = Counter(founder.string(each.detail) for each in done.events("interpose.transaction"))
    assert (done.stdout, done.stderr) == (f"{sum(range(6000))}\n{sum(range(1, 6000, 2)) + sum(range(2000))}\n", "")
    assert found == {
        **{f"number {number}": 1 + number % 2 for number in range(6000)},
        **{f"later {number}": 1 for number in range(2000)},
    }


@pytest.mark.skipif(FREE_THREADED, reason="stubs are not reused, as other threads may be on their way through them")
def test_after_the_end_many_functions_are_what_they_were(recorded):
    done = recorded("""
    from interpose.instrumentation.system_library import marks
    record(*marks.INTRINSICS)
    import interpose
    functions = []
    for number in range(3000):
        @interpose.transaction("one")
        def one(number=number):
            return number
        functions.append(one)
    print(sum(each() for each in functions), shims.end(), sum(each() for each in functions))
    """)

    assert (done.stdout, done.stderr) == (f"{sum(range(3000))} 0 {sum(range(3000))}\n", "")
    assert len(done.events("interpose.transaction")) == 3000


@pytest.mark.skipif(not FREE_THREADED, reason="there is room for all")
def test_functions_without_room_are_left_alone_and_that_is_said(traced, capsys):
    done = traced(MANY)

    assert done.stdout == f"{sum(range(6000))}\n{sum(range(1, 6000, 2)) + sum(range(2000))}\n"
    names = {done.experiment.founder.string(each.detail) for each in done.events("interpose.transaction")}
    unmarked = 6000 + 2000 - len(names)  # each function is called
    path = str(done.directory / done.experiment.name)
    assert 0 < len(names) < 8000 and list(done.experiment.founder.log.unmarked.values()) == [unmarked]
    assert main(["report", path]) == 0
    assert f" not marked  {unmarked:,} functions with @transaction: " in capsys.readouterr().out
    assert main(["transactions", path]) == 0
    assert f"not marked: {unmarked:,} functions with @transaction" in capsys.readouterr().err


@pytest.mark.interpreter_lock
def test_functions_that_are_made_anew_all_the_time_are_all_marked(traced):
    done = traced(MARKS + """
    for number in range(2000):
        @transaction("anew")
        def one():
            return number
        one()
    """)

    assert len(marked(done, "anew")) == 2000


@pytest.mark.alone
@pytest.mark.skipif(FREE_THREADED, reason="there are never that many")
def test_functions_that_go_cost_the_same_however_many_stay(traced):
    done = traced(MARKS + """
    def made(number):
        @transaction("made")
        def one():
            return number
        return one
    def cpu_ns_of_many():
        begun_ns = time.process_time_ns()
        for number in range(40_000):
            made(number)
        return time.process_time_ns() - begun_ns
    kept = [made(number) for number in range(300)]
    print(cpu_ns_of_many())
    kept += [made(number) for number in range(14_700)]
    print(cpu_ns_of_many())
    """)

    with_few_ns, with_many_ns = map(int, done.stdout.split())
    assert with_many_ns < 6 * with_few_ns  # fifty times as many stay: a search among them would take that long


def test_the_package_imports_nothing_for_it(traced):
    done = traced(
        """
    import sys
    import os
    before = set(sys.modules)
    import interpose
    print(sorted(set(sys.modules) - before))
    interpose.transaction
    print(sorted(set(sys.modules) - before))
    try:
        interpose.nothing
    except AttributeError as error:
        print(error)
    """,
        INTERPOSE="0",
    )

    assert done.stdout.splitlines() == [
        "[]" if "interpose'" not in done.stdout.splitlines()[0] else "['interpose']",
        done.stdout.splitlines()[1],
        "module 'interpose' has no attribute 'nothing'",
    ]
    assert "interpose.transactions" in done.stdout.splitlines()[1]
    assert "interpose.timing" not in done.stdout


def test_without_a_recording_it_does_nothing():
    def function():
        pass

    made = nothing("order")

    with made as entered:
        assert entered is made
    assert made(function) is function
    with pytest.raises(TypeError, match="the name of a transaction must be a str, not int"):
        nothing(5)
