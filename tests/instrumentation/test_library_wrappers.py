"""Wrappers that a library gives: what they call is resolved behind them, and what goes wrong in them stays theirs."""

import pytest

from tests.instrumentation.test_libraries import Place, failures, place

__all__ = ["place"]

HEAD = "from interpose.library import Intrinsic\n"
WRAPPER = "def wrapper(wrapped, instance, args, kwargs):\n"
ON = "wrapped(*args, **kwargs)"
PASSING = f"{WRAPPER}    return {ON}\n"
DECLARED = """
INTRINSICS = [
    Intrinsic("shop.Client.get", "shop.db:Client.get", "db", wrapper=wrapper),
    Intrinsic("shop.Client.fails", "shop.db:Client.fails", "db", wrapper=wrapper),
    Intrinsic("shop.Client.nothing", "shop.db:Client.nothing", "db", wrapper=wrapper),
    Intrinsic("os.getcwd", "os:getcwd", "file", wrapper=wrapper),
]
"""
# Calls all of them, and tells what the program sees of each.
CALLING = """
import os, traceback
import shop.db
shop.db.Client.calls = 0
client = shop.db.Client()
print(client.get(4), client.get(key=5), client.nothing(), os.getcwd() == os.path.dirname(os.path.abspath(__file__)))
try:
    client.fails()
except ValueError as error:
    print(error, [frame.name for frame in traceback.extract_tb(error.__traceback__)], error.__context__)
print("end")
"""
AS_WITHOUT = ["8 10 None True", "original ['<module>', 'fails'] None", "end"]


def with_wrapper(place: Place, wrapper: str, declared: str = DECLARED):
    place.write(place.group / "orders.py", HEAD + wrapper + declared)


@pytest.mark.parametrize(
    ("wrapper", "why"),
    [
        (f"{WRAPPER}    raise RuntimeError('mine')\n", "its wrapper raised RuntimeError"),
        (f"{WRAPPER}    raise SystemExit(3)\n", "its wrapper raised SystemExit"),
        (f"{WRAPPER}    raise GeneratorExit\n", "its wrapper raised GeneratorExit"),
        (f"class Stop(BaseException):\n    pass\n{WRAPPER}    raise Stop\n", "its wrapper raised Stop"),
        (f"{WRAPPER}    return wrapper(wrapped, instance, args, kwargs)\n", "its wrapper raised RecursionError"),
        (f"{WRAPPER}    args[0], kwargs.clear()\n    kwargs['key']\n", "its wrapper raised"),
        ("def wrapper(wrapped):\n    pass\n", "its wrapper raised TypeError"),
        (f"{WRAPPER}    pass\n", "its wrapper neither called the function nor returned a value"),
    ],
)
def test_a_wrapper_that_fails_before_the_original_leaves_it_to_be_called(place, wrapper, why):
    with_wrapper(place, wrapper)

    done = place.program(CALLING)

    assert (done.stdout.splitlines(), done.stderr) == (AS_WITHOUT, "")
    assert failures(done)
    assert all(each.startswith(why) for _, _, each in failures(done))


def test_a_generator_is_no_wrapper_of_a_plain_function(place):
    with_wrapper(place, f"{WRAPPER}    yield {ON}\n")

    done = place.program(CALLING)

    assert (done.stdout.splitlines(), done.stderr) == (AS_WITHOUT, "")
    assert set(done.experiment.founder.not_interposed.values()) == {"its wrapper is a generator, and it is none"}


def test_a_wrapper_whose_attributes_cannot_be_asked_for_is_one_all_the_same(place):
    with_wrapper(place, """
class Wrapper:
    def __call__(self, wrapped, instance, args, kwargs):
        return wrapped(*args, **kwargs)
    def __getattr__(self, name):
        raise RuntimeError(name)
wrapper = Wrapper()
""")

    done = place.program(CALLING)

    assert (done.stdout.splitlines(), done.stderr) == (AS_WITHOUT, "")
    assert failures(done) == []
    assert len(done.events("shop.Client.get")) == 2


