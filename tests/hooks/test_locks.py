"""Locks and what is made of them: a free one is only counted, a held one is timed, and it is known who holds it."""

import re
import textwrap

import pytest
from locking import LEAST_NS, line_of, long_events, main_thread


def waits_at(done, mark, name, process=None):
    """The long waits of that name in the line of the program that has this mark: elsewhere, as in threading.py, others
    may wait long where processors are busy."""
    told = process or done.experiment.founder
    waits = [(event, told.own_line(event.stack)) for event in long_events(done, name, process)]
    return [event for event, place in waits if place and place.own and place.line == line_of(done, mark)]


def details(done, events, process=None):
    told = process or done.experiment.founder
    return [told.string(event.detail) for event in events]


FREE = """
    import multiprocessing, sys, threading
    lock, recursive, held = threading.Lock(), threading.RLock(), threading.Lock()
    condition, semaphore, counted = threading.Condition(), multiprocessing.Semaphore(), multiprocessing.RLock()
    held.acquire()
    for turn in range(int(sys.argv[1])):
        with lock:
            pass
        for arguments in ((), (True,), (True, -1), (False,)):
            assert lock.acquire(*arguments) is True
            lock.release()
        lock.acquire(timeout=1)
        lock.release()
        with recursive, recursive:
            assert recursive.acquire(blocking=True)
            assert recursive.acquire(False)
            recursive.release()
            recursive.release()
        with condition:
            pass
        with semaphore:
            pass
        semaphore.acquire()
        semaphore.release()
        with counted, counted:
            pass
        assert held.acquire(False) is False
        assert held.acquire(blocking=False) is False
    held.release()
"""
PASSES = 6 + 4 + 1 + 2 + 2 + 2


def test_free_locks_and_those_who_do_not_wait_are_counted_exactly(traced):
    """The threshold is high, for a thread that loses its processor while it takes a lock has waited."""
    few, many = (traced(FREE, turns, INTERPOSE_SYNC="50ms") for turns in ("10", "1010"))

    assert few.stderr == many.stderr == ""
    founder = many.experiment.founder
    assert [event for event in many.events() if "Lock" in founder.intrinsic(event.intrinsic).name] == []
    passed = [main_thread(done.experiment.founder).record.passed for done in (few, many)]
    assert passed[1] - passed[0] == 1000 * PASSES
    for done in few, many:
        record = main_thread(done.experiment.founder).record
        assert record.made == record.recorded == len(done.events())


def test_with_all_free_locks_are_recorded_too(traced):
    done = traced(FREE, "10", INTERPOSE_SYNC="all")
    founder = done.experiment.founder
    places = [(event, founder.own_line(event.stack)) for event in done.events()]
    loop = line_of(done, "range(int(sys.argv[1])):")
    inside = [event for event, place in places if place and place.own and place.line > loop]
    names = [founder.intrinsic(event.intrinsic).name for event in inside]

    assert done.stderr == ""
    assert names.count("threading.Lock.__enter__") == 10
    assert names.count("threading.Lock.acquire") == 10 * 7
    assert names.count("threading.RLock.__enter__") == 10 * 3
    assert names.count("threading.RLock.acquire") == 10 * 2
    assert names.count("multiprocessing.SemLock.__enter__") == 10 * 3
    assert names.count("multiprocessing.SemLock.acquire") == 10
    assert main_thread(founder).record.passed == 0


# Who holds a lock lets go only when another is about to wait for it. After a mere pause, the other may not have come
# yet: where processors are busy, free-threaded CPython gives its own away 40 times before a thread waits for a lock.
PAUSE = """
import threading, time
ready, coming = threading.Event(), []
def pause(seconds=0.1):
    ready.set()
    while not coming:
        time.sleep(0.001)
    time.sleep(seconds)
"""


def pausing(source):
    """A program in which `pause()` lasts until `coming` is filled, and 100 ms."""
    return PAUSE + textwrap.dedent(source)


HELD = pausing("""
    import queue
    lock = {lock}
    condition = threading.Condition(lock)
    class Slow(queue.Queue):
        def _put(self, item):
            pause()
            super()._put(item)
    slow = Slow()
    def hold():
        {hold}
    holder = threading.Thread(target=hold)
    holder.start()
    ready.wait()
    coming.append("main")
    begun = time.monotonic_ns()
    {wait}  # waits
    print(time.monotonic_ns() - begun, holder.native_id)
    holder.join()
""")
ACQUIRE = "lock.acquire()  # taken|pause()|lock.release()"
WITH = "with lock:  # taken|    pause()"
AGAIN = "with lock:  # taken|    with lock:|        pause()"
CONDITION = "with condition:  # taken|    pause()"
TAKEN_BACK = "with condition:|    condition.wait(0.01)  # taken|    pause()"
BY_ANOTHER = (
    "lock.acquire()  # taken|other = threading.Thread(target=lambda: (pause(), lock.release()))"
    "|other.start()|other.join()"
)
PLAIN, RECURSIVE = "threading.Lock()", "threading.RLock()"


