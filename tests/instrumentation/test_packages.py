"""Functions, methods and classes of packages, interposed with wrapt: all calls are caught, nothing else is changed."""

import pytest
from packaged import make_package

NAMES = """
    plain fail outer inner shown caller Base.__init__ Base.method Base.of_class Base.static Derived.method
    Derived.inherited Made Base.computed Empty
"""

BEGIN = """
    from interpose.library import Intrinsic
    def begin():
        if sys.argv[1] == "on":
            record(*[Intrinsic(name, "shapes.things:" + name, "net") for name in NAMES])
"""


@pytest.fixture
def both(tmp_path, recorded):
    """Run a program with a package interposed and without, and give the former; what both said must be the same."""
    make_package(tmp_path)

    def run(source, names=NAMES):
        off, on = (recorded(f"    NAMES = {names.split()!r}" + BEGIN + source, word) for word in ("off", "on"))
        assert off.stderr == on.stderr == ""
        assert on.stdout == off.stdout
        assert on.stdout
        return on

    return run


def test_calls_are_caught_by_their_kind_of_binding(both):
    done = both("""
    begin()
    import shapes
    from shapes.things import Base, Derived, Made, caller, outer, plain, shown
    base, derived = Base("one"), Derived()
    print(plain(1), shapes.plain(1, 2, 3, c=4, d=5), plain(*[1], **{"c": 2}), shown(1), caller(2), outer("x"))
    print(base.method(), base.method(more=2), derived.method(3), Base.method(base), super(Derived, derived).method())
    print(Base.of_class(), derived.of_class(2), Base.static(), base.static(more=3), derived.inherited(), Made(5).number)
    early = base.method
    print([early(turn)[1] for turn in range(3)], list(map(plain, [1, 2])))
    """)
    founder = done.experiment.founder
    counts = {name: len(done.events(name)) for name in NAMES.split()}

    assert counts == {
        "plain": 5, "fail": 0, "outer": 1, "inner": 1, "shown": 1, "caller": 1, "Base.__init__": 2, "Base.method": 8,
        "Base.of_class": 2, "Base.static": 2, "Derived.method": 1, "Derived.inherited": 1, "Made": 1,
        "Base.computed": 0, "Empty": 0,
    }  # fmt: skip
    assert {founder.intrinsic(event.intrinsic).by for event in done.events()} == {"wrapt"}
    assert founder.not_interposed == {
        "Base.computed": "it cannot be called",
        "Empty": "its instances are initialised by nothing of its own",
    }


def test_functions_and_classes_are_what_they_were(both):
    both("""
    import copy, functools, inspect, pickle, types, weakref
    begin()
    from shapes import things
    for function in (things.plain, things.shown, things.Base.method, things.Base.__init__, things.Base.static):
        print(isinstance(function, types.FunctionType), inspect.isfunction(function), callable(function))
        print(inspect.iscoroutinefunction(function), inspect.signature(function), inspect.getfullargspec(function).args)
        print(function.__name__, function.__qualname__, function.__module__, function.__doc__, repr(function)[:20])
        print(function.__defaults__, function.__kwdefaults__, function.__code__.co_name, function.__annotations__)
        print([pickle.loads(pickle.dumps(function, protocol)) is function for protocol in range(6)])
        print(pickle._loads(pickle._dumps(function)) is function, copy.deepcopy([function])[0] is function)
        print(copy.copy(function) is function, weakref.ref(function)() is function, {function: 1}[function])
        print(functools.wraps(function)(lambda: 0).__name__, inspect.getsource(function)[:20])
    base = things.Derived("n")
    print(things.Base.method is things.Base.method, base.method == base.method, base.method is base.method)
    print(type(base.method).__name__, base.method.__self__ is base, base.method.__func__ is things.Derived.method)
    print(weakref.WeakMethod(base.method)()(4), inspect.ismethod(base.method), inspect.ismethod(things.Base.of_class))
    print(pickle.loads(pickle.dumps(base.method)).__self__.name, pickle.loads(pickle.dumps(base)).name)
    print(type(vars(things.Base)["of_class"]).__name__, type(vars(things.Base)["static"]).__name__)
    print(things.Base.of_class.__self__ is things.Base, things.Derived.of_class.__self__ is things.Derived)
    print(type(things.Base), isinstance(base, things.Base), issubclass(things.Derived, things.Base), things.Base)
    print(inspect.signature(things.Base), inspect.signature(base.method), inspect.signature(things.Base.of_class))
    class Own(things.Derived):
        plain = things.plain
        def __init__(self):
            super().__init__("own")
        def method(self, more=1):
            return "own", super().method(more)
    own = Own()
    print(own.method(2), own.plain()[0] is own, own.static(), Own.of_class(), Own.__mro__[1:])
    print([name for name, _ in inspect.getmembers(things.Base, inspect.isfunction)], sorted(vars(things.Base)))
    print([name for name, _ in inspect.getmembers(base, inspect.ismethod)])
    for bad in (lambda: things.plain(), lambda: base.method(1, 2), lambda: things.Base.method(),
                lambda: things.fail("x")):
        try:
            bad()
        except Exception as error:
            print(type(error).__name__, error, error.__traceback__.tb_next.tb_frame.f_code.co_name)
    things.plain.kept = 1
    print(vars(things.plain), things.plain.kept)
    """, NAMES.replace("Derived.inherited", ""))  # fmt: skip