@pytest.mark.parametrize(
    ("wrapper", "why"),
    [
        (f"{WRAPPER}    {ON}\n", "its wrapper returned nothing"),
        (f"{WRAPPER}    {ON}\n    return 1 / 0\n", "its wrapper raised ZeroDivisionError"),
        (f"{WRAPPER}    try:\n        {ON}\n    finally:\n        [][1]\n", "its wrapper raised IndexError"),
        (
            f"{WRAPPER}    try:\n        {ON}\n    except ValueError:\n        return None\n",
            "its wrapper caught an exception and returned nothing",
        ),
    ],
)
def test_one_that_fails_after_it_leaves_what_it_did(place, wrapper, why):
    place.write(place.project / "shop" / "db.py", (place.project / "shop" / "db.py").read_text().replace(
        "return key * 2", "print('called'); return key * 2"
    ))  # fmt: skip
    with_wrapper(place, wrapper)

    done = place.program(CALLING)

    assert (done.stdout.splitlines(), done.stderr) == (["called", "called", *AS_WITHOUT], "")
    assert why in {each for _, _, each in failures(done)}


def test_each_failure_is_noted_once_with_its_line(place):
    with_wrapper(place, f"\n{WRAPPER}    return 1 / 0\n")

    done = place.program(CALLING + CALLING)

    assert done.stdout.splitlines() == AS_WITHOUT * 2
    targets = ["shop.db:Client.get", "shop.db:Client.nothing", "os:getcwd", "shop.db:Client.fails"]
    why = "its wrapper raised ZeroDivisionError"
    assert sorted(failures(done)) == sorted((each, "orders.py:4", why) for each in targets)


def test_a_library_may_say_that_its_errors_and_its_nothing_are_the_programs(place):
    with_wrapper(
        place,
        "def raising(wrapped, instance, args, kwargs):\n    raise LookupError('mine')\n"
        "def nothing(wrapped, instance, args, kwargs):\n    return None\n",
        """
INTRINSICS = [
    Intrinsic("shop.Client.get", "shop.db:Client.get", "db", wrapper=raising, raises=True),
    Intrinsic("shop.plain", "shop.db:plain", "db", wrapper=nothing, overrides=True),
]
""",
    )

    done = place.program("""
        from shop.db import Client, plain
        print(plain(3))
        try:
            Client().get(1)
        except LookupError as error:
            print(error)
    """)

    assert (done.stdout, done.stderr) == ("None\nmine\n", "")
    assert failures(done) == []


def test_what_a_wrapper_gives_is_what_the_program_sees(place):
    with_wrapper(place, f"{WRAPPER}    return (type(instance).__name__, args, kwargs)\n")

    done = place.program("import shop.db, os\nprint(shop.db.Client().get(1), shop.db.Client().get(key=2), os.getcwd())")

    assert done.stdout == "('Client', (1,), {}) ('Client', (), {'key': 2}) ('NoneType', (), {})\n"


CALLS_ITSELF = """
import threading
count = [0]

def again(instance, args):
    count[0] += 1
    assert count[0] < 50
    return instance.get(*args)

def wrapper(wrapped, instance, args, kwargs):
    count[0] += 1
    assert count[0] < 50
    import shop.db
    CALL
    return wrapped(*args, **kwargs)

INTRINSICS = [Intrinsic("shop.Client.get", "shop.db:Client.get", "db", wrapper=wrapper)]
"""


