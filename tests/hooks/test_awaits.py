"""Asynchronous code: what is awaited is timed by its steps, overlapping tasks are kept apart, nothing is changed."""

import collections
import sys

import pytest
from packaged import AWAITED, make_package

pytestmark = pytest.mark.interpreter_lock

NAMES = """
    at_once wait nest work fail count echo plainly Session.__aenter__ Session.__aexit__ Session.get
"""

BEGIN = """
    import asyncio, inspect
    from interpose.library import Intrinsic
    def begin():
        if sys.argv[1] == "on":
            record(*[Intrinsic(name, "shapes.awaited:" + name, "net") for name in NAMES])
        from shapes import awaited
        return awaited
"""


@pytest.fixture
def both(tmp_path, recorded):
    """Run a program with a package interposed and without, and give the former; what both said must be the same."""
    make_package(tmp_path, awaited=AWAITED)

    def run(source, names=NAMES):
        off, on = (recorded(f"    NAMES = {names.split()!r}" + BEGIN + source, word) for word in ("off", "on"))
        assert on.stderr == off.stderr
        assert on.stdout == off.stdout
        assert on.stdout
        assert on.returncode == off.returncode == 0
        return on

    return run


def test_an_await_is_as_long_as_from_its_first_step_to_its_end_and_has_the_cpu_time_of_its_steps(both):
    done = both("""
    import time
    awaited = begin()
    async def main():
        waiting = awaited.wait(0.05)
        await asyncio.sleep(0.05)
        begun_ns = time.monotonic_ns()
        await waiting
        with open("took_ns", "w") as file:
            file.write(str(time.monotonic_ns() - begun_ns))
        print(await awaited.work(20))
    asyncio.run(main())
    """)
    (waited,), (worked,) = done.events("wait"), done.events("work")

    assert 50e6 <= waited.wall_ns <= int((done.directory / "took_ns").read_text())
    assert waited.cpu_ns < 5e6
    assert worked.wall_ns >= 20e6
    assert 1e6 < worked.cpu_ns < worked.wall_ns
    assert worked.wall_ns - worked.inner_wall_ns < worked.wall_ns / 2 + 20e6
    assert waited.task == worked.task != 0
    assert waited.start_cpu_ns + waited.cpu_ns <= worked.start_cpu_ns


def test_overlapping_tasks_are_kept_apart(both):
    done = both("""
    awaited = begin()
    async def main():
        print(await asyncio.gather(*[awaited.wait(0.03, number) for number in range(50)]))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(awaited.nest(0.01)) for _ in range(20)]
        print([task.result() for task in tasks] == ["nested"] * 20)
    asyncio.run(main())
    """)
    waits, nests = done.events("wait"), done.events("nest")

    assert len(waits) == 50 + 40
    assert len({event.task for event in waits[:50]}) == 50
    assert all(event.parent == 0 and event.wall_ns >= 30e6 for event in waits[:50])
    by_call = {event.call: event for event in nests}
    assert {event.parent for event in waits[50:]} == set(by_call)
    assert all(event.task == by_call[event.parent].task for event in waits[50:])
    (thread,) = done.experiment.founder.threads
    assert sum(event.wall_ns for event in waits) > 50 * 30e6
    lived_ns = thread.record.end_ns - thread.record.start_ns
    assert sum(event.wall_ns - event.inner_wall_ns for event in done.events()) < lived_ns
    assert all(event.inner_wall_ns <= event.wall_ns and event.cpu_ns <= event.wall_ns for event in waits + nests)


