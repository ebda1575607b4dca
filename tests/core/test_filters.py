"""Filters at the source: what is one, what is none, and which calls each leaves out."""

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracing import events_of

from interpose.config import filters, precedence
from interpose.config.filters import parse

PROGRAM = """
    import os, sqlite3, subprocess, sys, threading, time
    from interpose import transaction
    import interpose
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    def look(path):
        try:
            os.stat(path)
        except FileNotFoundError:
            pass
    def outer():
        look("/in-outer")
        connection.execute("select 1")
    look("/first")
    outer()
    with transaction("checkout"):
        outer()
        time.sleep(0.001)
    child = os.fork()
    if child == 0:
        look("/in-child")
        os._exit(0)
    os.waitpid(child, 0)
    thread = threading.Thread(target=lambda: look("/in-thread"))
    thread.start()
    thread.join()
    interpose.user_event("end")
"""
OURS = ("/first", "/in-outer", "/in-thread", "/in-child", "select ?", "checkout", "end")


def seen(done):
    """What of the program was recorded, by what it was about, of all processes."""
    found = []
    for process in done.experiment.processes:
        for event in events_of(process):
            name, detail = process.intrinsic(event.intrinsic).name, process.string(event.detail)
            found += [detail] if detail in OURS else [name] if name == "time.sleep" else []
    return sorted(found)


STATS = ["/first", "/in-child", "/in-outer", "/in-outer", "/in-thread"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("kind=db", ["select ?"] * 2),
        ("kind=-db,-logic,-sleep", STATS),
        ("event=os.st?t,time.*", [*STATS, "time.sleep"]),
        ("event=D,U", ["end", "select ?", "select ?"]),
        ("event=-os.stat; kind=file,db", ["select ?"] * 2),
        ("function=outer", ["select ?"] * 2),
        ("function=__main__:look", STATS),
        ("within=outer; kind=file", ["/in-outer"] * 2),
        ("within=-outer; kind=file", ["/first", "/in-child", "/in-thread"]),
        ("transaction=checkout", ["/in-outer", "checkout", "select ?", "time.sleep"]),
        ("transaction=-checkout; kind=db", ["checkout", "select ?"]),
        ("module=__main__; kind=db", ["select ?"] * 2),
        ("package=elsewhere.*", []),
        ("module=-__main__; kind=db", []),
        ("line=program.py:13; kind=db", ["select ?"] * 2),
        ("line=1-3,13; kind=db", ["select ?"] * 2),
        ("line=other.py:13", []),
        ("thread=main; kind=file", ["/first", "/in-child", "/in-outer", "/in-outer"]),
        ("thread=2; kind=file", ["/in-thread"]),
        ("process=_f*; kind=file", ["/in-child"]),
        ("process=founder; kind=db,file", ["/first", "/in-outer", "/in-outer", "/in-thread", "select ?", "select ?"]),
        ("kind=db; skip=2", ["select ?"]),
        ("kind=db; skip=1; keep=1", ["select ?"]),
        ("kind=db; keep=2", ["select ?"]),
        ("kind=db; from=1h", []),
        ("kind=db; to=1h", ["select ?"] * 2),
    ],
)
def test_only_what_a_filter_lets_pass_is_recorded(traced, text, left):
    done = traced(PROGRAM, INTERPOSE_FILTER=text).ended_well()

    assert seen(done) == left
    assert all(thread.adds_up for thread in done.experiment.founder.threads)
    assert [event.text for event in done.experiment.founder.log.events if event.kind == "filter"] == [text]