def test_the_undo_leaves_everything_as_it_was(both):
    both("""
    from shapes import things
    owners = {"": things, "Base": things.Base, "Derived": things.Derived}
    before = {name: dict(vars(owner)) for name, owner in owners.items()}
    begin()
    changed = things.plain is not before[""]["plain"]
    print(changed == (sys.argv[1] == "on"))
    print(sys.argv[1] == "off" or shims.end() == 0)
    for name, owner in owners.items():
        print([key for key, value in vars(owner).items() if value is not before[name].get(key) and key != "__doc__"])
        print(set(vars(owner)) == set(before[name]))
    print(things.plain(1), things.Derived().method())
    """)


def test_what_others_have_wrapped_is_wrapped_again_and_not_lost(both):
    done = both("""
    import wrapt
    from shapes import things
    seen = []
    def note(wrapped, instance, arguments, keywords):
        seen.append((type(instance).__name__, arguments))
        return wrapped(*arguments, **keywords)
    wrapt.wrap_function_wrapper(things, "plain", note)
    wrapt.wrap_function_wrapper(things, "Base.method", note)
    wrapt.wrap_function_wrapper(things, "Base.of_class", note)
    things.Base.static = staticmethod(things.decorate(things.Base.static))
    begin()
    wrapt.wrap_function_wrapper(things, "Base.method", note)
    wrapt.wrap_function_wrapper(things, "shown", note)
    base = things.Base()
    print(things.plain(1), base.method(2), things.Base.of_class(), things.Derived().method(), things.shown(3))
    print(things.Base.static(), base.static(2), isinstance(things.plain, wrapt.FunctionWrapper))
    print(seen)
    if sys.argv[1] == "on":
        print(shims.end(), file=open("left", "w"))
    print(base.method(3), things.plain(2), things.shown(4), len(seen))
    """)

    counts = {"plain": 1, "Base.method": 2, "Base.of_class": 1, "Base.static": 2, "shown": 1}
    assert {name: len(done.events(name)) for name in counts} == counts
    assert (done.directory / "left").read_text() == "2\n"


def test_a_module_that_is_dropped_and_imported_again_is_interposed_again(both):
    done = both("""
    import gc, weakref
    begin()
    from shapes import things
    things.plain(1)
    gone = weakref.ref(things.Made), weakref.ref(things)
    del sys.modules["shapes.things"], sys.modules["shapes"], things
    gc.collect()
    from shapes import things
    print(things.plain(2), things.Base().method(), gone[1]() is None)
    """)

    assert len(done.events("plain")) == 2
    assert len(done.events("Base.method")) == 1


