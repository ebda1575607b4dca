"""What cannot be interposed is listed with a reason in words; the rest works, and the program is as it was."""

import re
import sys
from html import unescape

import pytest


def entries(done):
    """By name, the attributes of each entry of the map; a name is there twice only where it was installed later."""
    with open(done.path + "/map.xml") as file:
        found = [
            {key: unescape(value) for key, value in re.findall(r'(\w+)="([^"]*)"', line)}
            for line in file
            if "<intrinsic" in line
        ]
    by_name = {entry["name"]: entry for entry in found}
    assert all(entry is by_name[entry["name"]] or entry["installed"] == "0" for entry in found)
    return by_name


def reasons(done):
    """By name, why each that is not installed is not."""
    return {name: entry["why"] for name, entry in entries(done).items() if entry["installed"] == "0"}


def test_names_that_this_python_does_not_have_are_listed(recorded):
    done = recorded("""
        import queue, sqlite3, time
        from interpose.library import Intrinsic
        record(Intrinsic("no function", "time:rest", "sleep"), Intrinsic("no type", "_sqlite3:Courser.execute", "db"),
               Intrinsic("no method", "_sqlite3:Cursor.obey", "db"), Intrinsic("no slot", "time:sleep", "sleep"),
               Intrinsic("inherited", "queue:LifoQueue.get", "sync"), Intrinsic("no module", "nowhere:at_all", "file"),
               Intrinsic("function", "queue:Queue.get", "idle"), Intrinsic("slot", "_sqlite3:Cursor.__next__", "db"),
               Intrinsic("method", "_sqlite3:Cursor.execute", "db"))
        time.sleep(0)
        waiting = queue.LifoQueue()
        waiting.put(1)
        print(waiting.get(), list(sqlite3.connect(":memory:").cursor().execute("select 2")))
    """)

    assert (done.returncode, done.stdout, done.stderr) == (0, "1 [(2,)]\n", "")
    assert reasons(done) == dict.fromkeys(
        ("no function", "no type", "no method"), "this Python has no such name"
    ) | {"function": "it is interposed already"}  # of the class that it is inherited from
    assert "no module" not in entries(done)
    for name, calls in {"no slot": 1, "inherited": 1, "method": 1, "slot": 2}.items():
        assert len(done.events(name)) == calls


def test_what_is_no_function_is_listed(recorded):
    done = recorded("""
        import os, sqlite3, threading, time
        from interpose.library import Intrinsic
        record(Intrinsic("number", "time:timezone", "sleep"), Intrinsic("type", "_sqlite3:Cursor", "db"),
               Intrinsic("property", "threading:Thread.daemon", "sync"),
               Intrinsic("member", "_sqlite3:Cursor.arraysize", "db"), Intrinsic("text", "os:sep", "file"),
               Intrinsic("static", "builtins:str.maketrans", "file"),
               Intrinsic("another slot", "_thread:LockType.__repr__", "sync"), Intrinsic("good", "time:sleep", "sleep"))
        time.sleep(0)
        print(time.timezone is not None, sqlite3.Cursor.arraysize is not None, threading.Thread().daemon, os.sep)
    """)

    assert (done.returncode, done.stdout, done.stderr) == (0, "True True False /\n", "")
    assert len(done.events("good")) == 1
    assert set(reasons(done)) == {"number", "property", "member", "text", "static", "another slot"}
    assert set(reasons(done).values()) <= {"it has no method table", "it has no such slot"}


@pytest.mark.parametrize("target", ["time:sleep.more", "time:timezone.more", "_sqlite3:Cursor.execute.more"])
def test_a_name_below_what_is_no_type_is_listed(target, recorded):
    done = recorded(f"""
        import sqlite3, time
        from interpose.library import Intrinsic
        record(Intrinsic("bad", {target!r}, "file"), Intrinsic("good", "time:sleep", "sleep"),
               Intrinsic("execute", "_sqlite3:Cursor.execute", "db"))
        time.sleep(0)
        sqlite3.connect(":memory:").cursor().execute("select 1")
    """).ended_well()

    assert set(reasons(done)) == {"bad"}
    assert len(done.events("good")) == len(done.events("execute")) == 1


