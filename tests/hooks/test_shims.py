"""Shims in place: every call is caught, nothing that a program could see is changed, and the undo undoes."""

import os

import pytest

# What a definition looks like in memory: which function, which flags.
DEFINITIONS = """
import ctypes

class Definition(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int)]

class Function(ctypes.Structure):
    _fields_ = [("head", ctypes.c_char * object.__basicsize__), ("definition", ctypes.POINTER(Definition))]

class Method(ctypes.Structure):
    _fields_ = [("head", ctypes.c_char * object.__basicsize__), ("owner", ctypes.c_void_p),
                ("name", ctypes.c_void_p), ("qualified", ctypes.c_void_p), ("definition", ctypes.POINTER(Definition))]

def definition(callable):
    kind = Function if type(callable).__name__ == "builtin_function_or_method" else Method
    return kind.from_address(id(callable)).definition.contents
"""

FLAGS = {
    "NOARGS": 0x0004,
    "O": 0x0008,
    "VARARGS": 0x0001,
    "VARARGS|KEYWORDS": 0x0003,
    "FASTCALL": 0x0080,
    "FASTCALL|KEYWORDS": 0x0082,
    "METHOD|FASTCALL|KEYWORDS": 0x0282,
}

# A call that succeeds, one that raises, for some function of each signature.
CALLS = {
    "NOARGS": ("_sqlite3:Connection.commit", "connected.commit()", "closed.commit()"),
    "O": ("time:sleep", "time.sleep(0)", "time.sleep('x')"),
    "VARARGS": ("_socket:socket.setsockopt", "s.setsockopt(1, 2, 1)", "s.setsockopt(1)"),
    "VARARGS|KEYWORDS": ("_socket:socket.recv_into", "t.recv_into(bytearray(1))", "t.recv_into(1)"),
    "FASTCALL": ("posix:write", "os.write(out, b'abc')", "os.write(99, b'')"),
    "FASTCALL|KEYWORDS": ("posix:stat", "os.stat('/').st_ino", "os.stat('/nowhere')"),
    "METHOD|FASTCALL|KEYWORDS": ("_queue:SimpleQueue.get", "queue.put(1) or queue.get()", "queue.get(timeout=0)"),
}


@pytest.mark.parametrize("signature", FLAGS)
def test_each_signature_is_timed_and_gives_what_it_gave(signature, recorded):
    target, good, bad = CALLS[signature]
    done = recorded(f"""
        {DEFINITIONS.replace(chr(10), chr(10) + " " * 8)}
        import os, _queue, socket, sqlite3, sys, time
        from interpose.library import Intrinsic
        out = os.open(os.devnull, os.O_WRONLY)
        s, t = socket.socketpair()
        s.send(b"x" * 10)
        connected, closed = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
        closed.close()
        queue = _queue.SimpleQueue()

        target = {target!r}
        module, _, qualified = target.partition(":")
        found = __import__(module)
        for name in qualified.split("."):
            found = vars(found)[name]
        if definition(found).flags & 0x3bf != {FLAGS[signature]}:
            sys.exit(f"another signature here: {{definition(found).flags:#x}}")

        def outcome(call):
            try:
                return eval(call)
            except Exception as error:
                return type(error), str(error)

        plain = [outcome({good!r}), outcome({bad!r})]
        record(Intrinsic("it", target, "file"))
        assert [outcome({good!r}), outcome({bad!r})] == plain, plain
    """)
    if "another signature" in done.stderr:
        pytest.skip(f"this Python has no such function under that name: {done.stderr.strip()}")

    events = done.events("it")
    assert done.stderr == ""
    assert [event.error != 0 for event in events] == [False, True]


SLOTS = """
    import sqlite3
    from interpose.library import Intrinsic
    class Before(sqlite3.Cursor):
        def __next__(self):
            return super().__next__()
    class BeforePlain(sqlite3.Cursor):
        pass
    connection = sqlite3.connect(":memory:")
    record(Intrinsic("next", "_sqlite3:Cursor.__next__", "db"), Intrinsic("iter", "_sqlite3:Cursor.__iter__", "db"),
           Intrinsic("init", "_sqlite3:Cursor.__init__", "db"))
    class After(sqlite3.Cursor):
        pass
    for kind in (sqlite3.Cursor, Before, BeforePlain, After):
        cursor = kind(connection)
        cursor.execute("select 1 union select 2")
        assert [row[0] for row in cursor] == [1, 2]
    cursor.execute("select 3")
    assert cursor.__next__() == (3,)
    assert next(cursor, None) is None
    try:
        sqlite3.Cursor(1)
    except TypeError as error:
        print(error)
"""