def test_functions_and_coroutines_are_what_they_were(both):
    both("""
    import collections.abc, copy, gc, pickle, types, weakref
    awaited = begin()
    for name in ("wait", "count", "plainly", "fail"):
        function = getattr(awaited, name)
        print(inspect.iscoroutinefunction(function), asyncio.iscoroutinefunction(function))
        print(inspect.isasyncgenfunction(function), inspect.signature(function))
        print(pickle.loads(pickle.dumps(function)) is function)
    print(inspect.iscoroutinefunction(awaited.Session().get), inspect.iscoroutinefunction(awaited.Session.get))
    made = awaited.wait(0)
    print(inspect.iscoroutine(made), asyncio.iscoroutine(made), inspect.isawaitable(made))
    print(isinstance(made, types.CoroutineType), isinstance(made, collections.abc.Coroutine))
    print(isinstance(made, collections.abc.Iterator))
    print(hasattr(made, "__next__"), hasattr(made, "__iter__"), dir(made) == dir(types.CoroutineType))
    print(type(made.__await__()).__name__, dir(made.__await__()))
    print(type(made).__name__, made.__name__, made.__qualname__, repr(made).partition(" at ")[0], made.cr_code.co_name)
    print(inspect.getcoroutinestate(made), made.cr_await, made.cr_running, made.cr_frame.f_lineno, made.cr_origin)
    print(inspect.getcoroutinelocals(made), weakref.ref(made)() is made, made.__class__, made.__doc__)
    for bad in (lambda: iter(made), lambda: pickle.dumps(made), lambda: copy.copy(made), lambda: made.send(1)):
        try:
            bad()
        except Exception as error:
            print(type(error), error)
    async def main():
        task = asyncio.current_task()
        await made
        print(inspect.getcoroutinestate(made), type(made) is types.CoroutineType)
        try:
            await made
        except RuntimeError as error:
            print(error)
        other = awaited.wait(0.01, "value")
        first = asyncio.create_task(other)
        await asyncio.sleep(0)
        print(inspect.getcoroutinestate(other), other.cr_await is not None, first.get_coro() is other)
        print([frame.f_code.co_name for frame in first.get_stack()])
        try:
            await other
        except RuntimeError as error:
            print(error)
        print(await first)
    asyncio.run(main())
    items = awaited.count(1)
    print(inspect.isasyncgen(items), isinstance(items, collections.abc.AsyncGenerator), items.ag_running)
    print(type(items).__name__, dir(items) == dir(types.AsyncGeneratorType), repr(items).partition(" at ")[0])
    print(items.ag_code.co_name, items.ag_await)
    """)


def test_what_is_never_awaited_is_warned_of_as_before(both):
    done = both("""
    import gc, tracemalloc, warnings
    awaited = begin()
    def forget():
        awaited.wait(1)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        forget()
        gc.collect()
        for origin in (0, 3):
            sys.set_coroutine_origin_tracking_depth(origin)
            forget()
            coroutine = awaited.at_once()
            coroutine.close()
            cycle = [awaited.nest(1)]
            cycle.append(cycle)
            del cycle, coroutine
            gc.collect()
    sys.set_coroutine_origin_tracking_depth(0)
    print([(each.category.__name__, str(each.message), each.filename.rpartition("/")[2], each.lineno) for each in seen])
    forget()
    """)

    assert "was never awaited" in done.stderr
    assert not done.events("wait") + done.events("at_once") + done.events("nest")