def test_what_somebody_replaced_before_stays_his(recorded):
    done = recorded("""
        import queue, threading, time
        import wrapt
        from interpose.library import Intrinsic
        calls = []
        real_sleep, real_get, real_put, real_wait = time.sleep, queue.Queue.get, queue.Queue.put, threading.Event.wait
        def sleep(seconds):
            calls.append("sleep")
            return real_sleep(seconds)
        time.sleep = sleep
        queue.Queue.put = lambda self, item: (calls.append("put"), real_put(self, item))[1]
        queue.Queue.get = wrapt.FunctionWrapper(real_get, lambda get, _, given, named: calls.append("get") or get())
        class Wait:
            def __get__(self, instance, owner):
                calls.append("wait")
                return real_wait.__get__(instance, owner)
        threading.Event.wait = Wait()
        before = [time.sleep, vars(queue.Queue)["put"], vars(queue.Queue)["get"], vars(threading.Event)["wait"]]
        record(Intrinsic("python", "time:sleep", "sleep"), Intrinsic("method", "queue:Queue.put", "sync"),
               Intrinsic("wrapt", "queue:Queue.get", "idle"), Intrinsic("descriptor", "threading:Event.wait", "sync"),
               Intrinsic("clear", "threading:Event.clear", "sync"), Intrinsic("monotonic", "time:monotonic", "sleep"))
        after = [time.sleep, vars(queue.Queue)["put"], vars(queue.Queue)["get"], vars(threading.Event)["wait"]]
        assert all(one is other for one, other in zip(before, after))
        assert calls == []
        time.sleep(0)
        waiting = queue.Queue()
        waiting.put(1)
        assert waiting.get() == 1
        threading.Event().wait(0)
        threading.Event().clear()
        time.monotonic()
        print(calls)
    """).ended_well()

    assert done.stdout == "['sleep', 'put', 'get', 'wait']\n"
    assert set(reasons(done)) == {"python", "method", "wrapt", "descriptor"}
    assert reasons(done)["python"] == reasons(done)["method"] == "somebody else's function is in its place"
    assert reasons(done)["wrapt"] == reasons(done)["descriptor"] == "it has no method table"
    assert len(done.events("clear")) == 1
    assert len(done.events("monotonic")) > 0


def test_a_function_under_two_names_is_interposed_once(recorded):
    done = recorded("""
        import queue
        from interpose.library import Intrinsic
        queue.Queue.full = queue.Queue.empty
        record(Intrinsic("full", "queue:Queue.full", "sync"), Intrinsic("put", "queue:Queue.put", "sync"),
               Intrinsic("empty", "queue:Queue.empty", "sync"))
        waiting = queue.Queue()
        print(waiting.full(), waiting.empty())
        waiting.put(1)
    """)

    assert (done.stdout, done.stderr) == ("True True\n", "")
    assert reasons(done) == {"empty": "it is interposed already"}
    assert len(done.events("full")) == 2
    assert len(done.events("put")) == 1


PROXY = "queue.Queue = wrapt.CallableObjectProxy(queue.Queue)"
FUNCTION = "real = queue.Queue; queue.Queue = lambda: real()"


@pytest.mark.parametrize("replace", [PROXY, FUNCTION])
def test_a_type_that_somebody_wrapped_is_listed(replace, recorded):
    done = recorded(f"""
        import queue, sqlite3, time
        import wrapt
        from interpose.library import Intrinsic
        {replace}
        record(Intrinsic("bad", "queue:Queue.get", "idle"), Intrinsic("good", "time:sleep", "sleep"),
               Intrinsic("execute", "_sqlite3:Cursor.execute", "db"))
        waiting = queue.Queue()
        waiting.put(1)
        assert waiting.get() == 1
        time.sleep(0)
        sqlite3.connect(":memory:").cursor().execute("select 1")
        print("done")
    """)

    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert set(reasons(done)) == {"bad"}
    assert len(done.events("good")) == len(done.events("execute")) == 1