@pytest.mark.parametrize(
    ("lock", "hold", "wait", "name"),
    [
        (PLAIN, ACQUIRE, "lock.acquire()", "threading.Lock.acquire"),
        (PLAIN, WITH, "lock.__enter__()", "threading.Lock.__enter__"),
        (PLAIN, BY_ANOTHER, "lock.acquire(True, 60)", "threading.Lock.acquire"),
        (PLAIN, CONDITION, "condition.acquire()", "threading.Lock.acquire"),
        (PLAIN, TAKEN_BACK, "condition.acquire(timeout=60)", "threading.Lock.acquire"),
        (RECURSIVE, ACQUIRE, "lock.acquire()", "threading.RLock.acquire"),
        (RECURSIVE, AGAIN, "condition.__enter__()", "threading.RLock.__enter__"),
        (RECURSIVE, TAKEN_BACK, "lock.acquire()", "threading.RLock.acquire"),
        (PLAIN, "slow.put(1)  # taken", "slow.qsize()", "threading.Lock.__enter__"),
    ],
)
def test_a_wait_is_timed_and_the_holder_is_named_by_his_own_line(lock, hold, wait, name, traced):
    done = traced(HELD.format(lock=lock, hold=hold.replace("|", "\n" + " " * 4), wait=wait))
    founder = done.experiment.founder
    measured_ns, native_id = map(int, done.stdout.split())
    (holder,) = [thread.number for thread in founder.threads if thread.record.tid == native_id]
    (event,) = waits_at(done, "# waits", name)

    assert done.stderr == ""
    assert founder.intrinsic(event.intrinsic).kind == "sync"
    assert measured_ns - 30_000_000 < event.wall_ns <= measured_ns
    assert event.cpu_ns < 30_000_000
    place = f"{done.directory / 'program.py'}:{line_of(done, '# taken')} hold"
    assert founder.string(event.detail) == f"held by thread {holder} at {place}"


def test_who_took_a_lock_again_and_let_go_holds_it_from_the_first_line(traced):
    hold = "with lock:  # taken|    with lock:|        pass|    pause()"
    done = traced(HELD.format(lock=RECURSIVE, hold=hold.replace("|", "\n" + " " * 4), wait="lock.acquire()"))
    (event,) = waits_at(done, "# waits", "threading.RLock.acquire")

    assert done.experiment.founder.string(event.detail).endswith(f"program.py:{line_of(done, '# taken')} hold")


def test_a_wait_in_vain_is_timed_and_does_not_make_a_holder(traced):
    done = traced(
        pausing("""
        lock = threading.Lock()
        def hold():
            with lock:  # taken
                pause()
        def try_it():
            begun_ns = time.monotonic_ns()
            assert lock.acquire(timeout=0.1) is False  # tries
            print(time.monotonic_ns() - begun_ns)
            assert lock.acquire(False) is False
        holder = threading.Thread(target=hold)
        holder.start()
        ready.wait()
        trying = threading.Thread(target=try_it)
        trying.start()
        trying.join()
        coming.append("main")
        with lock:  # waits
            pass
        """)
    )
    tried = waits_at(done, "# tries", "threading.Lock.acquire")
    got = waits_at(done, "# waits", "threading.Lock.__enter__")

    assert done.stderr == ""
    assert (len(tried), len(got)) == (1, 1)
    assert 100_000_000 <= tried[0].wall_ns <= int(done.stdout)
    assert tried[0].error == 0
    for detail in details(done, tried + got):
        assert detail.endswith(f"program.py:{line_of(done, '# taken')} hold")


WAITS = pausing("""
    lock = threading.Lock()
    for seconds in (0.01, 0.6):
        ready.clear()
        coming.clear()
        def hold():
            with lock:
                pause(seconds)
        holder = threading.Thread(target=hold)
        holder.start()
        ready.wait()
        coming.append("main")
        lock.acquire()  # waits
        lock.release()
        holder.join()
    print("done")
""")