STACKS = """
    import gc, os, threading
    def look(path):
        try:
            os.stat(path)
        except FileNotFoundError:
            pass
    def relay(path):
        look(path)
    def wanted(path):
        relay(path)
    def other(path):
        relay(path)
    def deep(depth, path, do):
        deep(depth - 1, path, do) if depth else do(path)
    class Made:
        def __init__(self, path):
            look(path)
    def makes(path):
        Made(path)
        class Wanted(Made):
            def __init__(self, path):
                wanted(path)
        Wanted(path)
    def steps():
        while True:
            look((yield))
    def through(generator, path):
        generator.send(path)
    wanted_through = {"__name__": "__main__", "through": through}
    exec("def wanted(generator, path): through(generator, path)", wanted_through)
    generator = steps()
    next(generator)
    for turn in range(3):
        wanted("/in")
        other("/out")
        relay("/out")
        makes("/in or out")
        through(generator, "/out")
        wanted_through["wanted"](generator, "/in")
        for depth in (1, 30, 62, 63, 64, 65, 66, 200):
            deep(depth, "/in", wanted)
            deep(depth, "/out", other)
        for name in ("wanted", "other", "another") * 3:
            made = {"__name__": "__main__", "relay": relay}
            exec(f"def {name}(path): relay(path)", made)
            made[name]("/in" if name == "wanted" else "/out")
            made.clear()
            gc.collect()
        list(map(wanted, ["/in"]))
        list(map(other, ["/out"]))
        for work, path in ((wanted, "/in"), (other, "/out")):
            thread = threading.Thread(target=work, args=[path])
            thread.start()
            thread.join()
"""
IN_WANTED = 3 * (1 + 1 + 1 + 8 + 3 + 1 + 1)
IN_OTHERS = 3 * (1 + 1 + 1 + 1 + 8 + 6 + 1 + 1)


@pytest.mark.parametrize(("text", "kept"), [("within=wanted", IN_WANTED), ("within=-wanted", IN_OTHERS)])
def test_what_is_within_a_function_is_told_of_each_call(traced, text, kept):
    done = traced(STACKS, INTERPOSE_FILTER=text).ended_well()

    founder = done.experiment.founder
    found = [founder.string(event.detail) for event in done.events("os.stat")]
    ours = [path for path in found if path in ("/in", "/out", "/in or out")]
    wrong = "/out" if text == "within=wanted" else "/in"
    assert wrong not in ours
    assert len(ours) == kept


def test_what_a_library_calls_is_of_the_line_of_the_program_that_it_was_called_for(traced):
    source = """
        import os.path, pathlib
        def mine():
            pathlib.Path("/in-outer").exists()
        mine()
    """
    left_out = traced(source, INTERPOSE_FILTER="function=-mine")
    kept = traced(source, INTERPOSE_FILTER="function=mine; kind=file")

    assert seen(left_out) == []
    assert seen(kept) == ["/in-outer"]


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("function=" + "é" * 199, True),
        ("function=" + "é" * 198, False),
        ("function=" + "?" * 199, True),
        ("function=" + "?" * 198, False),
        ("function=*é", True),
        ("function=é*é*é?*", True),
        ("line=[1].py:1-99", True),
        ("line=1.py:1-99", False),
        ("line=[12].py:1-99", False),
        ("line=?1?.py:1-99", True),
        (r"line=\[1].py:1-99", False),
    ],
)
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_a_star_and_a_question_mark_stand_for_letters_and_all_else_for_itself(traced, text, is_kept, locale):
    name = "é" * 199
    source = f"""
        import os
        exec(compile("def {name}(): os.stat('/')", "[1].py", "exec"))
        {name}()
    """
    done = traced(source, INTERPOSE_FILTER=text, LC_ALL=locale, PYTHONCOERCECLOCALE="0")

    founder = done.experiment.founder
    assert ("/" in [founder.string(event.detail) for event in done.events("os.stat")]) == is_kept


def test_a_transaction_is_the_same_however_many_texts_there_are(traced):
    done = traced(
        """
        import os, interpose
        held = interpose.transaction("checkout")
        with held:
            for number in range(40_000):
                try:
                    os.stat(f"/none/{number}")
                except OSError:
                    pass
        for transaction in (interpose.transaction("checkout"), held):
            with transaction:
                os.stat("/")
        os.stat("/")
        """,
        INTERPOSE_FILTER="transaction=checkout",
    )

    founder = done.experiment.founder
    assert [founder.string(event.detail) for event in done.events("os.stat")].count("/") == 2


def test_a_transaction_that_is_asked_for_later_is_known_by_its_name(traced, tmp_path):
    done = traced(
        """
        import os, subprocess, sys, interpose
        held = interpose.transaction("checkout")
        with held:
            pass
        for number in range(40_000):
            try:
                os.stat(f"/none/{number}")
            except OSError:
                pass
        words = [sys.executable, "-m", "interpose", "control", str(os.getpid()), "filter", "transaction=checkout"]
        subprocess.run(words, env={}, check=True)
        os.stat("/")
        with held:
            os.stat("/")
        """,
    )

    founder = done.experiment.founder
    assert [founder.string(event.detail) for event in done.events("os.stat")].count("/") == 1