def test_a_type_that_somebody_replaced_is_not_entered(recorded):
    done = recorded("""
        import _queue, time
        from interpose.library import Intrinsic
        class Own(_queue.SimpleQueue):
            def get(self, *given):
                return super().get(*given)
        _queue.SimpleQueue = Own
        record(Intrinsic("get", "_queue:SimpleQueue.get", "idle"), Intrinsic("put", "_queue:SimpleQueue.put", "sync"),
               Intrinsic("good", "time:sleep", "sleep"))
        own = _queue.SimpleQueue()
        own.put(1)
        assert own.get() == 1
        time.sleep(0)
        print(type(own) is Own)
    """)

    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
    assert reasons(done) == {
        "get": "somebody else's function is in its place",
        "put": "this Python has no such name",
    }
    assert len(done.events("good")) == 1


def test_a_slot_that_somebody_replaced_is_called_through_and_put_back(recorded):
    done = recorded("""
        import ctypes, sqlite3
        from interpose.library import Intrinsic
        place = ctypes.c_void_p.from_address(id(sqlite3.Cursor) + object.__basicsize__ + 26 * 8)  # tp_iternext
        unary = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)
        real, plain, seen = unary(place.value), place.value, []
        theirs = unary(lambda cursor: seen.append(1) or real(cursor))
        place.value = replaced = ctypes.cast(theirs, ctypes.c_void_p).value
        record(Intrinsic("next", "_sqlite3:Cursor.__next__", "db"), Intrinsic("iter", "_sqlite3:Cursor.__iter__", "db"))
        cursor = sqlite3.connect(":memory:").cursor().execute("select 1 union select 2")
        assert next(iter(cursor)) == (1,)
        assert next(cursor) == (2,)
        left = shims.end()
        print(len(seen), left, place.value == replaced)
        place.value = plain
    """)

    assert (done.returncode, done.stdout, done.stderr) == (0, "2 0 True\n", "")
    assert len(done.events("next")) == 2
    assert reasons(done) == {}


def test_a_c_module_imported_again_is_recorded_again(recorded):
    done = recorded("""
        import importlib, sqlite3, time
        from interpose.library import Intrinsic
        record(Intrinsic("execute", "_sqlite3:Cursor.execute", "db"),
               Intrinsic("next", "_sqlite3:Cursor.__next__", "db"),
               Intrinsic("get", "_queue:SimpleQueue.get", "idle"), Intrinsic("sleep", "time:sleep", "sleep"))
        import _queue
        for turn in range(3):
            kept = [sys.modules.pop(name) for name in list(sys.modules) if name.startswith(("_sqlite3", "sqlite3"))]
            old_queue = sys.modules.pop("_queue")
            import _queue, sqlite3
            assert _queue is not old_queue and all(sqlite3 is not module for module in kept)
            for module in (sqlite3, next(module for module in kept if module.__name__ == "sqlite3")):
                cursor = module.connect(":memory:").cursor()
                assert list(cursor.execute("select 1")) == [(1,)]
            for module in (_queue, old_queue):
                waiting = module.SimpleQueue()
                waiting.put(1)
                assert waiting.get() == 1
            time.sleep(0)
        print(shims.end())
    """)

    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
    assert reasons(done) == {}
    assert set(entries(done)) == {"execute", "next", "get", "sleep"}
    assert [len(done.events(name)) for name in ("execute", "next", "get", "sleep")] == [6, 12, 6, 3]


def test_a_python_module_imported_again_is_recorded_again(recorded):
    done = recorded("""
        import queue, time
        from interpose.library import Intrinsic
        record(Intrinsic("put", "queue:Queue.put", "sync"), Intrinsic("get", "queue:Queue.get", "idle"),
               Intrinsic("sleep", "time:sleep", "sleep"))
        olds = []
        for turn in range(20):
            olds.append(sys.modules.pop("queue"))
            import queue
            waiting = queue.Queue()
            waiting.put(turn)
            assert waiting.get() == turn
        for old in olds:
            waiting = old.Queue()
            waiting.put(1)
            assert waiting.get() == 1
        time.sleep(0)
        print(len(set(olds)), shims.end())
    """)

    assert (done.returncode, done.stdout, done.stderr) == (0, "20 0\n", "")
    assert reasons(done) == {}
    assert [len(done.events(name)) for name in ("put", "get", "sleep")] == [40, 40, 1]