def iterators_of_a_comprehension():
    """How many it asks for: newer CPythons of 3.13 ask the iterator for its own."""
    asked = []

    class Empty:
        def __iter__(self):
            asked.append(self)
            return self

        def __next__(self):
            raise StopIteration

    made = [each for each in Empty()]  # noqa: C416
    assert made == []
    return len(asked)


def test_slots_are_caught_in_subclasses_made_before_and_after_and_through_super(recorded):
    done = recorded(SLOTS)

    assert done.stderr == ""
    assert len(done.events("next")) == 4 * 3 + 2
    assert len(done.events("iter")) == 4 * iterators_of_a_comprehension()
    assert [event.error != 0 for event in done.events("init")] == [False] * 4 + [True]
    assert not any(event.error for event in done.events("next"))


def test_slots_of_subclasses_made_meanwhile_are_put_back(recorded):
    done = recorded(SLOTS + """
    assert shims.end() == 0
    for kind in (sqlite3.Cursor, Before, BeforePlain, After):
        cursor = kind(connection)
        cursor.execute("select 1 union select 2")
        assert [row[0] for row in cursor] == [1, 2]
    import ctypes
    def slot_values(kind):
        return bytes((ctypes.c_char * type.__basicsize__).from_address(id(kind)))
    fresh = type("Fresh", (sqlite3.Cursor,), {})
    place = 27 * 8  # tp_iternext
    same = {slot_values(kind)[place:place + 8] for kind in (sqlite3.Cursor, BeforePlain, After, fresh)}
    print(len(same))
    """)

    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "1"
    assert len(done.events("next")) == 4 * 3 + 2


def test_the_undo_leaves_every_definition_as_it_was(recorded):
    done = recorded(f"""
        {DEFINITIONS.replace(chr(10), chr(10) + " " * 8)}
        import _imp, _thread, os, sqlite3, time
        from interpose.library import Intrinsic
        watched = [os.write, os._exit, time.sleep, sqlite3.Cursor.execute, _imp.release_lock, _thread.get_ident]
        before = [definition(each).function for each in watched]
        record(Intrinsic("os.write", "posix:write", "file"), Intrinsic("sleep", "time:sleep", "sleep"),
               Intrinsic("execute", "_sqlite3:Cursor.execute", "db"))
        during = [definition(each).function for each in watched]
        left = shims.end()
        after = [definition(each).function for each in watched]
        time.sleep(0)
        print(left, all(a != b for a, b in zip(before, during)), before == after)
    """)

    assert done.stderr == ""
    assert done.stdout == "0 True True\n"
    assert done.events() == []


def test_what_somebody_put_upon_ours_stays(recorded):
    done = recorded(f"""
        {DEFINITIONS.replace(chr(10), chr(10) + " " * 8)}
        import time
        from interpose.library import Intrinsic
        record(Intrinsic("sleep", "time:sleep", "sleep"))
        prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object)
        ours = prototype(definition(time.sleep).function)
        theirs = prototype(lambda module, argument: ours(module, argument))
        definition(time.sleep).function = ctypes.cast(theirs, ctypes.c_void_p).value
        time.sleep(0)
        print(shims.end())
        time.sleep(0)
    """)

    assert done.stderr == ""
    assert done.stdout == "1\n"
    assert len(done.events("sleep")) == 1


def test_early_bound_inherited_and_specialised_calls_are_all_caught(traced):
    done = traced("""
        from time import sleep as early
        import os, sqlite3, sys, time
        connection = sqlite3.connect(":memory:")
        class Own(sqlite3.Cursor):
            def execute(self, *arguments):
                return super().execute(*arguments)
        bound, plain = connection.cursor().execute, connection.cursor(Own)
        for turn in range(1000):
            early(0)
            bound("select 1")
            plain.execute("select ?", (turn,))
            sqlite3.Cursor.execute(plain, "select 2")
        list(map(time.sleep, [0] * 100))
    """)

    assert done.stderr == ""
    assert len(done.events("time.sleep")) == 1100
    assert len(done.events("sqlite3.Cursor.execute")) == 3000