@pytest.mark.alone
@pytest.mark.parametrize(
    ("threshold", "recorded"), [("400ms", 1), ("auto", 2), ("all", 2), ("1 fortnight", None), ("off", None)]
)
def test_the_threshold_is_what_was_set(threshold, recorded, traced, tmp_path):
    done = traced(WAITS, INTERPOSE_SYNC=threshold, XDG_STATE_HOME=str(tmp_path / "state"))

    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    if recorded is None:
        assert list(done.directory.glob("*.er")) == []
        return
    founder = done.experiment.founder
    at = line_of(done, "# waits")
    waits = [event for event in done.events("threading.Lock.acquire") if founder.own_line(event.stack).line == at]
    assert len(waits) == recorded
    shortest = re.search(r'wait[^"]*="(\d+)"', (done.directory / "test.1.er" / "log.xml").read_text())
    assert shortest is not None
    assert min(event.wall_ns for event in waits) >= int(shortest[1])


def test_a_threshold_that_means_nothing_is_an_error_under_run_and_no_recording_else(interpose, traced, tmp_path):
    program = tmp_path / "hello.py"
    program.write_text("print('hello')")
    run = interpose("run", str(program), variables={"INTERPOSE_SYNC": "soon"})
    option = interpose("run", "--sync", "soon", str(program))
    bare = traced("print('hello')", INTERPOSE_SYNC="soon", XDG_STATE_HOME=str(tmp_path / "state"))

    for done in run, option:
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
        assert "soon" in done.stderr
    assert (bare.returncode, bare.stdout, bare.stderr) == (0, "hello\n", "")
    assert list(tmp_path.glob("**/*.er")) == []


def test_the_error_tells_what_a_threshold_can_be(interpose):
    done = interpose("run", "--sync", "soon", "program.py")

    assert "auto" in done.stderr
    assert "off" not in done.stderr


def test_a_holder_whose_code_is_gone_is_named_by_thread_alone(traced):
    done = traced(
        pausing("""
        import gc
        lock = threading.Lock()
        others = [threading.Lock() for number in range(500)]
        def hold():
            for each in [*others, lock]:
                exec(compile("each.acquire()", "gone.py", "exec"), {"each": each})
            gc.collect()
            pause()
            lock.release()
        holder = threading.Thread(target=hold)
        holder.start()
        ready.wait()
        coming.append("main")
        lock.acquire()  # waits
        holder.join()
        print(holder.native_id)
        """)
    )
    (event,) = waits_at(done, "# waits", "threading.Lock.acquire")
    founder = done.experiment.founder
    (holder,) = [thread.number for thread in founder.threads if thread.record.tid == int(done.stdout)]

    assert done.stderr == ""
    assert founder.string(event.detail) == f"held by thread {holder}"


def test_a_lock_at_the_address_of_a_dead_one_has_its_own_holder(traced):
    done = traced(
        pausing("""
        addresses = set()
        def take_and_drop():
            lock = threading.Lock()
            lock.acquire()
            addresses.add(id(lock))
        dropper = threading.Thread(target=lambda: [take_and_drop() for turn in range(100)])
        dropper.start()
        dropper.join()
        locks = [threading.Lock() for turn in range(200)]
        lock = next((lock for lock in locks if id(lock) in addresses), locks[0])
        def hold():
            with lock:  # taken
                pause()
        holder = threading.Thread(target=hold)
        holder.start()
        ready.wait()
        coming.append("main")
        lock.acquire()  # waits
        """)
    )
    (detail,) = details(done, waits_at(done, "# waits", "threading.Lock.acquire"))

    assert detail.endswith(f"program.py:{line_of(done, '# taken')} hold")


def test_a_forked_child_knows_only_holders_of_its_own(traced):
    done = traced(
        pausing("""
        import os, warnings
        warnings.simplefilter("ignore")  # a fork with threads is what is wanted here
        lock, own = threading.Lock(), threading.Lock()
        def hold(lock):
            with lock:  # taken
                pause()
        holder = threading.Thread(target=hold, args=(lock,))
        holder.start()
        ready.wait()
        child = os.fork()
        if child == 0:
            assert lock.acquire(timeout=0.1) is False  # held by nobody
            ready.clear()
            threading.Thread(target=hold, args=(own,)).start()
            ready.wait()
            coming.append("main")
            own.acquire()  # waits
            lock._at_fork_reinit()
            assert lock.acquire(False)
            os._exit(0)
        coming.append("main")
        assert os.waitpid(child, 0)[1] == 0
        holder.join()
        """)
    )
    (child,) = done.experiment.processes[1:]
    marks = ("# held by nobody", "# waits")
    events = [event for mark in marks for event in waits_at(done, mark, "threading.Lock.acquire", child)]

    assert done.stderr == ""
    assert [event.wall_ns >= 100_000_000 for event in events] == [True, True]
    unknown, known = details(done, events, child)
    assert unknown == ""
    number = re.fullmatch(rf"held by thread (\d+) at .*program.py:{line_of(done, '# taken')} hold", known)
    assert number is not None
    assert int(number[1]) in [thread.number for thread in child.threads if not thread.record.main]