def test_steps_by_hand_and_errors_are_as_before(both):
    done = both("""
    import types
    awaited = begin()
    class Now:
        def __init__(self, *values):
            self.values = values
        def __await__(self):
            got = []
            for value in self.values:
                try:
                    got.append((yield value))
                except KeyError as error:
                    got.append(repr(error))
            return got
    awaited.asyncio = types.SimpleNamespace(sleep=lambda seconds: Now(1, 2, 3))
    def steps(coroutine, *acts):
        for act in acts:
            try:
                print(act, "gave", act(coroutine))
            except BaseException as error:
                print("raised", type(error).__name__, error, getattr(error, "value", None))
    class Act:
        def __init__(self, name, *given):
            self.name, self.given = name, given
        def __call__(self, coroutine):
            return getattr(coroutine, self.name)(*self.given)
        def __repr__(self):
            return f"{self.name}{self.given}"
    send, throw, close = (lambda value=None: Act("send", value)), (lambda *given: Act("throw", *given)), Act("close")
    steps(awaited.wait(0, "v"), send(), send(5), throw(KeyError("k")), send(), send())
    steps(awaited.wait(0), send(1), send(), throw(ValueError, "text"), send())
    steps(awaited.wait(0), close, send())
    steps(awaited.wait(0), send(), close, close, send())
    steps(awaited.wait(0), throw(ValueError("at once")), send())
    steps(awaited.fail("text"), send(), send(), send(), send(), send())
    steps(awaited.wait(0).__await__(), Act("__next__"), send(2), close)
    kept = awaited.wait(0, "kept")
    step = kept.send
    print(step(None), step(None), step(None))
    try:
        step(None)
    except StopIteration as error:
        print(error.value)
    try:
        step(None)
    except RuntimeError as error:
        print(error)
    """)
    founder = done.experiment.founder
    errors = [founder.string(event.error) for event in done.events()]

    assert sorted(errors) == ["", "", "", "", "ValueError", "ValueError", "ValueError"]


def test_cancellation_timeouts_and_errors_arrive_as_before(both):
    done = both("""
    awaited = begin()
    async def main():
        for waiting in (asyncio.wait_for(awaited.wait(5), 0.01), awaited.fail("x")):
            try:
                await waiting
            except (TimeoutError, ValueError) as error:
                print(type(error).__name__, error)
        task = asyncio.create_task(awaited.nest(5))
        await asyncio.sleep(0.01)
        task.cancel("enough")
        try:
            await task
        except asyncio.CancelledError as error:
            print(error, task.cancelled())
        try:
            async with asyncio.timeout(0.01):
                await awaited.wait(5)
        except TimeoutError:
            print("timeout")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(awaited.fail("in a group"))
                group.create_task(awaited.wait(5))
        except* ValueError as group:
            print(group.exceptions)
        print(await asyncio.gather(awaited.fail("g"), awaited.at_once(3), return_exceptions=True))
        shielded = asyncio.ensure_future(awaited.wait(0.02, "shielded"))
        try:
            await asyncio.wait_for(asyncio.shield(shielded), 0.001)
        except TimeoutError:
            print(await shielded)
        done, pending = await asyncio.wait([asyncio.create_task(awaited.wait(0.001))])
        print(len(done), len(pending), await awaited.plainly(0))
    asyncio.run(main())
    """)
    founder = done.experiment.founder
    errors = sorted(founder.string(event.error) for event in done.events("wait"))


    assert errors.count("CancelledError") == 4
    assert [founder.string(event.error) for event in done.events("fail")] == ["ValueError"] * 3


def test_asynchronous_generators_and_context_managers(both):
    done = both("""
    import contextlib
    awaited = begin()
    async def main():
        print([number async for number in awaited.count(4)])
        async for number in awaited.count(10):
            if number == 1:
                break
        talk = awaited.echo()
        print(await talk.asend(None), await talk.asend("a"), await talk.athrow(KeyError("k")), await talk.aclose())
        try:
            await anext(talk)
        except StopAsyncIteration:
            print("ended")
        print(await anext(awaited.count(0), "nothing"))
        async with awaited.Session() as session:
            print(await session.get("got"))
        async with contextlib.aclosing(awaited.count(3)) as numbers:
            print(await anext(numbers))
    asyncio.run(main())
    """)

    assert len(done.events("Session.get")) == len(done.events("Session.__aenter__")) == 1
    assert len(done.events("Session.__aexit__")) == 1
    counts = done.events("count")
    assert sum(event.wall_ns >= 2e6 for event in counts) == 4 + 2 + 1
    assert done.events("echo")