def test_threading_imported_again_works_and_is_recorded(recorded):
    done = recorded("""
        import threading
        from interpose.library import Intrinsic
        record(Intrinsic("wait", "threading:Event.wait", "sync"), Intrinsic("join", "threading:Thread.join", "sync"))
        first = threading
        del sys.modules["threading"]
        import threading
        assert first is not threading
        for module in (first, threading):
            event = module.Event()
            thread = first.Thread(target=event.set)
            thread.start()
            assert event.wait(10)
            thread.join()
        sys.modules["threading"] = first
        print("done")
    """)

    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert len(done.events("wait")) >= 2
    assert len(done.events("join")) == 2


def test_a_module_that_is_a_stranger_is_left_alone(recorded):
    """Something that is no module, one whose dictionary answers oddly, one that lacks everything."""
    done = recorded("""
        import time, types
        from interpose.library import Intrinsic
        class Lazy(types.ModuleType):
            def __getattr__(self, name):
                raise AssertionError("an attribute of the program's was run")
        sys.modules["lazy"], sys.modules["empty"] = Lazy("lazy"), types.ModuleType("empty")
        sys.modules["none"], sys.modules["text"] = None, "no module"
        record(Intrinsic("lazy", "lazy:work", "file"), Intrinsic("empty", "empty:work", "file"),
               Intrinsic("none", "none:work", "file"), Intrinsic("text", "text:work", "file"),
               Intrinsic("sleep", "time:sleep", "sleep"))
        time.sleep(0)
    """).ended_well()

    assert reasons(done) == dict.fromkeys(("lazy", "empty"), "this Python has no such name")
    assert len(done.events("sleep")) == 1


def test_what_a_later_module_of_the_name_has_is_listed_as_interposed(recorded):
    done = recorded("""
        import types
        from interpose.library import Intrinsic
        sys.modules["many"] = empty = types.ModuleType("many")
        record(Intrinsic("work", "many:work", "file"))
        sys.modules["many"] = whole = types.ModuleType("many")
        exec("def work(): return 1", whole.__dict__)
        import colorsys
        print(whole.work())
    """)

    assert (done.stdout, done.stderr) == ("1\n", "")
    assert len(done.events("work")) == 1
    assert reasons(done) == {}


LAZY = """
    import importlib.util, time
    from interpose.library import Intrinsic
    with open("lazy.py", "w") as file:
        file.write("print('loaded')\\ndef work():\\n    return 1\\n")
    spec = importlib.util.find_spec("lazy")
    loader = importlib.util.LazyLoader(spec.loader)
    spec.loader = loader
    def begin():
        record(Intrinsic("work", "lazy:work", "file"), Intrinsic("sleep", "time:sleep", "sleep"))
    begin()
    lazy = sys.modules["lazy"] = importlib.util.module_from_spec(spec)
    loader.exec_module(lazy)
    import colorsys
    print("not yet loaded")
    print(lazy.work())
"""


def test_a_module_that_is_loaded_lazily_is_not_loaded_earlier(recorded):
    done = recorded(LAZY)

    assert (done.stdout, done.stderr) == ("not yet loaded\nloaded\n1\n", "")


def test_a_module_that_is_loaded_lazily_is_recorded_from_the_next_import_on(recorded):
    done = recorded(LAZY + """
    import wave
    print(lazy.work())
    """)

    assert done.stderr == ""
    assert reasons(done) == {}
    assert len(done.events("work")) == 1