def test_nothing_of_wrapt_is_imported_that_is_not_needed(both):
    done = both("""
    begin()
    before = set(sys.modules)
    from shapes.things import plain
    print(sorted(name for name in set(sys.modules) - before if not name.startswith("wrapt")))
    if sys.argv[1] == "on":
        print(sorted(name for name in sys.modules if name.startswith("wrapt")), file=open("names", "w"))
    own = sys.modules.get("wrapt._wrappers")
    import wrapt
    print(plain(1), own is None or wrapt.FunctionWrapper is own.FunctionWrapper)
    """)

    assert "'wrapt'" not in (done.directory / "names").read_text()
    assert not [detail for detail in done.details() if "wrapt" in detail]
    assert len(done.events("plain")) == 1


@pytest.mark.parametrize("variable", ["", "import os; os.environ['WRAPT_DISABLE_EXTENSIONS'] = '1'"])
def test_where_the_program_has_imported_wrapt_itself(variable, both):
    done = both(f"""
    {variable}
    import wrapt
    begin()
    from shapes import things
    print(things.plain(1), things.Base().method(), things.Base.static(), things.Base.of_class(), things.caller(1))
    assert isinstance(things.plain, wrapt.FunctionWrapper) == (sys.argv[1] == "on")
    print(sys.argv[1] == "off" or shims.end() == 0)
    print(things.plain(1), things.Base().method())
    """)

    assert [len(done.events(name)) for name in ("plain", "Base.method", "Base.static", "caller")] == [1] * 4


def test_events_know_their_outer_call_and_their_error(both):
    done = both("""
    begin()
    from shapes import things
    things.outer("x")
    try:
        things.fail("secret")
    except ValueError as error:
        print(error)
    """)
    (outer,), (inner,), (failed,) = (done.events(name) for name in ("outer", "inner", "fail"))

    assert inner.parent == outer.call
    assert outer.inner_wall_ns == inner.wall_ns
    assert done.experiment.founder.string(failed.error) == "ValueError"


DETAILS = """
    from interpose.library import Intrinsic
    def begin(method, **what):
        record(Intrinsic(method, "shapes.things:Base." + method, "net", **what))
        from shapes import things
        return getattr(things.Base(), method), things
"""


@pytest.fixture
def details(tmp_path, recorded):
    """Run a program that interposes one method and gives what was kept of its calls."""
    make_package(tmp_path)

    def run(source):
        done = recorded(DETAILS + source)
        assert done.stderr == ""
        return done.details()

    return run


def test_a_statement_is_kept_without_its_literals_also_where_it_is_given_by_name(details):
    kept = details("""
    execute, things = begin("execute", detail="statement", keyword="statement")
    execute("select * from t where name = 'secret'")
    execute(statement="select 1")
    execute("select 2", 5)
    """)

    assert kept == ["select * from t where name = ?", "select ?", "select ?"]


def test_of_a_command_only_its_name_is_kept(details):
    kept = details("""
    execute, things = begin("execute", detail="word")
    for words in (("GET", "secret"), ("SET secret value",), (b"HGETALL", b"secret"), ("=secret",), (5,), ("x" * 100,)):
        execute(*words)
    """)

    assert kept == ["GET", "SET", "HGETALL", "", "", ""]


def test_a_url_is_kept_without_its_secrets(details):
    kept = details("""
    execute, things = begin("execute", detail="url")
    for url in ("http://user:secret@host:81/a/b?key=secret#secret", "https://host", "//u:secret@host/x",
                "/a;s=secret/b", "http://host?secret",
                "http://a@b:secret@host/", b"http://u:secret@host/x?y", "host/path", "",
                "http://h\\xf6st/\\u20ac?q", None, "mailto:x", "http://u:sec/ret@host/a"):
        execute(url)
    """)

    assert kept == [
        "http://host:81/a/b", "https://host", "//host/x", "/a/b", "http://host", "http://host/", "http://host/x",
        "host/path", "", "http://h\xf6st/\u20ac", "", "mailto:x", "http://host/a",
    ]  # fmt: skip


