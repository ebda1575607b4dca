"""Beside others who change what calls do: greenlets, gevent, coverage.py, other tracers."""

import os
import subprocess
import sys
from collections import Counter

import pytest
from exercises import assert_program_is_recorded
from packaged import make_package

pytestmark = pytest.mark.packages

GREENLETS = """
    import time
    from greenlet import greenlet, getcurrent
    from interpose.library import Intrinsic
    def begin():
        record(Intrinsic("outer", "shapes.things:outer", "net"), Intrinsic("inner", "shapes.things:inner", "net"))
    from shapes import things
    def spin(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass
"""


def test_calls_in_progress_in_one_greenlet_are_not_made_inside_those_of_another(tmp_path, recorded):
    pytest.importorskip("greenlet")
    make_package(tmp_path)
    done = recorded(GREENLETS + """
    begin()
    main = getcurrent()
    def call(text):
        spin(0.01)
        main.switch(text)
        spin(0.02)
        return text
    things.inner = call
    greenlets = [greenlet(things.outer) for _ in range(60)]
    print([each.switch(number) for number, each in enumerate(greenlets[:50])] == list(range(50)))
    spin(0.1)
    try:
        greenlets[49].throw(ValueError("thrown"))
    except ValueError as error:
        print(error)
    print([each.switch() for each in greenlets[:49]] == list(range(49)))
    print(things.outer.__name__, sum(each.dead for each in greenlets))
    """.replace("things.inner = call", "things.__dict__['inner'] = call")).ended_well()  # fmt: skip
    founder = done.experiment.founder
    calls = done.events("outer")

    assert done.stdout == "True\nthrown\nTrue\nouter 50\n"
    assert len(calls) == 50
    assert [event.parent for event in calls] == [0] * 50
    assert sum(founder.string(event.error) == "ValueError" for event in calls) == 1
    assert sum(thread.record.dropped for thread in founder.threads) == 0
    for event in calls:
        finished = not event.error
        assert 29e6 * finished <= event.cpu_ns < 45e6
        assert event.wall_ns > 100e6
        assert 29e6 * finished <= event.wall_ns - event.inner_wall_ns < event.wall_ns / 4