def test_descendants_are_followed_and_descriptors_known_whatever_is_left_out(traced):
    done = traced(
        """
        import os, subprocess, sys
        descriptor = os.open("kept", os.O_CREAT | os.O_WRONLY)
        subprocess.run([sys.executable, "-c", "import os; os.write(1, b'333')"], stdout=descriptor, check=True)
        os.write(descriptor, b"1")
        """,
        INTERPOSE_FILTER="event=os.write",
    )
    founder, child = done.experiment.processes
    (event,) = done.events("os.write")

    assert founder.string(event.detail) == "kept"
    assert [each.bytes for each in events_of(child, "os.write")] == [3]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("colour=red", "'colour' is not one of kind, event"),
        ("kind", "'kind': a value is missing"),
        ("kind=db,", "a value is missing"),
        ("kind=-", "a value is missing"),
        ("kind=disk", "'disk' is not one of the kinds"),
        ("event=XX", "'XX' is not an event type"),
        ("event=SI", "session start cannot be filtered"),
        ("kind=db; event=NS", "kind and event have nothing in common: nothing would be recorded"),
        ("line=a.py", "is not of the form orders.py:100-200"),
        ("line=a.py:9-3", "is not of the form orders.py:100-200"),
        ("thread=0", "threads are numbered from 1"),
        ("process=child", "not founder, a lineage"),
        ("skip=-3", "only one value, without -"),
        ("skip=1,2", "only one value, without -"),
        ("skip=99999999999999999999", "not a number of events"),
        ("from=2", "not a duration"),
        ("from=infs", "not a duration"),
        ("module=" + "x" * 201, "longer than 200 characters"),
        ("module=a\tb", "unprintable"),
        ("module=" + ",".join(["x"] * 65), "more than 64 alternatives"),
        ("transaction=check*", "write the whole name"),
        ("kind=db; keep=0", "keep=0: nothing would be recorded"),
        ("from=2s; to=1s", "to is not after from: nothing would be recorded"),
        ("kind=db,-db", "kind leaves out what it asks for: nothing"),
        ("module=x,-x", "module leaves out what it asks for: nothing"),
        ("kind=" + ",".join(f"-{kind}" for kind in filters.KINDS), "all kinds: nothing would be recorded"),
        ("kind=db; event=I", "kind and event have nothing in common: nothing would be recorded"),
    ],
)
def test_what_is_no_filter_or_leaves_nothing_is_told(text, why):
    with pytest.raises(ValueError, match=r".") as raised:
        parse(text)

    assert why in str(raised.value)


USUAL = ("db", "screen", "file", "net", "process", "sync", "gil", "sleep", "logic")
NONE_OF_THEM = "kind=" + ",".join(f"-{kind}" for kind in USUAL)
NOTHING_LEFT = "kind leaves out all kinds that are recorded: nothing would be recorded"


@pytest.mark.parametrize(
    ("text", "others", "is_told"),
    [
        (NONE_OF_THEM, {}, True),
        (NONE_OF_THEM, {"INTERPOSE_KINDS": "all,import"}, False),
        (NONE_OF_THEM + "; event=PL", {}, False),
        ("kind=-db", {"INTERPOSE_KINDS": "db"}, True),
        ("kind=file,net", {"INTERPOSE_KINDS": "db,sleep=count"}, True),
        ("kind=file,sleep", {"INTERPOSE_KINDS": "db,sleep=count"}, False),
        ("kind=file", {"INTERPOSE_KINDS": "db", "INTERPOSE_LEVELS": "os.stat=time"}, False),
        ("kind=import", {}, False),
    ],
)
def test_a_filter_that_leaves_nothing_of_the_kinds_that_are_recorded_is_told(text, others, is_told):
    found = precedence.resolve({}, {"INTERPOSE": "1", "INTERPOSE_FILTER": text, **others}, {})

    assert found.warnings == ([f"INTERPOSE_FILTER={text}: {NOTHING_LEFT}"] if is_told else [])


