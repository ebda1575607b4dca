"""Data collectors that fail, take too long or keep too much, and what the program notices of any: nothing."""

import textwrap

import pytest
from collecting import counts, failures, named, probes, rows

pytestmark = pytest.mark.any_python


def test_one_that_raises_is_told_with_its_line_and_switched_off_after_ten_times(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "probe":
                sys.modules["__main__"].called += 1
                raise KeyError("no such order")
        """,
        """
        called = 0
        for number in range(100):
            probe(f"/probe/{number}")
        print(called)
        """,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "10\n"
    assert failures(done) == ["raised KeyError: 'no such order'", "switched off: it raised an error ten times"]
    assert done.experiment.founder.failures[0].place.endswith("interpose_program.py:7")


def test_one_that_takes_too_much_cpu_time_is_switched_off(collected):
    done = collected(
        """
        import time
        @interpose.collector
        def name(area):
            if area.function == "probe":
                sys.modules["__main__"].called += 1
                until = time.thread_time() + 0.3
                while time.thread_time() < until:
                    pass
        """,
        """
        called = 0
        for number in range(5):
            probe(f"/probe/{number}")
        print(called)
        """,
    )

    assert done.stdout == "1\n"
    assert failures(done) == ["switched off: a call took more than 250 ms of CPU time"]


def test_one_that_is_a_little_slow_at_each_call_is_switched_off(collected):
    done = collected(
        """
        import time
        @interpose.collector
        def name(area):
            if area.function == "probe":
                until = time.thread_time_ns() + 200_000
                while time.thread_time_ns() < until:
                    pass
        """,
        """
        for number in range(600):
            probe(f"/probe/{number}")
        """,
    )

    assert failures(done) == ["switched off: 256 calls took more than 50 us of CPU time each"]


def test_its_time_is_the_recorders_not_the_programs(collected):
    done = collected(
        """
        import time
        @interpose.collector
        def name(area):
            if area.function == "probe":
                time.sleep(0.02)
        """,
        """
        import interpose
        with interpose.transaction("pay"):
            for number in range(5):
                probe(f"/probe/{number}")
        """,
    )

    (pay,) = done.events("interpose.transaction")
    (thread,) = done.experiment.founder.threads
    own = {row["section"]: row for row in rows(done, "identified")}[".OVERHEAD"]
    assert thread.record.own_wall_ns >= 100e6
    assert own["wall_ns"] >= 100e6
    assert pay.inner_wall_ns >= 100e6


@pytest.mark.slow
def test_one_that_keeps_more_and_more_memory_is_switched_off(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            area.work = (area.work, [len(str(area.line))] * 3)
        """,
        """
        for number in range(40_000):
            probe("/probe")
        """,
    )

    assert failures(done) == ["switched off: each call keeps more memory"]


def test_one_that_keeps_very_much_at_once_is_switched_off(collected):
    done = collected(
        """
        calls, kept = 0, []
        @interpose.collector
        def name(area):
            global calls
            calls += 1
            if calls % 1024 == 0:
                kept.append([object() for _ in range(1_100_000)])
        """,
        """
        for number in range(1100):
            probe("/probe")
        """,
    )

    assert failures(done) == ["switched off: a call kept more than 1,000,000 blocks of memory"]


def test_what_a_collector_calls_is_not_recorded(collected):
    done = collected(
        """
        import os
        @interpose.collector
        def name(area):
            os.stat("/")
            with interpose.transaction("never"):
                os.getcwd()
        """,
        """
        import interpose
        probe("/probe/1")
        """,
    )

    founder = done.experiment.founder
    assert [path for path, _ in probes(done, "/") if path == "/"] == []
    assert not done.events("interpose.transaction")
    assert [thread.adds_up for thread in founder.threads] == [True]
    assert not failures(done)


def test_the_program_notices_nothing_of_it(collected):
    source = """
        import ctypes, signal
        def outcome(act):
            try:
                return act()
            except Exception as error:
                return repr(error), error.__context__, error.__traceback__.tb_lineno
        library = ctypes.CDLL(None, use_errno=True)
        print(outcome(lambda: os.stat("/none")))
        print(outcome(lambda: os.open("/none", 0)))
        traced = []
        sys.settrace(lambda frame, what, argument: traced.append((what, frame.f_code.co_name)))
        sys.setprofile(lambda frame, what, argument: traced.append((what, frame.f_code.co_name)))
        probe("/probe/1")
        sys.setprofile(None)
        sys.settrace(None)
        print(traced)
        try:
            raise ValueError("first")
        except ValueError:
            try:
                os.stat("/none")
            except OSError as error:
                print(repr(error.__context__))
        print(sys.exc_info(), sorted(name for name in sys.modules if name.startswith("interpose")) == had)
    """
    had = "had = sorted(name for name in sys.modules if name.startswith('interpose'))\n"
    disturbing = """
        @interpose.collector
        def name(area):
            try:
                raise KeyError
            except KeyError:
                pass
            area.module = "X"
            raise LookupError
    """
    plain = collected("", had + textwrap.dedent(source), INTERPOSE="0")
    done = collected(disturbing, had + textwrap.dedent(source))

    assert (done.stdout, done.stderr, done.returncode) == (plain.stdout, plain.stderr, plain.returncode)
    assert "name" not in done.stdout.split("[(", 1)[1].partition("\n")[0].replace("co_name", "")


