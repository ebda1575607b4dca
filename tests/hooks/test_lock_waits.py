"""What stands inside of a wait: semaphores, joined threads, locks that go from hand to hand."""

import json

import pytest
from locking import LEAST_NS, long_events, main_thread

WAITERS = """
    import _queue, json, multiprocessing, queue, sys, threading, time
    def later(act, *arguments):
        coming = []  # where processors are busy, start() may take longer than the pause
        def run():
            while not coming:
                time.sleep(0.001)
            time.sleep(0.15)
            act(*arguments)
        helper = threading.Thread(target=run, daemon=True)
        helper.start()
        helped_ns.append(time.monotonic_ns())
        coming.append("main")
        return helper
    def wait(case):
        if case == "Condition.wait":
            condition = threading.Condition()
            def notify():
                with condition:
                    condition.notify()
            with condition:
                later(notify)
                assert condition.wait(60)  # waits
        elif case == "Event.wait":
            event = threading.Event()
            later(event.set)
            assert event.wait()
        elif case == "Semaphore.acquire":
            semaphore = threading.BoundedSemaphore()
            semaphore.acquire()
            later(semaphore.release)
            semaphore.acquire()
        elif case == "Barrier.wait":
            barrier = threading.Barrier(2)
            later(barrier.wait)
            barrier.wait()
        elif case == "Thread.join":
            later(int).join()
        elif case == "Queue.get":
            waiting = queue.PriorityQueue()
            later(waiting.put, 1)
            assert waiting.get() == 1
        elif case == "Queue.put":
            full = queue.Queue(1)
            full.put(1)
            later(full.get)
            full.put(2, timeout=60)
        elif case == "Queue.join":
            unfinished = queue.Queue()
            unfinished.put(1)
            later(unfinished.task_done)
            unfinished.join()
        elif case == "SimpleQueue.get":
            simple = queue.SimpleQueue()
            later(simple.put, 1)
            assert simple.get(timeout=60) == 1
        elif case == "SemLock.acquire":
            shared = multiprocessing.Semaphore(0)
            later(shared.release)
            assert shared.acquire(True, 60)
        elif case == "SemLock.__enter__":
            shared = multiprocessing.Lock()
            shared.acquire()
            later(shared.release)
            with shared:
                pass
    helped_ns, ended_ns = [], []
    for case in sys.argv[1:]:
        wait(case)
        ended_ns.append(time.monotonic_ns())
        time.sleep(0.02)
    print(json.dumps([*zip(helped_ns, ended_ns)]))
"""
CASES = {
    "threading.Condition.wait": "sync",
    "threading.Event.wait": "sync",
    "threading.Semaphore.acquire": "sync",
    "threading.Barrier.wait": "sync",
    "threading.Thread.join": "sync",
    "queue.Queue.get": "idle",
    "queue.Queue.put": "sync",
    "queue.Queue.join": "sync",
    "queue.SimpleQueue.get": "idle",
    "multiprocessing.SemLock.acquire": "sync",
    "multiprocessing.SemLock.__enter__": "sync",
}
WITHIN = {
    "threading.Event.wait": "threading.Condition.wait",
    "threading.Semaphore.acquire": "threading.Condition.wait",
    "threading.Barrier.wait": "threading.Condition.wait",
    "queue.Queue.get": "threading.Condition.wait",
    "queue.Queue.put": "threading.Condition.wait",
    "queue.Queue.join": "threading.Condition.wait",
    "threading.Condition.wait": "threading.Lock.acquire",
}


def test_each_wait_is_one_event_with_what_it_waits_by_inside_of_it(traced):
    done = traced(WAITERS, *[name.partition(".")[2] for name in CASES])
    founder = done.experiment.founder
    main = main_thread(founder).number
    events = [event for event in done.events() if event.thread == main]
    long = [event for event in events if event.wall_ns > LEAST_NS and event.parent == 0]
    spans = json.loads(done.stdout)  # from when there is a thread that will help, which on a busy machine takes long
    waits = [event for event in long if any(begin <= event.start_ns < end for begin, end in spans)]

    assert done.stderr == ""
    assert [founder.intrinsic(event.intrinsic).name for event in waits] == list(CASES)
    for wait, kind, (begin, end) in zip(waits, CASES.values(), spans, strict=True):
        name = founder.intrinsic(wait.intrinsic).name
        assert founder.intrinsic(wait.intrinsic).kind == kind
        assert LEAST_NS < wait.wall_ns <= end - begin
        assert wait.cpu_ns < 50_000_000
        while name in WITHIN:
            inside = [event for event in events if event.parent == wait.call]
            assert wait.inner_wall_ns == sum(event.wall_ns for event in inside) <= wait.wall_ns
            assert wait.inner_cpu_ns == sum(event.cpu_ns for event in inside) <= wait.cpu_ns
            of_name = [event for event in inside if founder.intrinsic(event.intrinsic).name == WITHIN[name]]
            # The first: where processors are busy, to take the condition's lock back may take as long.
            inner = next(event for event in of_name if event.wall_ns > LEAST_NS)
            assert founder.intrinsic(inner.intrinsic).kind == kind
            wait, name = inner, WITHIN[name]
        assert founder.string(wait.detail) == ""