MANY = """
    import time, types
    from interpose.library import Intrinsic
    many = types.ModuleType("many")
    exec("\\n".join(f"def each_{number}(*given): return {number}" for number in range(300)), many.__dict__)
    sys.modules["many"] = many
    functions = dict(vars(many))
    intrinsics = [Intrinsic(f"each_{number}", f"many:each_{number}", "file", by="function") for number in range(300)]
    def call_all():
        return [getattr(many, f"each_{number}")(number, 1) for number in range(300)] == list(range(300))
    def begin():
        record(*intrinsics, Intrinsic("sleep", "time:sleep", "sleep"))
    begin()
    assert call_all()
    time.sleep(0)
    assert all(getattr(many, name) is function for name, function in functions.items())
"""


@pytest.mark.skipif("t" in sys.abiflags, reason="a free-threaded interpreter keeps to the pool")
def test_functions_beyond_the_pool_of_stubs_are_recorded_as_well(recorded):
    done = recorded(MANY + """
    assert shims.end() == 0
    os.rename("test.1.er", "first.er")
    begin()
    print(call_all())
    print(shims.end(), call_all())
    """)

    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n0 True\n", "")
    assert reasons(done) == {}
    assert [len(done.events(f"each_{number}")) for number in range(300)] == [1] * 300


@pytest.mark.skipif("t" not in sys.abiflags, reason="Python functions beyond the pool have stubs of their own")
def test_a_pool_that_is_full_is_listed_and_the_rest_works(recorded):
    done = recorded(MANY + "    print(shims.end(), call_all())")
    listed = entries(done)

    assert (done.returncode, done.stdout, done.stderr) == (0, "0 True\n", "")
    assert len(listed) == 301
    assert set(reasons(done)) == {f"each_{number}" for number in range(256, 300)}
    assert set(reasons(done).values()) == {"the pool of stubs for its signature is full"}
    assert all(len(done.events(f"each_{number}")) == 1 for number in (0, 1, 254, 255))
    assert len(done.events("each_256")) == 0
    assert len(done.events("sleep")) == 1


@pytest.mark.skipif("t" not in sys.abiflags, reason="Python functions beyond the pool have stubs of their own")
def test_a_pool_that_was_full_has_room_after_the_end(recorded):
    done = recorded(MANY + """
    assert shims.end() == 0
    os.rename("test.1.er", "first.er")
    intrinsics.reverse()
    begin()
    assert call_all()
    time.sleep(0)
    print(shims.end())
    """)
    listed = reasons(done)

    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
    assert set(listed) == {f"each_{number}" for number in range(44)}
    assert len(done.events("each_299")) == len(done.events("sleep")) == 1


REUSED = """
    import gc, types
    from interpose.library import Intrinsic
    names = [f"each_{number}" for number in range(100)]
    def make():
        many = types.ModuleType("many")
        exec("\\n".join(f"def {name}(): return 1" for name in names), many.__dict__)
        return many
    sys.modules["many"] = make()
    record(*[Intrinsic(name, "many:" + name, "file", by="function") for name in names])
    emptied = []  # modules that lie at addresses of their own
    outliving = [sys.modules["many"].each_7]  # it keeps all of its module's
    for turn in range(20):
        DROP
        gc.collect()
        sys.modules["many"] = make()
        sys.modules.pop("colorsys", None)
        import colorsys  # what is new is seen when something is imported
        assert sys.modules["many"].each_99() == sys.modules["many"].each_7() == 1
    assert outliving[0]() == 1
    print(shims.end())
"""


def test_stubs_of_functions_that_are_no_more_are_used_again(recorded):
    done = recorded(REUSED.replace("DROP", "emptied.append(sys.modules.pop('many')); vars(emptied[-1]).clear()"))

    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
    assert reasons(done) == {}
    assert len(done.events("each_7")) == 21
    assert len(done.events("each_99")) == 20


def test_a_module_at_the_address_of_the_one_before_is_new(recorded):
    done = recorded(REUSED.replace("DROP", "del sys.modules['many']"))

    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
    assert len(done.events("each_7")) == 21


@pytest.mark.xfail(strict=True, reason="importlib.reload keeps the module, and what it holds anew is not looked at")
def test_a_module_that_is_reloaded_is_recorded_again(recorded):
    done = recorded("""
        import importlib, queue
        from interpose.library import Intrinsic
        record(Intrinsic("put", "queue:Queue.put", "sync"), Intrinsic("get", "queue:Queue.get", "idle"))
        for turn in range(3):
            waiting = queue.Queue()
            waiting.put(1)
            waiting.get()
            importlib.reload(queue)
    """).ended_well()

    assert [len(done.events(name)) for name in ("put", "get")] == [3, 3]