def test_with_a_filter_that_leaves_nothing_all_is_recorded_and_while_it_runs_it_is_refused(traced, interpose_here):
    done = traced(
        """
        import os, subprocess, sys
        os.stat("/")
        command = [sys.executable, "-m", "interpose", "control", str(os.getpid()), "filter", sys.argv[1]]
        plain = {name: value for name, value in os.environ.items() if not name.startswith("INTERPOSE")}
        told = subprocess.run(command, capture_output=True, text=True, env={**plain, "INTERPOSE_LINEAGE": "off"})
        print(told.returncode, told.stderr, end="")
        """,
        NONE_OF_THEM,
        INTERPOSE_FILTER=NONE_OF_THEM,
    )

    screen = interpose_here("report", done.path, variables={"COLUMNS": "200"}).stdout
    assert done.events("os.stat")
    assert f"warning  INTERPOSE_FILTER={NONE_OF_THEM}: {NOTHING_LEFT}" in screen
    assert done.stdout == f"2 interpose: filter {NONE_OF_THEM}: {NOTHING_LEFT}\n"


def test_with_a_filter_that_is_none_the_session_goes_on_and_its_report_tells(traced, interpose_here):
    done = traced(PROGRAM, INTERPOSE_FILTER="colour=red")

    assert len(seen(done)) == 10
    told = interpose_here("report", done.path, variables={"COLUMNS": "200"}).stdout
    assert "warning  INTERPOSE_FILTER=colour=red: 'colour' is not one of" in told


def test_a_filter_that_cannot_be_read_is_told_and_the_one_before_stays_in_force(traced, interpose_here):
    done = traced(
        """
        import os, subprocess, sys
        experiment = os.path.abspath("test.1.er")
        plain = {name: value for name, value in os.environ.items() if not name.startswith("INTERPOSE")}
        behind = (
            "import os, sys; from interpose.cli.main import main; main(['control', sys.argv[1], 'filter', 'off']);"
            "os.chdir(sys.argv[1]); os.rename('filter', 'behind'); os.symlink('behind', 'filter')"  # is not followed
        )
        def control(*words, how=("-m", "interpose", "control")):
            command = [sys.executable, *how, experiment, *words]
            return subprocess.run(command, capture_output=True, text=True, env={**plain, "INTERPOSE_LINEAGE": "off"})
        def look(path):
            try:
                os.stat(path)
            except FileNotFoundError:
                pass
        control("filter", "kind=db")
        look("/in-outer")
        control(how=("-c", behind))  # of which we hear when it has ended
        look("/in-thread")
        print(control().stdout)
        control("filter", "off")
        look("/first")
        """,
    )

    why = f"the filter could not be read ({os.strerror(errno.ELOOP)}); the previous one stays in force"
    assert {text for text in seen(done) if text.startswith("/")} == {"/first"}
    assert f" warning  {why}\n" in done.stdout
    assert f"warning  {why}" in interpose_here("report", done.path, variables={"COLUMNS": "200"}).stdout


def test_nothing_is_filtered_where_nothing_is_said():
    assert parse("off") is None
    assert parse(" ; ") is None
    assert parse("").__class__ is type(None)


def test_times_are_those_of_the_monotonic_clock_and_counts_are_not():
    compiled = parse("from=2s; to=1.5m; skip=7; module=-shop.*; line=a.py:3-9; event=DB").compiled(1000)

    assert compiled.decode().splitlines() == [
        "+from\t2000001000",
        "+to\t90000001000",
        "+skip\t7",
        "-module\tshop.*",
        "+line\ta.py\t3\t9",
        "+event\tkind\tdb",
    ]


@given(st.text(max_size=60))
def test_any_text_is_a_filter_or_is_refused_in_one_line(text):
    try:
        found = parse(text)
    except ValueError as error:
        assert "\n" not in str(error) or "\n" in text
    else:
        assert found is None or found.compiled(0).count(b"\n") == len(found.rules)


@pytest.mark.parametrize(
    "data",
    [b"", b"\n\n", b"+", b"+module", b"+nothing\tx\n", b"+line\ta\n" * 99, b"\xff\x00\t\n", b"+module\t" + b"x" * 9999],
)
def test_rules_that_mean_nothing_are_left_out(tmp_path, traced, data):
    """The file lies in the experiment's directory, where somebody may have written."""
    (tmp_path / "rules").write_bytes(data)

    done = traced(
        """
        import os, interpose, shutil
        from interpose.experiments.metadata.control import Control
        from interpose.experiments.model.experiment import Experiment
        shutil.copy("rules", "test.1.er/filter")
        Control(Experiment("test.1.er").founder).ask_for_filter()
        os.stat("/")
        """
    ).ended_well()

    assert os.path.exists(f"{done.path}/log.xml")