@pytest.mark.parametrize(
    "call",
    [
        "instance.get(*args)",
        "shop.db.Client.get(instance, 1)",
        "again(instance, args)",
        "thread = threading.Thread(target=instance.get, args=(1,)); thread.start(); thread.join()",
        "thread = threading.Thread(target=again, args=(instance, args)); thread.start(); thread.join()",
        "instance.program(instance)",
        "instance.pool.submit(lambda: instance.get(1)).result()",
        "[threading.Timer(0.01, instance.get, (1,)).start() for _ in range(3)]",
        "sorted([2, 1], key=instance.get)",
    ],
)
def test_a_wrapper_that_calls_its_own_target_calls_the_original(place, call):
    with_wrapper(place, CALLS_ITSELF.replace("CALL", call), "")

    done = place.program("""
        import concurrent.futures, shop.db
        class Shop(shop.db.Client):
            pool = concurrent.futures.ThreadPoolExecutor()
            def program(self, other):
                return other.get(3)
        shop = Shop()
        shop.pool.submit(int).result()
        print(shop.get(4), shop.get(5), shop.get(6))
    """)

    assert (done.stdout, done.stderr) == ("8 10 12\n", "")
    assert failures(done) == []
    assert len(done.events("shop.Client.get")) == 3


def test_what_the_original_calls_back_is_the_programs_own_again(place):
    place.write(place.project / "shop" / "db.py", """
        class Client:
            def get(self, key):
                return self.get(key - 1) + 1 if key else 0
            def each(self, function):
                return function(3)
    """)
    with_wrapper(place, PASSING, """
INTRINSICS = [
    Intrinsic("shop.Client.each", "shop.db:Client.each", "db", wrapper=wrapper),
    Intrinsic("shop.Client.get", "shop.db:Client.get", "db", wrapper=wrapper),
]
""")  # fmt: skip

    done = place.program("from shop.db import Client\nclient = Client()\nprint(client.each(client.get))")

    assert done.stdout == "3\n"
    assert len(done.events("shop.Client.get")) == 4


def test_what_a_wrapper_calls_of_other_targets_is_resolved_behind_it_and_charged_to_it(place):
    with_wrapper(place, f"import os\n{WRAPPER}    os.getcwd()\n    return {ON}\n", """
INTRINSICS = [
    Intrinsic("shop.Client.get", "shop.db:Client.get", "db", wrapper=wrapper),
    Intrinsic("mine.getcwd", "os:getcwd", "net"),
]
""")  # fmt: skip

    done = place.program("import os\nfrom shop.db import Client\nos.getcwd()\nClient().get(1)")

    founder = done.experiment.founder
    outer = done.events("shop.Client.get")[0]
    assert [event.parent for event in done.events("mine.getcwd")] == [0]
    assert [event.parent for event in done.events("os.getcwd")] == [outer.call]
    assert founder.intrinsic(outer.intrinsic).passes_on == "real"


def test_three_libraries_deep_each_calls_the_next(place):
    text = """
        from interpose.library import Intrinsic
        def wrapper(wrapped, instance, args, kwargs):
            print("NAME", instance.get(100), args)
            return wrapped(args[0] + 1)
        INTRINSICS = [Intrinsic("shop.Client.get", "shop.db:Client.get", "db", wrapper=wrapper)]
    """
    place.write(place.group / "one.py", text.replace("NAME", "one"))
    place.write(place.group / "two.py", text.replace("NAME", "two"))
    place.write(place.account / "three.py", text.replace("NAME", "three"))

    done = place.program("from shop.db import Client\nprint(Client().get(0))")

    # `one` asks for 100: that goes through two, which asks three, and so on, each behind itself.
    assert done.stdout.splitlines() == [
        "three 200 (100,)", "two 202 (100,)", "three 200 (101,)", "one 204 (0,)",
        "three 200 (100,)", "two 202 (1,)", "three 200 (2,)", "6",
    ]  # fmt: skip


