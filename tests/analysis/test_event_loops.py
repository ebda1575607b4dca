"""Event loops: what blocked them, and what was awaited one after the other."""

import json

import pytest
from shops import MS, SHOP, Shop

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.analysis.time.awaited import awaited_at_most_ns
from interpose.analysis.time.turns import LONG_NS
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.sentences import Sentences
from tests.build import SECOND, START_NS, event

HANDLER, OTHER = 6, 7
BY_NUMBER = "SELECT * FROM orders WHERE number = $1"
BLOCKING = """
import asyncio, json, sys, time
took = {"time.sleep": [], "": []}
def timed(name, work):
    begun_ns, used_ns = time.monotonic_ns(), time.thread_time_ns()
    work()
    took[name].append([time.monotonic_ns() - begun_ns, time.thread_time_ns() - used_ns])
def compute():
    sum(number * number % 7 for number in range(1_500_000))
async def other():
    await asyncio.sleep(60)
async def handle():
    for _ in range(3):
        await asyncio.sleep(0.01)
        timed("time.sleep", lambda: time.sleep(0.06))
        timed("", compute)
        await asyncio.sleep(0.01)
async def main():
    others = [asyncio.create_task(other()) for _ in range(4)]
    await handle()
    [each.cancel() for each in others]
asyncio.run(main())
print(json.dumps(took))
"""
RULES = ("blocked event loop", "awaits one by one", "slow awaits", "waits of event loop", "slow calls")