def test_a_program_sees_the_same_functions_types_and_errors(traced):
    source = """
        import copyreg, inspect, os, pickle, sqlite3, sys, time, traceback, warnings
        for each in (os.write, time.sleep, sqlite3.Cursor.execute):
            print(type(each), repr(each), each.__doc__, getattr(each, "__text_signature__", None), each.__qualname__)
            print(each == pickle.loads(pickle.dumps(each)) if each is not sqlite3.Cursor.execute else "")
        print(inspect.signature(os.write), sqlite3.Cursor.__mro__, sqlite3.Cursor.__subclasses__())
        for call in (lambda: os.write("x", b""), lambda: os.write(77, b""), lambda: time.sleep(-1), time.sleep,
                     lambda: sqlite3.connect(":memory:").cursor().execute("nonsense")):
            try:
                call()
            except Exception as error:
                print(type(error), error, getattr(error, "errno", None))
                print([frame.name for frame in traceback.extract_tb(error.__traceback__)], error.__context__)
        def here():
            warnings.warn("look", stacklevel=2)
        connection = sqlite3.connect(":memory:")
        connection.create_function("here", 0, here)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            connection.cursor().execute("select here()")
        print([(os.path.basename(each.filename), each.lineno) for each in seen])
    """
    on = traced(source)
    off = traced(source, INTERPOSE="0")

    assert normal(on.stdout) == normal(off.stdout)
    assert on.stderr == off.stderr
    assert len(on.events()) > 3


def normal(text):
    """The text without addresses."""
    import re

    return re.sub(r"0x[0-9a-f]+", "0x", text)


def test_a_stub_pool_that_is_full_is_listed_and_the_rest_works(recorded):
    done = recorded("""
        import posix, time
        from interpose.library import Intrinsic
        names = [n for n in dir(posix) if type(getattr(posix, n)).__name__ == "builtin_function_or_method"]
        many = [Intrinsic(n, "posix:" + n, "file") for n in names]
        record(*many, Intrinsic("absent", "posix:no_such_function", "file"), Intrinsic("sleep", "time:sleep", "sleep"))
        time.sleep(0)
    """)
    with open(done.path + "/map.xml") as file:
        listed = file.read()

    assert done.stderr == ""
    assert 'name="absent" kind="file" library="test" by="" installed="0" why="this Python has no such name"' in listed
    assert len(done.events("sleep")) == 1


def test_calls_inside_calls_know_their_parent_and_no_time_counts_twice(traced):
    done = traced("""
        import sqlite3, time
        connection = sqlite3.connect(":memory:")
        connection.create_function("nap", 0, lambda: time.sleep(0.01) or 1)
        connection.cursor().execute("select nap(), nap()")
    """)
    (outer,) = done.events("sqlite3.Cursor.execute")
    inner = done.events("time.sleep")

    assert [event.parent for event in inner] == [outer.call] * 2
    assert outer.inner_wall_ns == sum(event.wall_ns for event in inner)
    assert outer.inner_cpu_ns == sum(event.cpu_ns for event in inner)
    assert outer.wall_ns >= outer.inner_wall_ns >= 20_000_000


def test_a_call_says_what_cpu_time_its_thread_had_when_it_began(traced):
    done = traced("""
        import os, threading, time
        def work():
            for seconds in (0, 0.02, 0):
                until = time.thread_time() + seconds
                while time.thread_time() < until:
                    pass
                before = time.thread_time_ns()
                time.sleep(0.01)
                os.write(1, b"%d %d\\n" % (before, time.thread_time_ns()))
        work()
        other = threading.Thread(target=work)
        other.start()
        other.join()
    """)
    said = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    slept, written = done.events("time.sleep"), done.events("os.write")

    within_ns = 2e6  # the program reads another clock than we do
    for (before, after), sleep, write in zip(said, slept, written, strict=True):
        assert before - within_ns <= sleep.start_cpu_ns <= after + within_ns
        assert sleep.start_cpu_ns + sleep.cpu_ns <= write.start_cpu_ns <= after + 2 * within_ns
    assert slept[1].start_cpu_ns - written[0].start_cpu_ns >= 20e6 - within_ns
    assert slept[3].start_cpu_ns < slept[2].start_cpu_ns  # each thread has its own