def test_c_functions_slots_class_and_static_methods_are_wrapped_as_well(place):
    place.write(place.project / "shop" / "db.py", """
        import functools
        class Client:
            @classmethod
            def make(cls, n): return (cls.__name__, n)
            @staticmethod
            def plus(a, b=1): return a + b
        @functools.lru_cache
        def cached(n): return n
    """)
    with_wrapper(place, """
def wrapper(wrapped, instance, args, kwargs):
    print(type(instance).__name__, args, kwargs)
    return wrapped(*args, **kwargs)

TARGETS = '''shop.db:Client.make shop.db:Client.plus shop.db:cached sqlite3:Cursor.execute sqlite3:Cursor.__next__
    sqlite3:Connection.cursor time:sleep os:getpid os:access math:hypot'''.split()
""", """
INTRINSICS = [Intrinsic(each.replace(":", "."), each, "db", wrapper=wrapper) for each in TARGETS]
""")  # fmt: skip

    done = place.program("""
        import math, os, sqlite3, time
        from shop.db import Client, cached
        print(Client.make(1), Client.plus(1, b=2), cached(3))
        rows = sqlite3.connect(":memory:").cursor().execute("select 1 union select 2")
        print(next(rows), list(rows))
        print(time.sleep(0), os.getpid() > 1, os.access(".", 0, follow_symlinks=True), math.hypot(3, 4))
    """)

    assert done.stderr == ""
    assert done.experiment.founder.not_interposed == {}
    assert done.stdout.splitlines() == [
        "type (1,) {}", "NoneType (1,) {'b': 2}", "NoneType (3,) {}", "('Client', 1) 3 3",
        "Connection () {}", "Cursor ('select 1 union select 2',) {}",
        "Cursor () {}", "Cursor () {}", "Cursor () {}", "(1,) [(2,)]",
        "NoneType (0,) {}", "NoneType () {}", "NoneType ('.', 0) {'follow_symlinks': True}", "NoneType (3, 4) {}",
        "None True True 5.0",
    ]  # fmt: skip


def test_coroutine_functions_have_wrappers_that_are_some_or_none(place):
    place.write(place.project / "shop" / "db.py", """
        import asyncio
        class Client:
            async def get(self, key):
                await asyncio.sleep(0)
                return key * 2
            async def fails(self):
                raise ValueError("original")
            async def plain(self, n):
                return n
            def no_coroutine(self):
                return 1
    """)
    with_wrapper(place, """
async def again(wrapped, instance, args, kwargs):
    await instance.get(1)
    return await wrapped(*args, **kwargs)
async def late(wrapped, instance, args, kwargs):
    await wrapped(*args, **kwargs)
    return 1 / 0
async def early(wrapped, instance, args, kwargs):
    raise RuntimeError
def plain(wrapped, instance, args, kwargs):
    return wrapped(*args, **kwargs)
""", """
INTRINSICS = [
    Intrinsic("shop.Client.get", "shop.db:Client.get", "db", wrapper=again),
    Intrinsic("shop.Client.fails", "shop.db:Client.fails", "db", wrapper=late),
    Intrinsic("shop.Client.plain", "shop.db:Client.plain", "db", wrapper=plain),
    Intrinsic("shop.Client.no_coroutine", "shop.db:Client.no_coroutine", "db", wrapper=early),
]
""")  # fmt: skip

    done = place.program("""
        import asyncio, inspect
        from shop.db import Client
        async def main():
            client = Client()
            print(await asyncio.gather(*[client.get(n) for n in range(3)], client.plain(7)))
            try:
                await client.fails()
            except ValueError as error:
                print(error)
            print(client.no_coroutine(), inspect.iscoroutinefunction(Client.get))
        asyncio.run(main())
    """)

    assert (done.stdout, done.stderr) == ("[0, 2, 4, 7]\noriginal\n1 True\n", "")
    assert done.experiment.founder.not_interposed == {
        "shop.Client.no_coroutine": "its wrapper is a coroutine function, and it is none"
    }


def test_the_functions_stay_what_they_are(place):
    with_wrapper(place, PASSING)

    done = place.program("""
        import inspect, os, pickle
        from shop.db import Client
        def same(function):
            return pickle.loads(pickle.dumps(function)) is function
        print(inspect.signature(Client.get), Client.get.__qualname__, same(Client.get))
        print(isinstance(Client.get, type(lambda: 0)), type(os.getcwd).__name__, same(os.getcwd))
        early = Client().get
        print(early(3))
        try:
            Client().get()
        except TypeError as error:
            print(error)
    """)

    assert done.stdout.splitlines() == [
        "(self, key) Client.get True", "True builtin_function_or_method True", "6",
        "Client.get() missing 1 required positional argument: 'key'",
    ]  # fmt: skip