def test_what_a_handler_for_a_signal_raises_reaches_the_program(collected):
    done = collected(
        """
        import os, signal
        @interpose.collector
        def name(area):
            if area.function == "probe":
                os.kill(os.getpid(), sys.modules["__main__"].number)
                for _ in range(1000):
                    pass
        """,
        """
        import signal
        class Late(Exception):
            pass
        def handler(number, frame):
            raise Late
        signal.signal(signal.SIGUSR1, handler)
        for number, expected in ((signal.SIGUSR1, Late), (signal.SIGINT, KeyboardInterrupt)):
            try:
                probe("/probe/1")
                for _ in range(1000):
                    pass
            except expected as error:
                print(type(error).__name__)
        """,
    )

    assert (done.stdout, done.stderr) == ("Late\nKeyboardInterrupt\n", "")
    assert not failures(done)


def test_a_forked_child_has_the_collectors_and_names_its_own(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            main = sys.modules["__main__"]
            area.transaction = getattr(main, "doing", None)
            if area.function == "probe":
                area.module = "PID" + str(main.os.getpid() == main.parent)
        """,
        """
        parent = os.getpid()
        doing = "both"
        probe("/probe/1")
        if os.fork() == 0:
            probe("/probe/2")
            os._exit(0)
        os.wait()
        """,
    )

    (child,) = [process for process in done.experiment.processes if process.lineage]
    assert [module for _, module, *_ in named(done)] == ["PIDTrue"]
    events = [event for block in child.events.blocks() for event in child.events.events(block)]
    modules = {next(iter(child.frames(event.stack))).file for event in events if event.stack}
    assert "PIDFalse" in modules
    assert counts(done)["both"] == 2
    assert [thread.adds_up for thread in child.threads] == [True]


def test_one_that_forks_harms_nobody(collected):
    done = collected(
        """
        import os
        @interpose.collector
        def name(area):
            if area.function == "probe":
                if os.fork() == 0:
                    os._exit(0)
                os.wait()
                area.module = "ORDERS"
        """,
        """
        probe("/probe/1")
        probe("/probe/2")
        print("goes on")
        """,
    )

    assert (done.stdout, done.returncode) == ("goes on\n", 0)
    assert [module for _, module, *_ in named(done)] == ["ORDERS", "ORDERS"]
    assert all(thread.adds_up for process in done.experiment.processes for thread in process.threads)


@pytest.mark.parametrize("per", ["event", "transaction", "site"])
def test_one_that_ends_the_recording_and_fails_harms_nobody(collected, per):
    done = collected(
        f"""
        @interpose.collector(per="{per}")
        def name(area):
            if getattr(sys.modules["__main__"], "armed", False):
                interpose.stop_process()
                raise LookupError
        """,
        """
        import interpose
        armed = True
        with interpose.transaction("probing"):
            probe("/probe/1")
        with interpose.transaction("probing"):
            probe("/probe/2")
        print("goes on")
        """,
    )

    assert (done.stdout, done.stderr, done.returncode) == ("goes on\n", "", 0)
    assert [path for path, _ in probes(done)] in ([], ["/probe/1"])


@pytest.mark.parametrize("per", ["event", "transaction", "site"])
@pytest.mark.parametrize("fails", ["pass", "raise LookupError"])
def test_no_other_is_called_after_one_per_site_that_ends_the_recording(collected, per, fails):
    done = collected(
        f"""
        @interpose.collector(per="site")
        def name(area):
            area.section = "FIRST"
            if area.function == "probe":
                interpose.stop_process()
                {fails}
        @interpose.collector(per="{per}")
        def other(area):
            area.section = "OTHER"
        """,
        """
        probe("/probe/1")
        print("goes on")
        """,
    )

    assert (done.stdout, done.stderr, done.returncode) == ("goes on\n", "", 0)
    assert probes(done) == []


def test_awaited_calls_are_identified_too(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "wait":
                area.module, area.statement = "AWAITED", area.line
        """,
        """
        import asyncio
        async def wait(number):
            await asyncio.sleep(0.001 * number)
        async def main():
            await asyncio.gather(*[wait(number) for number in range(1, 4)])
        asyncio.run(main())
        """,
    )

    founder = done.experiment.founder
    sites = [next(iter(founder.frames(event.stack))) for event in done.events("asyncio.sleep")]
    assert [site.file for site in sites] == ["AWAITED"] * 3
    assert not failures(done)


def test_one_that_hangs_is_seen_as_a_call_in_progress(collected, tmp_path):
    done = collected(
        """
        import time
        @interpose.collector
        def name(area):
            if area.function == "probe":
                sys.modules["__main__"].hangs = True
                time.sleep(60)
        """,
        """
        import signal
        hangs = False
        threading.Thread(target=probe, args=("/probe/1",), daemon=True).start()
        while not hangs:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )

    founder = done.experiment.founder
    calls = [call for thread in founder.threads for call in thread.open_calls]
    hung = [call for call in calls if founder.intrinsic(call.intrinsic).name == "interpose.collector"]
    assert [founder.string(call.detail) for call in hung] == ["collector:group:program"]
    assert all(thread.adds_up for thread in founder.threads)