def test_a_request_is_kept_from_plain_attributes_and_no_code_is_run(details):
    kept = details("""
    fetch, things = begin("fetch", detail="request", attribute="method url")
    class Kept:
        def __init__(self, method, url):
            self.method, self.url = method, url
        def __getattr__(self, name):
            print("asked for", name)
            raise AttributeError(name)
    class Computed:
        method = "GET"
        @property
        def url(self):
            print("computed")
            return "http://computed/"
    class Nothing(Kept):
        def __init__(self):
            self.method = "GET"
    for request in (Kept("GET", "http://u:p@host/x?y"), things.Slotted("POST", "https://host/y"), Computed(),
                    Nothing()):
        fetch(request)
    """)

    assert kept == ["GET http://host/x", "POST https://host/y", "", ""]


RESULTS = """
import collections

class Reply:
    def __init__(self, method, url):
        self.method, self.url = method, url

def answer(given):
    if isinstance(given, Exception):
        raise given
    return given

async def answer_later(given):
    return answer(given)
"""


@pytest.fixture
def results(tmp_path, recorded):
    """What was kept of the results that `answer` and `answer_later` gave."""
    make_package(tmp_path, results=RESULTS)

    def run(given, by="", **what):
        done = recorded(f"""
    import asyncio, contextlib, pathlib
    from interpose.library import Intrinsic
    what = dict({what!r}, argument="result", by={by!r})
    record(*[Intrinsic(name, "shapes.results:" + name, "net", **what) for name in ("answer", "answer_later")])
    from shapes.results import Reply, answer, answer_later
    for given in {given}:
        for call in (lambda: answer(given), lambda: asyncio.run(answer_later(given))):
            try:
                assert call() is given
            except ValueError:
                pass
    """).ended_well()
        founder = done.experiment.founder
        plain, later = (done.events(name) for name in ("answer", "answer_later"))
        calls = [[founder.string(event.detail) for event in events if not event.parent] for events in (plain, later)]
        assert calls[0] == calls[1]
        return calls[0]

    return run


@pytest.mark.parametrize("by", ["", "function"])
def test_what_is_kept_may_be_of_the_result(results, by):
    kept = results("('select * from t where x = 5', b'insert into t values (1)', None, 5, ValueError())",
                   detail="statement", by=by)  # fmt: skip

    assert kept == ["select * from t where x = ?", "insert into t values (?)", "", "", ""]


@pytest.mark.parametrize(
    ("detail", "attribute", "given", "kept"),
    [
        ("path", "", "('/a/b', b'/a/c', None)", ["/a/b", "/a/c", ""]),
        ("address", "", "(('host', 80), '/run/it', 5)", ["host:80", "/run/it", ""]),
        ("word", "", "('GET hush', b'SET')", ["GET", "SET"]),
        ("url", "", "('http://u:hush@host/a?hush', None)", ["http://host/a", ""]),
        ("url", "", "('http://hush:12?hush@host/', 'http://host:80/@a', 'http://u:12#hush@h')",
         ["http://host/", "http://host:80/@a", "http://h"]),
        ("database", "", "('file:a.db?key=hush', 'x://u:hush@h/d', '/y=1/a.db')", ["file:a.db", "", "/y=1/a.db"]),
        ("dsn", "", "('host=h dbname=d password=hush', None)", ["h/d", ""]),
        ("request", "method url", "(Reply('GET', 'http://u:hush@host/a?hush'), Reply(5, 6), None, ValueError())",
         ["GET http://host/a", "", "", ""]),
        ("path", "method", "(Reply('/a/b', 1), 5)", ["/a/b", ""]),
    ],
)  # fmt: skip
def test_what_is_kept_of_a_result_is_kept_as_of_an_argument(results, detail, attribute, given, kept):
    assert results(given, detail=detail, attribute=attribute) == kept