def test_an_interrupt_reaches_the_program(place):
    with_wrapper(place, f"import signal\n{WRAPPER}    signal.raise_signal(signal.SIGINT)\n    return {ON}\n")

    done = place.program("""
        from shop.db import Client
        try:
            Client().get(1)
        except KeyboardInterrupt:
            print("interrupted")
    """)

    assert done.stdout == "interrupted\n"


def test_the_undo_leaves_everything_as_it_was(recorded):
    done = recorded("""
        import _thread, functools, os, sqlite3, threading, types
        module = types.ModuleType("shop")
        exec("import functools\\ndef plain(n): return n\\n@functools.lru_cache\\ndef cached(n): return n", vars(module))
        sys.modules["shop"] = module
        called = []
        def wrapper(wrapped, instance, args, kwargs):
            called.append(wrapped.__name__)
            return wrapped(*args, **kwargs)
        from interpose.library import Intrinsic
        before = dict(vars(module))
        record(
            Intrinsic("plain", "shop:plain", "db", wrapper=wrapper),
            Intrinsic("cached", "shop:cached", "db", wrapper=wrapper),
            Intrinsic("getpid", "posix:getpid", "db", wrapper=wrapper),
            Intrinsic("next", "_sqlite3:Cursor.__next__", "db", wrapper=wrapper),
        )
        early = module.cached
        connection = sqlite3.connect(":memory:", check_same_thread=False)  # if dropped, a warning is noted
        def calls():
            list(connection.execute("select 1"))
            return module.plain(1), module.cached(2), os.getpid() > 0, early(3)
        print(calls(), called, type(module.cached).__name__)
        print(shims.end())
        called.clear()
        print(calls(), called, vars(module) == before, type(module.plain) is types.FunctionType)
        thread = threading.Thread(target=calls)
        thread.start()
        thread.join()
    """)

    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "(1, 2, True, 3) ['__next__', '__next__', 'plain', 'cached', 'getpid', 'cached'] FunctionWrapper",
        "0",
        "(1, 2, True, 3) ['cached'] True True",
    ]


def test_wrapped_calls_leave_nothing_behind(place):
    with_wrapper(place, f"{WRAPPER}    args[0].seen\n    return {ON}\n", """
INTRINSICS = [
    Intrinsic("shop.Client.get", "shop.db:Client.get", "db", wrapper=wrapper),
    Intrinsic("shop.Client.fails", "shop.db:Client.fails", "db", wrapper=wrapper),
    Intrinsic("math.hypot", "math:hypot", "db", wrapper=wrapper),
]
""")  # fmt: skip

    done = place.program("""
        import gc, math, sys, weakref
        from shop.db import Client
        class Key(float):
            seen = 1
        client = Client()
        def calls():
            for _ in range(1000):
                client.get(Key(2)), math.hypot(Key(3), 4.0)
                for wrong in (lambda: client.fails(Key(1)), lambda: math.hypot(Key(1), "x"), lambda: math.hypot()):
                    try:
                        wrong()
                    except TypeError:
                        pass
        calls()
        gc.collect()
        before = len(gc.get_objects()), sys.getallocatedblocks()
        calls()
        gc.collect()
        after = len(gc.get_objects()), sys.getallocatedblocks()
        print(after[0] - before[0] < 20, after[1] - before[1] < 200)
    """)

    assert (done.stdout, done.stderr) == ("True True\n", "")


def test_threads_at_once_keep_their_libraries_apart(place):
    with_wrapper(place, CALLS_ITSELF.replace("CALL", "instance.get(1)").replace("assert count[0] < 50", ""), "")

    done = place.program("""
        import threading
        from shop.db import Client
        client, found = Client(), []
        def work():
            found.append(sum(client.get(n) for n in range(20)))
        for _ in range(10):
            threads = [threading.Thread(target=work) for _ in range(20)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
        print(set(found), len(found))
    """)

    assert done.stdout == "{380} 200\n"
    assert len(done.events("shop.Client.get")) == 200 * 20