@pytest.mark.parametrize(
    "what",
    [
        'detail="novel"',
        'choice="dice"',
        'effect="magic"',
        'bytes="half"',
        'detail="statement "',
        'detail="Statement"',
        'detail="d\\u00e9tail"',
    ],
)
def test_a_word_that_means_nothing_is_listed_with_the_word(what, recorded_beside):
    done = recorded_beside(f'"sleep", {what}')
    word = what.partition("=")[2].strip('"').replace("\\u00e9", "\u00e9")

    assert reasons(done) == {"bad": f"{word!r} means nothing here"}
    assert len(done.events("bad")) == 0


@pytest.mark.parametrize("kinds", ["tea", "file tea", "tea file"])
def test_a_kind_that_is_none_is_listed(kinds, recorded_beside):
    done = recorded_beside(repr(kinds))

    assert reasons(done) == {"bad": "'tea' means nothing here"}
    assert len(done.events("bad")) == 0


@pytest.mark.parametrize("kinds", ["", " "])
def test_no_kind_at_all_harms_nobody(kinds, recorded_beside):
    done = recorded_beside(repr(kinds))

    assert "bad" in reasons(done)


@pytest.mark.parametrize(
    ("target", "lock"),
    [
        ("_thread:LockType.acquire", "of another sort"),
        ("_thread:LockType.acquire", "recursive"),
        ("_thread:RLock.acquire", "plain"),
        ("_queue:SimpleQueue.get", "recursive"),
        ("queue:Queue.get", "plain"),
        ("time:sleep", "plain"),
        ("_sqlite3:Cursor.__next__", "semaphore"),
    ],
)
def test_what_is_no_such_lock_is_listed_or_timed_without_a_look(target, lock, recorded):
    done = recorded(f"""
        import _queue, _thread, queue, sqlite3, time
        from interpose.library import Intrinsic
        record(Intrinsic("bad", {target!r}, "sync", lock={lock!r}, waits=True),
               *[Intrinsic("good " + module, module + ":" + name, "file") for module, name in (
                   ("_queue", "SimpleQueue.put"), ("_thread", "LockType.release"), ("queue", "Queue.put"),
                   ("_sqlite3", "Cursor.execute"), ("time", "monotonic"))])
        lock, simple, waiting = _thread.allocate_lock(), _queue.SimpleQueue(), queue.Queue()
        for turn in range(3):
            assert lock.acquire() is True
            lock.release()
            simple.put(turn)
            assert simple.get() == turn
            waiting.put(turn)
            assert waiting.get() == turn
            time.sleep(0)
            time.monotonic()
            assert list(sqlite3.connect(":memory:").cursor().execute("select 1")) == [(1,)]
        print(shims.end())
    """)

    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
    for module in ("_queue", "_thread", "queue", "_sqlite3", "time"):
        assert len(done.events("good " + module)) >= 3
    listed = entries(done)["bad"]
    assert listed["installed"] == "1" or listed["why"]


@pytest.mark.parametrize("argument", [-1, 256, 1 << 40, "x"])
def test_an_argument_that_is_no_number_of_one_is_listed(argument, recorded_beside):
    done = recorded_beside(f'"sleep", detail="path", argument={argument!r}')

    assert set(reasons(done)) == {"bad"}


def test_a_name_of_odd_characters_harms_nobody(recorded):
    done = recorded("""
        import time
        from interpose.library import Intrinsic
        record(Intrinsic("<a> & \\"b\\"", "time:time", "sleep"), Intrinsic("a\\x01b", "time:monotonic", "sleep"),
               Intrinsic("good", "time:sleep", "sleep"))
        time.time()
        time.monotonic()
        time.sleep(0)
    """)

    assert done.stderr == ""
    assert len(done.events('<a> & "b"')) > 0
    assert len(done.events("good")) == 1