def test_a_statement_is_read_by_its_drivers_dialect_also_where_another_had_the_same_text(recorded, tmp_path):
    dialects = ("mysql", "sqlite", "postgresql", "oracle")
    (tmp_path / "drivers.py").write_text("".join(f"def {each}(sql): pass\n" for each in (*dialects, "other")))

    done = recorded(f"""
    import drivers
    from interpose.library import Intrinsic
    ours = [Intrinsic(each, "drivers:" + each, "db", detail=each + "_statement") for each in {dialects!r}]
    record(*ours, Intrinsic("other", "drivers:other", "db", detail="statement"))
    sql = 'select "a" from "b"'
    for call in (drivers.sqlite, drivers.mysql, drivers.postgresql, drivers.oracle, drivers.other) * 2:
        call(sql)
        call(sql.encode())
    """).ended_well()

    assert set(done.details("mysql")) == set(done.details("other")) == {"select ? from ?"}
    assert set(done.details("sqlite")) == {'select ? from "b"'}
    assert set(done.details("postgresql")) == set(done.details("oracle")) == {'select "a" from "b"'}


CONNECTING = """
    from interpose.library import Intrinsic
    record(Intrinsic("connect", "drivers:connect", "db", detail={detail!r}))
    from drivers import connect
    connect({arguments})
"""


@pytest.mark.parametrize(
    ("detail", "arguments", "kept"),
    [
        ("dsn", "dbname='postgresql://u:hush@h:5/d'", "h/d"),
        ("dsn", "database='host=h password=hush dbname=d'", "h/d"),
        ("dsn", "'dbname=postgresql://u:hush@h/d host=k'", "k/"),
        ("dsn", "'postgresql://u:x@h/d;password=hush'", "h/"),
        ("dsn", "'postgresql://u:x@h/d#hush'", "h/"),
        ("dsn", "host='u:hush,hush@h', dbname='d'", "[local]/d"),
        ("dsn", "host='postgresql://u:hush@h/d', dbname='e'", "[local]/e"),
        ("dsn", "database='scott/hush@d', host='h'", "h/"),
        ("dsn", "host='h1:1,h2:2', dbname='d'", "h1,h2/d"),
        ("server", "'h', 'u', 'p', 'mysql://u:hush@k/d'", "k/d"),
        ("server", "'h', 'u', 'p', 'password=hush'", "h/"),
        ("server", "'u:hush@h', 'u', 'p', 'd'", "[local]/d"),
        ("server", "host='h', database='mysql://u:hush@k/d?password=hush'", "k/d"),
    ],
)
def test_of_a_connection_string_in_the_place_of_a_name_no_password_is_kept(recorded, tmp_path, detail, arguments, kept):
    (tmp_path / "drivers.py").write_text("def connect(*arguments, **names): pass\n")

    done = recorded(CONNECTING.format(detail=detail, arguments=arguments)).ended_well()

    assert done.details("connect") == [kept]


@pytest.mark.parametrize("what", [
    'detail="path", argument="results"', 'detail="served", argument="result"', 'detail="path", argument=-1',
    'detail="path", argument=254', 'detail="path", argument=1.5', 'detail="path", argument=10**30',
])  # fmt: skip
def test_an_argument_that_is_none_is_listed_and_the_rest_is_recorded(recorded_beside, what):
    done = recorded_beside(f'"sleep", {what}')
    word = what.rpartition("=")[2].strip('"').replace("10**30", "1" + "0" * 30)

    assert word in done.experiment.founder.not_interposed["bad"]


def test_functions_that_cython_compiled_are_interposed_in_place(recorded):
    done = recorded("""
    import pickle
    from interpose.experiments.maintenance import space
    from interpose.library import Intrinsic
    early = space.is_local
    print(type(space.is_local).__name__)
    record(Intrinsic("is_local", "interpose.experiments.maintenance.space:is_local", "file"))
    for call in (space.is_local, early):
        print(call(0) in (True, False), call(descriptor=0) in (True, False))
        try:
            call()
        except TypeError as error:
            print(error)
    print(early is space.is_local, pickle.loads(pickle.dumps(early)) is early, type(early).__name__)
    print(shims.end())
    """)
    founder = done.experiment.founder

    said = done.stdout.splitlines()
    assert [said[0], said[-2], said[-1]] == [
        "cython_function_or_method", "True True cython_function_or_method", "0"
    ]  # fmt: skip
    assert said[1] == said[3] == "True True"
    assert "argument" in said[2] and said[2] == said[4]
    assert {founder.intrinsic(event.intrinsic).by for event in done.events()} == {"method table"}
    assert len(done.events("is_local")) == 6