def test_a_thread_that_is_joined_is_one_event_with_what_it_waits_by_inside_of_it(traced):
    done = traced(WAITERS, "Thread.join")
    founder = done.experiment.founder
    (join,) = long_events(done, "threading.Thread.join")
    inside = [event for event in done.events() if event.parent == join.call and event.thread == join.thread]

    assert join.inner_wall_ns == sum(event.wall_ns for event in inside)
    assert join.wall_ns - join.inner_wall_ns < 30_000_000
    assert {founder.intrinsic(event.intrinsic).name for event in inside} <= {
        "threading.Lock.acquire",
        "_thread._ThreadHandle.join",
    }


def test_a_semaphore_between_processes_is_timed_in_the_child_that_waits(traced):
    done = traced("""
        import multiprocessing, time
        context = multiprocessing.get_context("fork")
        lock = context.Lock()
        def work():
            begun_ns = time.monotonic_ns()
            with lock:
                print(time.monotonic_ns() - begun_ns)
        lock.acquire()
        worker = context.Process(target=work)
        worker.start()
        time.sleep(0.2)
        lock.release()
        worker.join()
        assert worker.exitcode == 0
    """)
    (child,) = done.experiment.processes[1:]
    (event,) = long_events(done, "multiprocessing.SemLock.__enter__", child)

    assert done.stderr == ""
    assert child.intrinsic(event.intrinsic).kind == "sync"
    assert LEAST_NS < event.wall_ns <= int(done.stdout)


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_who_waits_for_a_lock_that_goes_from_hand_to_hand_is_seen_to_wait(traced, kind):
    done = traced(f"""
        import threading, time
        lock = threading.{kind}()
        here, long = [], []
        def work():
            here.append("one more")
            while len(here) < 4:
                time.sleep(0.001)
            turn = 0
            while len(long) < 100:
                begun = time.perf_counter()
                lock.acquire()
                took = time.perf_counter() - begun
                if took > 0.001:
                    long.append(took)
                time.sleep(0.002)
                lock.release()
                if turn % 2:
                    time.sleep(0.001)  # or who has it may always be the first to have it again
                turn += 1
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(long), sum(long))
    """)
    count, seconds = map(float, done.stdout.split())
    names = {f"threading.{kind}.acquire", "_thread.lock.acquire", "_thread.RLock.acquire"}
    process = done.experiment.founder
    walls = [each.wall_ns for each in done.events() if process.intrinsic(each.intrinsic).name in names]

    assert count >= 100
    assert sum(wall_ns > 1_000_000 for wall_ns in walls) >= count * 0.95
    assert sum(walls) / 1e9 >= seconds * 0.95


IN_A_REQUEST = """
    import io, threading, time, urllib.request, urllib.response
    changed, wanted, made, took_ns = threading.Condition(), [], [], []
    class Within(urllib.request.BaseHandler):  # answers without a network
        def within_open(self, request):
            begun_ns = time.monotonic_ns()
            with changed:
                wanted.append(1)
                changed.wait_for(lambda: made)
            took_ns.append(time.monotonic_ns() - begun_ns)
            made.clear()
            return urllib.response.addinfourl(io.BytesIO(), {}, request.full_url)
    def make():
        for _ in range(4):
            while not wanted:
                time.sleep(0.01)
            time.sleep(0.05)
            with changed:
                wanted.clear()
                made.append(1)
                changed.notify()
    urllib.request.install_opener(urllib.request.build_opener(Within))
    maker = threading.Thread(target=make)
    maker.start()
    for _ in range(4):
        urllib.request.urlopen("within:shop")
    maker.join()
    print(sum(took_ns))
"""


def test_a_wait_for_another_thread_in_a_request_is_no_wait_for_a_network(traced):
    done = traced(IN_A_REQUEST).ended_well()
    took_ns = int(done.stdout)
    founder = done.experiment.founder
    asked = {each.call for each in done.events("urllib.request.urlopen")}
    waits = [each for each in done.events("threading.Condition.wait") if each.parent in asked]
    calls = {each.call for each in waits}
    within = [each for each in done.events("threading.Lock.acquire") if each.parent in calls]

    assert len(asked) == len(waits) == 4
    assert {founder.intrinsic(each.intrinsic).kind for each in (*waits, *within)} == {"sync"}
    assert sum(each.wall_ns for each in waits) <= took_ns