def test_a_wait_that_a_signal_ends_is_an_error_and_makes_no_holder(traced):
    done = traced(
        pausing("""
        import signal
        class Enough(Exception):
            pass
        def stop(number, frame):
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Enough
        signal.signal(signal.SIGALRM, stop)
        lock = threading.Lock()
        def hold():
            with lock:  # taken
                pause()
        threading.Thread(target=hold).start()
        ready.wait()
        # Again: free-threaded CPython does not see a signal that comes just before it waits for the lock.
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        begun_ns = time.monotonic_ns()
        try:
            lock.acquire()  # is stopped
        except Enough:
            print(time.monotonic_ns() - begun_ns)
        coming.append("main")
        with lock:  # waits
            print("taken")
        """)
    )
    (stopped,) = waits_at(done, "# is stopped", "threading.Lock.acquire")
    (got,) = waits_at(done, "# waits", "threading.Lock.__enter__")

    took_ns, taken = done.stdout.splitlines()
    assert (taken, done.stderr) == ("taken", "")
    assert done.experiment.founder.string(stopped.error) == "Enough"
    assert LEAST_NS < stopped.wall_ns <= int(took_ns)
    for detail in details(done, [stopped, got]):
        assert detail.endswith(f"program.py:{line_of(done, '# taken')} hold")


def test_locks_are_what_they_were(traced):
    source = """
        import pickle, threading, time, weakref
        class Shared:
            lock = threading.Lock()
            recursive = threading.RLock()
            def use(self):
                with self.lock, self.recursive:
                    return self.lock.locked(), self.recursive._is_owned()
        class Noted(type(threading.RLock())):
            taken = 0
            def acquire(self, *arguments, **named):
                type(self).taken += 1
                return super().acquire(*arguments, **named)
            __enter__ = acquire
        class Plain(type(threading.RLock())):
            pass
        print(Shared().use(), Shared.lock.locked())
        noted, plain = Noted(), Plain()
        with noted, noted, plain:
            plain.acquire()
            plain.release()
        print(Noted.taken, noted._is_owned(), plain._is_owned())
        for call in (lambda: type("Sub", (type(Shared.lock),), {}), Shared.lock.release, Shared.recursive.release,
                     lambda: pickle.dumps(Shared.lock), lambda: Shared.lock.acquire(True, -2),
                     lambda: Shared.lock.acquire(False, 1), lambda: Shared.lock.acquire(1, 2, 3),
                     lambda: Shared.lock.acquire("x", nonsense=1)):
            try:
                print(call())
            except Exception as error:
                print(type(error), error)
        held = threading.Lock()
        held.acquire()
        held._at_fork_reinit()
        print(held.locked(), held.acquire(False), weakref.ref(held)() is held)
        noted.acquire()
        noted._at_fork_reinit()
        print(noted._is_owned(), noted.acquire(False))
        waiting = threading.Event()
        waiting._at_fork_reinit()
        print(waiting.wait(0.01), waiting.is_set())
        condition = threading.Condition()
        condition._at_fork_reinit()
        with condition:
            print(condition.wait(0.01))
    """
    on, off = traced(source), traced(source, INTERPOSE="0")

    assert on.stderr == off.stderr == ""
    assert on.stdout == off.stdout


def test_locks_held_through_a_subclass_and_a_class_attribute_are_recorded(traced):
    done = traced(
        pausing("""
        class Own(type(threading.RLock())):
            def acquire(self, *arguments, **named):
                return super().acquire(*arguments, **named)  # taken
            __enter__ = acquire
        class Shared:
            lock = Own()
        def hold():
            with Shared.lock:
                pause()
        holder = threading.Thread(target=hold)
        holder.start()
        ready.wait()
        coming.append("main")
        with Shared.lock:
            pass
        """)
    )
    (event,) = long_events(done, "threading.RLock.acquire")

    assert done.stderr == ""
    assert f"program.py:{line_of(done, '# taken')} Own.acquire" in done.experiment.founder.string(event.detail)