def test_an_outer_await_has_the_inner_ones_and_what_they_call_inside(both):
    done = both("""
    awaited = begin()
    asyncio.run(awaited.nest(0.01))
    print(1)
    """)
    (nest,), (first, second) = done.events("nest"), done.events("wait")

    assert first.parent == second.parent == nest.call
    assert nest.start_ns <= first.start_ns
    assert first.start_ns + first.wall_ns <= second.start_ns
    assert nest.wall_ns >= first.wall_ns + second.wall_ns
    assert nest.wall_ns - nest.inner_wall_ns < first.wall_ns


def test_many_awaits_in_progress_at_once(both):
    done = both("""
    awaited = begin()
    async def main():
        print(len(await asyncio.gather(*[awaited.nest(0.2) for number in range(3000)])))
    asyncio.run(main())
    """)

    assert len(done.events("nest")) == 3000
    assert len(done.events("wait")) == 6000
    assert len({event.task for event in done.events("nest")}) == 3000


def test_in_other_frameworks_and_loops(both):
    pytest.importorskip("anyio")
    done = both("""
    import anyio
    awaited = begin()
    async def main():
        with anyio.move_on_after(0.01):
            await awaited.wait(5)
        async with anyio.create_task_group() as group:
            group.start_soon(awaited.wait, 0.01)
            group.start_soon(awaited.nest, 0.01)
        print(await anyio.to_thread.run_sync(lambda: asyncio.run(awaited.wait(0.01, "in a thread"))))
    anyio.run(main)
    """)

    assert len(done.events("wait")) == 5


def test_after_the_end_and_in_a_forked_child(both):
    done = both("""
    import os, warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    awaited = begin()
    class Now:
        def __await__(self):
            yield 1
            return 2
    awaited.asyncio.sleep = lambda seconds: Now()
    suspended, forked = awaited.wait(0, "value"), awaited.wait(0, "forked")
    print(suspended.send(None), forked.send(None))
    child = os.fork()
    if child == 0:
        try:
            forked.send(None)
        except StopIteration as error:
            other = awaited.wait(0, "in the child")
            other.send(None)
            try:
                other.send(None)
            except StopIteration as stopped:
                os._exit(error.value == "forked" and stopped.value == "in the child")
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    if sys.argv[1] == "on":
        shims.end()
    try:
        suspended.send(None)
    except StopIteration as error:
        print(error.value, type(suspended).__name__)
    """)
    (child,) = done.experiment.processes[1:]

    assert len(done.events("wait")) == 0
    assert len(done.events("wait", child)) == 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there is no eager start of tasks yet")
def test_tasks_that_start_at_once(both):
    done = both("""
    awaited = begin()
    async def main():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        print(await asyncio.gather(awaited.at_once(1), awaited.wait(0.01, 2), awaited.nest(0.01)))
    asyncio.run(main())
    """)

    assert len(done.events("wait")) == 3


def test_with_wrappers_alone_awaits_are_timed_too(tmp_path, recorded):
    make_package(tmp_path, awaited=AWAITED)
    done = recorded("""
    import asyncio
    from interpose.library import Intrinsic
    from interpose.config import schema
    os.environ["INTERPOSE_BY"] = "wrapt"
    schema.BY_KEY["by"].default = "wrapt"
    record(Intrinsic("nest", "shapes.awaited:nest", "net"))
    from shapes import awaited
    print(asyncio.run(awaited.nest(0.01)))
    """)
    (nest,) = done.events("nest")

    assert (done.stdout, done.stderr) == ("nested\n", "")
    assert nest.wall_ns >= 20e6
    assert nest.task