class Loop(Shop):
    """A thread on which an event loop runs: what it does follows one another, on the clock `now`; CPU time beside."""

    def __init__(self, directory, **log):
        super().__init__(directory, **log)
        self.used_ns = 0

    def wait(self, each_ns=MS, kind="idle"):
        """The loop waits for its selector."""
        if "loop" not in self.stacks_of:
            outer = self.stack(self.site("app.py", 99, "<module>"))
            once = self.site("asyncio/base_events.py", 5, "BaseEventLoop._run_once", own=0)
            self.stacks_of["loop"] = self.stack(once, outer)
        self.run("select.epoll.poll" if kind == "idle" else "select.select", kind, each_ns, line="loop")

    def run(self, name, kind, each_ns, *, cpu_ns=0, task=0, **more):
        """A call that is not suspended."""
        self.call(name, kind, each_ns=each_ns, task=task, start_cpu_ns=self.used_ns, cpu_ns=cpu_ns, **more)
        self.used_ns += cpu_ns

    def compute(self, wall_ns, cpu_ns=None):
        """Code runs between the calls."""
        self.now[1] = self.now.get(1, 0) + wall_ns
        self.used_ns += wall_ns if cpu_ns is None else cpu_ns

    def awaiting(self, since_ns, *, task=OTHER, name="asyncio.sleep", kind="sleep", detail="", line=50):
        """An await that began at `since_ns`, was suspended, and ends now."""
        wall_ns = self.now[1] - since_ns
        values = {"intrinsic": self.number_of(name, kind), "stack": self.stack_of(line), "task": task, "thread": 1}
        values |= {"detail": self.string(detail) if detail else 0, "call": len(self.rows) + 1}
        self.rows.append(event(since_ns, wall_ns, inner_wall_ns=wall_ns, **values))

    def told(self):
        found = [each for each in found_in(self.survey()) if each.rule in RULES]
        return [(each.rule, each.units, each.bound_ns // MS, each.waiting) for each in found]


@pytest.fixture
def loop(tmp_path):
    made = Loop(tmp_path / "t.1.er")
    made.wait()
    return made


def a_turn_with(loop, act):
    """A turn of the loop in which a task resumes, acts, and awaits again; another awaits all the time."""
    act()
    loop.wait()
    loop.awaiting(0)


def test_a_call_of_a_task_blocks_the_loop_of_those_that_wait(loop):
    a_turn_with(loop, lambda: loop.run("time.sleep", "sleep", 200 * MS, task=HANDLER))
    (finding,) = [each for each in found_in(loop.survey()) if each.rule in RULES]

    assert (finding.rule, finding.intrinsic, finding.site.line) == ("blocked event loop", "time.sleep", 88)
    assert (finding.bound_ns, finding.longest_ns, finding.units, finding.waiting) == (200 * MS, 200 * MS, 1, 1)


def test_where_no_other_task_waits_nothing_is_blocked(loop):
    loop.run("time.sleep", "sleep", 200 * MS, task=HANDLER)
    loop.wait()
    loop.awaiting(0, task=HANDLER)

    assert [rule for rule, *_ in loop.told()] == ["slow calls"]


def test_short_calls_are_what_loops_are_for(loop):
    for _ in range(5):
        loop.run("time.sleep", "sleep", 40 * MS, task=HANDLER)
        loop.wait()
    loop.awaiting(0)

    assert [rule for rule, *_ in loop.told()] == ["slow calls"]


def test_what_is_called_by_no_task_is_not_told_as_one_that_blocks(loop):
    a_turn_with(loop, lambda: loop.run("time.sleep", "sleep", 200 * MS))

    assert [rule for rule, *_ in loop.told()] == ["slow calls"]


def test_many_short_calls_in_one_turn_block_it_together(loop):
    a_turn_with(loop, lambda: [loop.run("os.stat", "file", 5 * MS, task=HANDLER) for _ in range(20)])

    assert loop.told() == [("blocked event loop", 1, 100, 1)]


def test_code_between_two_calls_of_a_task_blocks_the_loop(loop):
    def act():
        loop.run("os.stat", "file", MS, task=HANDLER, line=70)
        loop.compute(300 * MS)
        loop.run("os.stat", "file", MS, task=HANDLER, line=72)

    a_turn_with(loop, act)
    (finding,) = [each for each in found_in(loop.survey()) if each.rule in RULES]

    assert (finding.rule, finding.intrinsic, finding.site.line) == ("blocked event loop", "", 70)
    assert (finding.bound_ns, finding.about, finding.waiting) == (300 * MS, f"task {HANDLER}", 1)


def served(loop, detail, around):
    """A turn in which a task computes for 200 ms while it serves a request, between or before what `around` calls."""
    since_ns = loop.now[1]
    around()
    loop.awaiting(since_ns, task=HANDLER, name="wsgi.request", kind="logic", detail=detail)
    loop.wait()


def test_code_of_a_request_that_blocks_is_told_once_and_by_its_name(loop):
    def before():
        loop.compute(200 * MS)
        loop.run("os.write", "file", MS, task=HANDLER, line="loop")

    def after():
        loop.run("os.write", "file", MS, task=HANDLER, line="loop")
        loop.compute(200 * MS)
        loop.run("os.write", "file", MS, task=HANDLER, line="loop")

    served(loop, "GET /orders/1", before)
    served(loop, "GET /orders/2", after)
    loop.awaiting(0)
    (finding,) = [each for each in found_in(loop.survey()) if each.rule in RULES]

    assert (finding.about, finding.intrinsic, finding.site) == ("GET /orders/*", "", None)
    assert (finding.units, finding.bound_ns, finding.waiting) == (2, 400 * MS, 1)
    assert "Code of GET /orders/* blocked the event loop 2 times" in Sentences([finding], "", SECOND).of(finding)


def test_code_of_a_request_after_a_call_at_an_own_line_is_told_with_that_line(loop):
    def after():
        loop.run("os.stat", "file", MS, task=HANDLER, line=70)
        loop.compute(200 * MS)
        loop.run("os.stat", "file", MS, task=HANDLER, line=72)

    served(loop, "GET /orders/1", after)
    loop.awaiting(0)
    (finding,) = [each for each in found_in(loop.survey()) if each.rule in RULES]

    assert (finding.about, finding.site.line) == ("GET /orders/*", 70)


@pytest.mark.parametrize("is_sampled_twice", [False, True])
def test_code_that_was_sampled_is_told_with_its_own_line_in_the_task(loop, is_sampled_twice):
    loops = (("/home/u/shop/app.py", 99, "<module>"), ("/usr/lib/asyncio/runners.py", 5, "Runner.run"))
    stack = loop.sampled_stack(*loops, (SHOP, 30, "total"), ("/usr/lib/json/encoder.py", 7, "encode"))
    outside = loop.sampled_stack(*loops)

    def compute():
        begun_ns = loop.now[1]
        loop.compute(200 * MS)
        loop.run("os.write", "file", MS, task=HANDLER, line="loop")
        return begun_ns

    def sampled():
        begun_ns = compute()
        for tenth in range(1, 10):
            at_ns, used_ns = START_NS + begun_ns + tenth * 20 * MS, loop.used_ns - (10 - tenth) * 20 * MS
            loop.thread_sample(at_ns, cpu_ns=used_ns, stack=outside if tenth == 1 else stack)

    served(loop, "GET /orders/1", sampled)
    served(loop, "GET /orders/2", sampled if is_sampled_twice else compute)
    loop.awaiting(0)
    (finding,) = [each for each in found_in(loop.survey()) if each.rule in RULES]

    assert (finding.about, finding.site.file, finding.site.line) == ("GET /orders/*", SHOP, 30)
    assert (finding.units, finding.bound_ns) == (2, 400 * MS)
    assert " at orders.py:30 total blocked " in Sentences([finding], "", SECOND).of(finding)


def test_code_that_did_not_have_the_processor_is_not_said_to_have_computed(loop):
    def act():
        loop.run("os.stat", "file", MS, task=HANDLER)
        loop.compute(300 * MS, cpu_ns=60 * MS)
        loop.run("os.stat", "file", MS, task=HANDLER)

    a_turn_with(loop, act)

    assert loop.told() == []


def test_code_between_calls_of_two_tasks_is_nobodys(loop):
    def act():
        loop.run("os.stat", "file", MS, task=HANDLER)
        loop.compute(300 * MS)
        loop.run("os.stat", "file", MS, task=8)

    a_turn_with(loop, act)

    assert loop.told() == []


def asked(loop, times, task_of):
    for number in range(times):
        since_ns = loop.now[1]
        loop.wait(10 * MS, kind="net")
        loop.awaiting(since_ns, task=task_of(number), name="asyncpg.fetch", kind="db", detail=BY_NUMBER)


def test_awaits_of_one_task_one_after_the_other_could_be_together(loop):
    asked(loop, 40, lambda number: HANDLER)

    assert loop.told() == [("awaits one by one", 1, 390, 0)]


def test_awaits_of_other_tasks_at_the_same_time_do_not_count_as_one_by_one(loop):
    asked(loop, 25, lambda number: HANDLER)
    since_ns = loop.now[1]
    loop.wait(200 * MS, kind="net")
    for task in range(10, 15):
        loop.awaiting(since_ns, task=task, name="asyncpg.fetch", kind="db", detail=BY_NUMBER)
    found = [each for each in found_in(loop.survey()) if each.rule == "awaits one by one"]

    assert [(each.calls, each.units, each.wall_ns, each.each_ns) for each in found] == [(25, 1, 250 * MS, 10 * MS)]


def test_a_few_in_each_of_many_tasks_are_slow_awaits(loop):
    asked(loop, 40, lambda number: 10 + number // 2)

    assert loop.told() == [("slow awaits", 0, 400, 0)]


def test_awaits_that_overlap_are_counted_once(loop):
    for _ in range(3):
        since_ns = loop.now[1]
        loop.wait(100 * MS, kind="net")
        for task in range(10, 40):
            loop.awaiting(since_ns, task=task, name="asyncpg.fetch", kind="db", detail=BY_NUMBER)

    assert loop.told() == [("slow awaits", 0, 300, 0)]


@pytest.mark.parametrize(
    ("tasks", "detail", "advice"),
    [
        (1, BY_NUMBER, "Look at the service that answers, or request"),
        (2, BY_NUMBER, "Look at the service that answers, at a limit of connections, or request"),
        (1, "UPDATE orders SET paid = ?", "Look at what the database does during these calls, or for a lock"),
    ],
)
def test_slow_awaits_may_wait_for_a_connection_if_they_overlap_and_for_a_lock_if_they_write(
    loop, tasks, detail, advice
):
    for _ in range(3):
        since_ns = loop.now[1]
        loop.wait(100 * MS, kind="net")
        for task in range(10, 10 + tasks):
            loop.awaiting(since_ns, task=task, name="asyncpg.fetch", kind="db", detail=detail)
    (finding,) = [each for each in found_in(loop.survey()) if each.rule in RULES]

    assert finding.rule == "slow awaits"
    assert advice_for(finding).startswith(advice)


def test_awaits_that_return_as_another_task_ends_its_transaction_waited_for_it(loop):
    def awaited(since_ns, task, detail, line):
        named = {"name": "asyncpg.Connection.execute", "kind": "db", "detail": detail}
        loop.awaiting(since_ns, task=task, line=line, **named)

    def passed(each_ns):
        since_ns = loop.now[1]
        loop.wait(each_ns, kind="net")
        return since_ns

    for _ in range(3):
        awaited(passed(MS), HANDLER, "UPDATE orders SET paid = ?", 60)
        since_ns = passed(200 * MS)
        awaited(passed(MS), HANDLER, "COMMIT;", 61)
        awaited(since_ns, OTHER, "UPDATE orders SET paid = ?", 50)
        awaited(passed(MS), OTHER, "COMMIT;", 51)
    (finding,) = [each for each in found_in(loop.survey()) if each.rule == "slow awaits"]
    words = Sentences([finding], "/home/u/shop", SECOND).of(finding)

    assert (finding.first.site.line, finding.held_ns) == (50, 3 * 201 * MS)
    assert words.endswith("a transaction was in progress that took locks at orders.py:60 line_60 (603 ms).")
    assert advice_for(finding).startswith("That transaction probably had the lock")


def test_a_task_that_waited_longer_for_its_work_did_not_ask_one_by_one(loop):
    for _ in range(40):
        loop.wait(10 * MS)
        asked(loop, 1, lambda number: HANDLER)
        loop.wait(10 * MS)

    assert [rule for rule, *_ in loop.told()] == ["slow awaits"]


def test_what_the_loop_waited_for_in_no_recorded_await_is_told_as_that(loop):
    loop.wait(300 * MS, kind="net")
    loop.awaiting(0)

    assert loop.told() == [("waits of event loop", 0, 300, 0)]


@pytest.mark.parametrize(
    ("library", "rule", "advice"),
    [
        ("loop.cpython-312-x86_64-linux-gnu.so", "waits of event loop", "Record without native calls to see"),
        ("other.so", "slow calls", "See what was called before and after: interpose events."),
    ],
)
def test_native_waits_for_whatever_comes_first_are_no_slow_requests(library, rule, advice, tmp_path):
    loop = Loop(tmp_path / "t.1.er")
    loop.intrinsic("uvloop.Loop.poll", "net", "idle", "process")
    outer = loop.stack(loop.site("app.py", 99, "<module>"))
    loop.stacks_of["native"] = loop.stack(loop.site(library, 0, library, own=0), outer)
    for _ in range(3):
        loop.run("libc.epoll_pwait", "net", 100 * MS, line="native")
        loop.compute(MS)
    survey = loop.survey()
    (finding,) = [each for each in found_in(survey) if each.rule in RULES]

    assert (finding.rule, finding.bound_ns) == (rule, 300 * MS)
    assert advice_for(finding).startswith(advice)
    is_slow = "calls of libc.epoll_pwait from app.py" in Sentences([finding], "/", survey.matters_ns).of(finding)
    assert is_slow == (rule == "slow calls")


def napping(loop, *, intrinsic="wsgi.request", line=70):
    """A task awaits a timer for 300 ms, within a call of that intrinsic."""
    since_ns = loop.now[1]
    loop.wait(100 * MS, kind="net")
    loop.wait(200 * MS, kind="net")
    loop.awaiting(since_ns, task=HANDLER, line=line)
    loop.rows[-1]["parent"] = 5000
    loop.awaiting(since_ns, task=HANDLER, name=intrinsic, kind="logic")
    loop.rows[-1]["call"] = 5000


def test_what_the_loop_waited_for_while_a_request_awaited_a_timer_is_explained(loop):
    napping(loop)
    loop.awaiting(0)
    (finding,) = [each for each in found_in(loop.survey()) if each.rule in RULES]

    assert (finding.rule, finding.first.intrinsic, finding.first.site.line) == ("slow awaits", "asyncio.sleep", 70)
    assert (finding.bound_ns, finding.each_ns) == (300 * MS, 300 * MS)


def test_a_timer_of_a_task_that_serves_nobody_explains_no_wait(loop):
    napping(loop, intrinsic="app.turn")

    assert loop.told() == [("waits of event loop", 0, 300, 0)]


def test_of_a_timer_the_time_counts_in_which_the_loop_waited(loop):
    since_ns = loop.now[1]
    loop.run("os.stat", "file", 300 * MS)
    loop.awaiting(since_ns, task=HANDLER)
    loop.rows[-1]["parent"] = 5000
    loop.awaiting(since_ns, task=HANDLER, name="wsgi.request", kind="logic")
    loop.rows[-1]["call"] = 5000

    assert [rule for rule, *_ in loop.told()] == ["slow calls"]


ADDRESS = "GET http://127.0.0.1:8000/slow"


def asked_through_a_lock(loop, times, *, each_ns=300 * MS, running_ns=0):
    """Requests whose library awaits an event inside of them until the answer is there."""
    for number in range(times):
        since_ns = loop.now[1]
        loop.wait(each_ns, kind="net")
        loop.awaiting(since_ns, task=HANDLER, name="asyncio.Event.wait", kind="sync")
        loop.rows[-1]["parent"] = 5000 + number
        loop.awaiting(since_ns, task=HANDLER, name="httpx.AsyncClient.send", kind="net", detail=ADDRESS)
        loop.rows[-1] |= {"call": 5000 + number, "inner_wall_ns": each_ns - running_ns}


def test_what_is_awaited_inside_of_a_request_is_awaited_for_it(loop):
    asked_through_a_lock(loop, 30)
    loop.awaiting(0)
    (finding,) = [each for each in found_in(loop.survey()) if each.rule in RULES]

    assert (finding.rule, finding.first.intrinsic) == ("awaits one by one", "httpx.AsyncClient.send")
    assert (finding.calls, finding.each_ns, finding.wall_ns) == (30, 300 * MS, 9000 * MS)


def test_without_events_what_was_awaited_inside_of_requests_counts_once(loop):
    asked_through_a_lock(loop, 30)
    ((process, records),) = loop.survey().per_process()

    assert awaited_at_most_ns(process, records) == 9000 * MS


def test_a_small_finding_hides_no_larger_one_about_the_same_calls(loop):
    asked_through_a_lock(loop, 12, running_ns=10 * MS)
    loop.awaiting(0)
    found = {each.rule: each for each in found_in(loop.survey())}

    assert (found["slow awaits"].calls, found["slow awaits"].bound_ns) == (12, 3600 * MS)
    assert found["repeated work"].bound_ns == 110 * MS


NAPS = """
import asyncio, socket
from interpose import transaction
async def serve(reader, writer):
    for _ in range(4):
        await reader.readexactly(1)
        with transaction("nap"):
            await asyncio.sleep(0.1)
        writer.write(b"x")
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1")
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    for _ in range(4):
        writer.write(b"x")
        await reader.readexactly(1)
asyncio.run(main())
"""


@pytest.mark.parametrize("consolidates", ["0", "1"])
def test_a_loop_that_waits_for_the_timer_of_a_request_waits_for_nothing_unknown(traced, consolidates):
    done = traced(NAPS, INTERPOSE_CONSOLIDATE=consolidates)

    assert "waits of event loop" not in [each.rule for each in found_in(Survey(Analysis(done.experiment)))]


def test_a_loop_is_said_to_be_blocked_for_as_long_as_the_program_measured(traced):
    done = traced(BLOCKING)
    took = json.loads(done.stdout)
    blocks = Survey(Analysis(done.experiment)).blocks

    slept, code = ([each.wall_ns for each in blocks if each.intrinsic == name] for name in ("time.sleep", ""))
    assert len(slept) == 3 and sum(slept) <= sum(wall_ns for wall_ns, _ in took["time.sleep"])
    assert len(code) >= sum(cpu_ns > max(LONG_NS, 0.6 * wall_ns) + 5 * MS for wall_ns, cpu_ns in took[""])
    assert sum(code) <= sum(cpu_ns for _, cpu_ns in took[""]) + 5 * MS
    assert {(each.task, each.waiting) for each in blocks} == {("main", 4)}


def test_short_calls_of_many_tasks_in_one_turn_block_it_together(loop):
    for task in range(20, 60):
        loop.run("time.sleep", "sleep", 20 * MS, task=task)
    loop.wait()
    loop.awaiting(loop.now[1] - MS, task=59)
    (finding,) = [each for each in found_in(loop.survey()) if each.rule in RULES]

    assert (finding.rule, finding.intrinsic, finding.site.line) == ("blocked event loop", "time.sleep", 88)
    assert (finding.bound_ns, finding.units, finding.calls, finding.waiting) == (800 * MS, 1, 40, 39)


def test_short_calls_of_many_tasks_in_turns_of_their_own_block_nothing(loop):
    for task in range(20, 60):
        loop.run("time.sleep", "sleep", 20 * MS, task=task)
        loop.wait()
    loop.awaiting(loop.now[1] - MS)

    assert [rule for rule, *_ in loop.told()] == ["slow calls"]


def test_a_task_that_blocks_lets_those_of_its_turn_wait(loop):
    loop.run("time.sleep", "sleep", 200 * MS, task=HANDLER)
    loop.run("time.sleep", "sleep", MS, task=OTHER, line=40)
    loop.wait()
    loop.awaiting(loop.now[1] - MS)

    assert loop.told() == [("blocked event loop", 1, 200, 1)]