def test_calls_that_are_too_deep_are_counted_as_dropped(traced):
    done = traced("""
        import sqlite3
        connection = sqlite3.connect(":memory:")
        def deeper(left):
            if left:
                connection.cursor().execute("select deeper(?)", (left - 1,))
            return left
        connection.create_function("deeper", 1, deeper)
        connection.cursor().execute("select deeper(58)")
    """)
    (thread,) = done.experiment.founder.threads

    assert done.stderr == ""
    assert thread.record.made == thread.record.recorded + thread.record.dropped
    assert thread.record.dropped == 20
    assert len(done.events("sqlite3.Cursor.execute")) == 39


def test_sites_and_functions_are_right_also_when_code_is_short_lived(traced):
    done = traced("""
        import os, time
        def named():
            time.sleep(0)
        named()
        for turn in range(2000):
            exec(compile(f"def made_{turn}():\\n" + "\\n" * (turn % 7) + " time.sleep(0)\\n", f"f{turn}.py", "exec"))
            eval(f"made_{turn}()")
            del globals()[f"made_{turn}"]
    """)
    founder = done.experiment.founder
    places = [next(iter(founder.frames(event.stack))) for event in done.events("time.sleep")]

    assert (places[0].file.endswith("program.py"), places[0].line, places[0].function) == (True, 4, "named")
    for turn, place in enumerate(places[1:]):
        assert (place.file, place.line, place.function) == (f"f{turn}.py", 2 + turn % 7, f"made_{turn}")
    assert len(places) == 2001


def test_a_stack_goes_from_the_call_to_the_first_own_line(traced):
    source = """
        import subprocess, tempfile, time, shutil, sched
        timer = sched.scheduler(time.time, time.sleep)
        timer.enter(0.001, 1, print, ("done",))
        def own():
            timer.run()
        own()
    """
    done = traced(source, INTERPOSE_STACK_ABOVE="off")
    founder = done.experiment.founder
    frames = list(founder.frames(done.events("time.sleep")[0].stack))

    assert [frame.function for frame in frames] == ["scheduler.run", "own"]
    assert [frame.own for frame in frames] == [False, True]


def test_a_long_call_keeps_the_whole_stack(traced):
    source = """
        import time
        def inner():
            time.sleep(0.03)
        def outer():
            inner()
        outer()
    """
    whole, short = traced(source), traced(source, INTERPOSE_STACK_ABOVE="1s")

    def functions(done):
        return [frame.function for frame in done.experiment.founder.frames(done.events("time.sleep")[0].stack)]

    assert functions(whole) == ["inner", "outer", "<module>"]
    assert functions(short) == ["inner"]


def test_no_stack_is_kept_when_none_is_wanted(traced):
    done = traced("import time; time.sleep(0.02)", INTERPOSE_STACK="none")

    assert {event.stack for event in done.events()} == {0}


def test_errors_are_named_with_their_number(traced):
    done = traced("""
        import os, sqlite3
        try:
            os.write(77, b"x")
        except OSError as error:
            assert error.errno == 9
        try:
            sqlite3.connect(":memory:").cursor().execute("select * from nowhere")
        except sqlite3.OperationalError:
            pass
    """)
    founder = done.experiment.founder

    for name, error in ("os.write", "OSError errno 9"), ("sqlite3.Cursor.execute", "OperationalError"):
        assert [founder.string(event.error) for event in done.events(name)] == [error]


def test_bytes_and_details_are_kept_without_literals_or_values(traced):
    done = traced("""
        import os, sqlite3
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.write(nothing, b"payload-canary")
        cursor = sqlite3.connect(":memory:").cursor()
        cursor.execute("create table t (name)")
        cursor.execute("insert into t values ('literal-canary')")
        cursor.execute("insert into t values (?)", ("value-canary",))
        cursor.execute("select 'literal-canary', 12345678, x'0badcafe' -- comment-canary")
        cursor.execute("select \\"name\\" from t where name = \\"quoted-canary\\"")
    """)
    founder = done.experiment.founder
    details = [founder.string(event.detail) for event in done.events("sqlite3.Cursor.execute")]
    (write,) = done.events("os.write")

    assert details[1:4] == ["insert into t values (?)", "insert into t values (?)", "select ?, ?, ?"]
    assert write.bytes == 14
    assert founder.string(write.detail) == os.devnull
    for place in ("strings", "events", "log.xml", "map.xml", "threads"):
        with open(f"{done.path}/{place}", "rb") as file:
            data = file.read()
        assert b"canary" not in data
        assert b"12345678" not in data
        assert b"0badcafe" not in data