GEVENT = """
    import sys
    from interpose.library import Intrinsic
    from interpose.instrumentation import system_library
    when = sys.argv[1]
    if when == "before":
        from gevent import monkey
        monkey.patch_all()
    if when != "off":
        record(*system_library.every())
    if when != "before":
        from gevent import monkey
        monkey.patch_all()
    import gevent, gevent.pywsgi, requests, time, queue, threading
    def serve(environ, start_response):
        time.sleep(0.02)
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [environ["PATH_INFO"].encode()]
    server = gevent.pywsgi.WSGIServer(("127.0.0.1", 0), serve, log=None)
    server.start()
    def ask(number):
        return requests.get(f"http://127.0.0.1:{server.server_port}/{number}?key=hush", timeout=10).text
    asking = [gevent.spawn(ask, number) for number in range(20)]
    gevent.joinall(asking)
    print([each.value for each in asking])
    items = queue.Queue()
    threading.Thread(target=lambda: [items.put(number) for number in range(3)]).start()
    print([items.get() for _ in range(3)], isinstance(threading.Lock(), type(threading.Lock())))
    server.stop()
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_with_gevent_patched_before_and_after(when, recorded):
    for package in ("gevent", "requests"):
        pytest.importorskip(package)

    done = recorded(GEVENT, when).ended_well()
    founder = done.experiment.founder
    sent = done.events("requests.Session.send")

    assert done.stdout.splitlines()[0] == str([f"/{number}" for number in range(20)])
    assert done.stdout.splitlines()[1] == "[0, 1, 2] True"
    assert len(sent) == len(done.events("urllib3.HTTPConnectionPool.urlopen")) == 20
    assert [event.parent for event in sent] == [0] * 20
    by_call = {event.call for event in sent}
    assert {event.parent for event in done.events("urllib3.HTTPConnectionPool.urlopen")} == by_call
    assert all(event.wall_ns >= 20e6 and event.cpu_ns < event.wall_ns for event in sent)
    (main,) = [thread for thread in founder.threads if thread.record.main]
    assert sum(event.cpu_ns for event in sent) < main.record.end_cpu_ns
    assert sum(thread.record.dropped for thread in founder.threads) == 0


def test_every_wait_of_gevent_is_recorded_where_all_are_wanted(traced):
    pytest.importorskip("gevent")
    assert_program_is_recorded(traced, "greenlets", INTERPOSE_SYNC="all")


def test_what_is_called_in_a_greenlet_is_of_its_task(traced):
    pytest.importorskip("gevent")
    done = traced("""
        import gevent, sqlite3, time
        from gevent import monkey
        monkey.patch_time()
        def order(number):
            connection = sqlite3.connect(":memory:")
            for turn in range(3):
                connection.execute(f"select {number}, {turn}")
                time.sleep(0.01)
        connection = sqlite3.connect(":memory:")
        connection.execute("select 'before'")
        gevent.joinall([gevent.spawn(order, number) for number in range(5)])
        connection.execute("select 'after'")
    """).ended_well()
    tasks = [event.task for event in done.events("sqlite3.Connection.execute")]

    assert tasks[0] == tasks[-1] == 0
    assert sorted(Counter(tasks[1:-1]).values()) == [3] * 5
    assert 0 not in tasks[1:-1]
    assert {event.task for event in done.events("gevent.sleep")} == set(tasks[1:-1])


def test_a_parent_that_begins_where_its_child_ends_is_seen_as_the_child(recorded):
    """Nothing was switched to then; and where everything is as it was there is no task again."""
    pytest.importorskip("greenlet")
    done = recorded("""
        import gc, os
        from greenlet import getcurrent, greenlet
        from interpose.library import Intrinsic
        record(Intrinsic("getcwd", "posix:getcwd", "file"))
        main, kept = getcurrent(), []
        def last(*given):
            gc.collect()
            os.getcwd()
            main.switch("back")
        for _ in range(50):
            kept.append(greenlet(last))
            assert greenlet(os.getcwd, parent=kept[-1]).switch() == "back"
            os.getcwd()
    """).ended_well()
    tasks = [event.task for event in done.events("getcwd")]

    assert len(tasks) == 150
    assert set(tasks[2::3]) == {0}
    assert 0 not in tasks[0::3] + tasks[1::3]


def test_beside_coverage(tmp_path, traced):
    for needed in ("coverage", "requests"):
        pytest.importorskip(needed)
    make_package(tmp_path)
    program = """
        import asyncio, coverage, sys
        measuring = coverage.Coverage(data_file=None, include=["*/shapes/*"])
        measuring.start()
        import requests
        from shapes import things
        print(things.Derived().method(), things.outer("x"))
        try:
            requests.get("http://127.0.0.1:9/", timeout=1)
        except requests.ConnectionError as error:
            print(type(error).__name__)
        measuring.stop()
        print(measuring.analysis(things)[3])
    """
    on, off = traced(program), traced(program, INTERPOSE="0")

    assert (on.stdout, on.stderr, on.returncode) == (off.stdout, off.stderr, 0)
    assert len(on.events("requests.Session.send")) == 1


def test_beside_a_tracer_that_wraps_the_same(traced):
    pytest.importorskip("requests")
    program = """
        import sys, wrapt
        import requests
        seen = []
        def note(wrapped, instance, arguments, keywords):
            seen.append(type(instance).__name__)
            return wrapped(*arguments, **keywords)
        wrapt.wrap_function_wrapper("requests.sessions", "Session.send", note)
        wrapt.wrap_function_wrapper("requests.sessions", "Session.send", note)
        frames = []
        sys.setprofile(lambda frame, event, argument: frames.append(frame.f_code.co_filename))
        for _ in range(2):
            try:
                requests.get("http://127.0.0.1:9/", timeout=1)
            except requests.ConnectionError as error:
                print(type(error).__name__)
        sys.setprofile(None)
        print(seen, any("interpose" in name for name in frames))
        sys.modules.pop("requests.sessions")
        import requests.sessions
        try:
            requests.sessions.Session().get("http://127.0.0.1:9/", timeout=1)
        except requests.ConnectionError as error:
            print(type(error).__name__)
    """
    on, off = traced(program), traced(program, INTERPOSE="0")

    assert (on.stdout, on.stderr, on.returncode) == (off.stdout, off.stderr, 0)
    assert "interpose" not in on.stdout
    assert len(on.events("requests.Session.send")) == 3


def test_sessions_requests_and_their_methods_are_what_they_were(traced):
    for package in ("requests", "httpx", "aiohttp", "flask"):
        pytest.importorskip(package)
    program = """
        import asyncio, copy, inspect, pickle, weakref
        import aiohttp, flask, httpx, requests
        for method in (requests.Session.send, httpx.Client.send, httpx.AsyncClient.send, flask.Flask.wsgi_app,
                       aiohttp.ClientSession._request):
            print(inspect.iscoroutinefunction(method), [*inspect.signature(method).parameters], method.__qualname__)
            print(pickle.loads(pickle.dumps(method)) is method, copy.deepcopy(method) is method)
        session = requests.Session()
        print(weakref.WeakMethod(session.send)() == session.send, session.send.__func__ is requests.Session.send)
        print(isinstance(pickle.loads(pickle.dumps(session)), requests.Session))
        class Own(requests.Session):
            def send(self, request, **named):
                return "own", request.method
        print(Own().get("http://127.0.0.1:9/"), issubclass(Own, requests.Session), inspect.ismethod(session.send))
        async def main():
            async with aiohttp.ClientSession() as client:
                asking = client.get("http://127.0.0.1:9/")
                print(type(asking).__name__, inspect.isawaitable(asking), inspect.iscoroutine(asking))
                try:
                    await asking
                except aiohttp.ClientError as error:
                    print(type(error).__name__)
        asyncio.run(main())
    """
    on, off = traced(program), traced(program, INTERPOSE="0")

    assert (on.stdout, on.stderr, on.returncode) == (off.stdout, off.stderr, 0)


def test_a_program_of_a_package_that_forks_servers_follows_them(tmp_path):
    """multiprocessing by forkserver and spawn: what is pickled is found by name in the child."""
    pytest.importorskip("requests")
    program = tmp_path / "program.py"
    program.write_text("""
import multiprocessing
import requests

def call(method):
    return method.__qualname__

if __name__ == "__main__":
    for how in ("forkserver", "spawn"):
        with multiprocessing.get_context(how).Pool(1) as pool:
            print(pool.map(call, [requests.Session.send, requests.sessions.merge_setting]))
""")
    outputs = [
        subprocess.run(
            [sys.executable, str(program)],
            cwd=tmp_path,
            env={**{k: v for k, v in os.environ.items() if not k.startswith("INTERPOSE")}, "INTERPOSE": on},
            capture_output=True,
            text=True,
            timeout=120,
        )
        for on in ("1", "0")
    ]

    assert outputs[0].stdout == outputs[1].stdout
    assert outputs[0].stderr == outputs[1].stderr == ""