def test_coroutines_of_functions_that_are_interposed_in_place_are_timed_by_their_steps(tmp_path, recorded):
    """By a stub for the function itself, without a wrapper of wrapt's: the standard library's, and who asks for it."""
    make_package(tmp_path, awaited=AWAITED)
    done = recorded("""
    import asyncio, inspect
    from interpose.library import Intrinsic
    names = ("wait", "work", "nest", "count", "at_once", "fail")
    record(*[Intrinsic(name, "shapes.awaited:" + name, "net", by="function") for name in names])
    from shapes import awaited
    print(type(awaited.wait).__name__, inspect.iscoroutinefunction(awaited.wait))
    async def main():
        print(await asyncio.gather(*[awaited.nest(0.02) for _ in range(5)]), await awaited.work(10) > 0)
        print([number async for number in awaited.count(3)], await awaited.at_once(7))
        try:
            await awaited.fail("broken")
        except ValueError as error:
            print(error)
    asyncio.run(main())
    print(shims.end())
    """).ended_well()
    founder = done.experiment.founder
    nests, [work] = done.events("nest"), done.events("work")

    assert done.stdout.splitlines()[1:] == [f"{['nested'] * 5} True", "[0, 1, 2] 7", "broken", "0"]
    assert len(nests) == 5
    assert len(done.events("wait")) == 10
    assert {event.parent for event in done.events("wait")} == {event.call for event in nests}
    assert all(event.wall_ns >= 40e6 and event.wall_ns - event.inner_wall_ns < 20e6 for event in nests)
    assert len({event.task for event in nests}) == 5
    assert 1e6 < work.cpu_ns < work.wall_ns
    assert sum(event.wall_ns >= 2e6 for event in done.events("count")) == 3
    assert founder.string(done.events("fail")[0].error) == "ValueError"
    assert {founder.intrinsic(event.intrinsic).by for event in done.events()} == {"function"}


def test_whatever_a_task_calls_is_of_that_task(traced):
    """Also what is not awaited, made by plain functions that its coroutines call; and nothing of others."""
    done = traced("""
        import asyncio, os, sqlite3, threading
        def look(number):
            os.stat(f"/order/{number}") if number < 0 else os.access(f"/order/{number}", 0)
        async def inner(number):
            connection = sqlite3.connect(":memory:")
            connection.execute(f"select {number} as first")
            await asyncio.sleep(0.01)
            list(map(look, [number]))
            async for _ in items():
                look(number)
            await asyncio.to_thread(look, 99)
        async def items():
            for number in range(2):
                await asyncio.sleep(0)
                yield number
        async def outer(number):
            await inner(number)
        async def main():
            await asyncio.gather(*(outer(number) for number in range(4)))
            asyncio.get_running_loop().call_soon(look, 98)
            await asyncio.sleep(0.01)
        look(97)
        asyncio.run(main())
        look(97)
    """).ended_well()
    founder = done.experiment.founder
    tasks = collections.defaultdict(list)
    for event in done.events("os.access"):
        tasks[int(founder.string(event.detail).rpartition("/")[2])].append(event.task)

    assert tasks.pop(97) == [0, 0]
    assert tasks.pop(98) == [0]
    assert tasks.pop(99) == [0] * 4
    assert [len(set(each)) for each in tasks.values()] == [1] * 4
    assert len({each[0] for each in tasks.values()} | {0}) == 5
    first = [event.task for event in done.events("sqlite3.Connection.execute")]
    assert sorted(first) == sorted(each[0] for each in tasks.values())
    assert {event.task for event in done.events("select.epoll.poll")} == {0}


def test_a_coroutine_that_goes_on_in_another_thread(both):
    done = both("""
    import threading
    awaited = begin()
    class Now:
        def __await__(self):
            yield
    awaited.asyncio.sleep = lambda seconds: Now()
    moved = awaited.wait(0, "moved")
    begins = threading.Thread(target=moved.send, args=(None,))
    begins.start()
    begins.join()
    try:
        moved.send(None)
    except StopIteration as error:
        print(error.value)
    """)
    founder = done.experiment.founder
    (event,) = done.events("wait")

    assert [thread.number for thread in founder.threads if thread.record.main] == [event.thread]
    assert event.parent == 0
    assert event.start_cpu_ns > 5e6  # the main thread had begun Python; the other one had done nothing
    assert founder.damages.count == 0
