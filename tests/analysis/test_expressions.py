"""Expressions over events: every token, what binds how, what is wrong and where; and a plain reference."""

import json
import operator
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.analysis.calls.trace import trace
from interpose.analysis.expressions import deciding
from interpose.analysis.expressions.filters import Filter
from interpose.analysis.expressions.parser import HOWS, IN
from interpose.analysis.expressions.scanner import LONGEST
from interpose.analysis.expressions.tokens import FUNCTIONS, TOKENS
from interpose.cli.main import main
from interpose.errors import ExpressionError
from interpose.experiments.metadata.labels import RESERVED, Mark, write_marks
from interpose.experiments.model.collection import Collection
from interpose.experiments.model.experiment import Experiment
from tests.build import SECOND, START_NS, Build, event

MS = 1_000_000
TOP = Path(__file__).parents[2]


def shop(directory, **log):
    """Four calls of an order-entry program, one of them in progress, and a child with one."""
    build = Build(directory, **log)
    query, write = build.intrinsic("sqlite3.Cursor.execute", "db"), build.intrinsic("os.write", "file")
    top = build.stack(build.site("/home/u/shop/orders.py", 9, "main"))
    save = build.stack(build.site("/home/u/shop/orders.py", 88, "Orders.save"), top)
    emit = build.stack(build.site("/usr/lib/python3/logging.py", 5, "emit", own=0), save)
    select, locked = build.string("select * from orders where id = ?"), build.string("sqlite3.OperationalError")
    build.thread(tid=812, main=1, open_calls=[{"start_ns": START_NS + 50 * MS, "call": 4, "intrinsic": write}])
    build.thread(tid=813)
    inner = {"inner_wall_ns": 4 * MS, "inner_cpu_ns": MS}
    build.block(
        [
            event(11 * MS, 4 * MS, MS, call=2, parent=1, intrinsic=write, stack=emit, bytes=4096, task=7),
            event(10 * MS, 20 * MS, 3 * MS, call=1, stack=save, intrinsic=query, detail=select, **inner),
        ]
    )
    build.block([event(40 * MS, 2 * MS, MS, call=3, thread=2, intrinsic=query, error=locked, stack=top)])
    window = [Mark("load", "start", START_NS + 5 * MS), Mark("load", "stop", START_NS + 11 * MS)]
    write_marks(str(build.write()), window)
    child = Build(build.directory / "_f1.er", pid=77)
    child.intrinsic("time.sleep", "sleep")
    child.thread(tid=77, main=1, recorded=1)
    child.block([event(60 * MS, MS, 0, call=9)])
    child.write()
    return Experiment(str(build.directory))


def read(process):
    return [each for block in process.events.blocks() for each in process.events.events(block)]


def kept(experiment, text, **more):
    chosen = Filter(text, experiment, **more)
    return [row.event.call for row in trace(experiment) if chosen.keeps(row.process, row.event, row.depth, row.state)]


# For each token an expression that tells some calls from the others; in the order of their beginnings: 1 2 3 4 9.
TOLD_APART = {
    "KIND": ("KIND == 'db'", [1, 3]),
    "INTRINSIC": ("intrinsic != 'os.write'", [1, 3, 9]),
    "WALL": ("WALL >= 4ms", [1, 2]),
    "CPU": ("CPU == 1ms", [2, 3]),
    "SELF_WALL": ("SELF_WALL == 16ms", [1]),
    "SELF_CPU": ("SELF_CPU == 2ms", [1]),
    "WAIT": ("WAIT == 14ms || WAIT == 3ms", [1, 2]),
    "START": ("START > 11ms", [3, 4, 9]),
    "END": ("END == 15ms", [2]),
    "BYTES": ("BYTES == 4KiB", [2]),
    "ROWS": ("ROWS == 0 && KIND == 'file'", [2, 4]),
    "CALL": ("CALL % 3 == 0", [3, 9]),
    "PARENT": ("PARENT != 0", [2]),
    "DEPTH": ("DEPTH == 1", [2]),
    "TASK": ("TASK == 7", [2]),
    "THREAD": ("THREAD == 813", [3]),
    "PID": ("PID == 77", [9]),
    "PROCESS": ("PROCESS == 'founder'", [1, 2, 3, 4]),
    "EXPERIMENT": ("EXPERIMENT =~ '^t.1.er$' && PID == 77", [9]),
    "HOST": ("HOST == 'h' && CALL == 1", [1]),
    "USER": ("USER == '?' && CALL == 1", [1]),
    "TERMINAL": ("TERMINAL == '?' && CALL == 1", [1]),
    "STATE": ("STATE != 'ended'", [4]),
    "DETAIL": ("DETAIL =~ 'FROM|from'", [1]),
    "ERROR": ("ERROR != ''", [3]),
    "FILE": ("FILE == '/home/u/shop/orders.py'", [1, 2, 3]),
    "LINE": ("LINE IN (88, 90)", [1, 2]),
    "FUNCTION": ("FUNCTION == 'main'", [3]),
    "SITE": ("SITE =~ 'orders[.]py:88$'", [1, 2]),
    "STACK": ("'emit' IN STACK", [2]),
    "LABEL": ("'Load' IN LABEL", [1]),
    "TRANSACTION": ("TRANSACTION == 'pay'", [3]),
}


@pytest.mark.parametrize("token", TOKENS)
def test_every_token(tmp_path, token):
    text, expected = TOLD_APART[token]
    experiment = shop(tmp_path / "t.1.er")

    found = kept(experiment, text, transaction_of=lambda process, each: "pay" if each.call == 3 else "new")

    assert found == expected
    assert token in Filter(text, experiment, transaction_of=lambda *_: "").names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FNAME('orders') IN STACK", [1, 2, 3]),
        ("FUNC('^emit$|^nowhere$') SOME IN STACK", [2]),
        ("('emit', 'Orders.save') IN STACK", [2]),
        ("('emit', 'nowhere') IN STACK", []),
        ("('emit', 'nowhere') SOME IN STACK", [2]),
        ("('main', 'emit') ORDERED IN STACK", [2]),
        ("('emit', 'main') ORDERED IN STACK", []),
        ("(FUNC('main'), FUNC('main')) ORDERED IN STACK", []),
        ("FUNC('Orders[.]') LEAF IN STACK", [1]),
        ("LINE('orders.py:88') IN STACK", [1, 2]),
        ("LINE('rders.py:88') IN STACK", []),
        ("LINE('/home/u/shop/orders.py:9') LEAF IN STACK", [3]),
        ("load", [1]),
        ("!LOAD && pid != 77", [2, 3, 4]),
        ("KIND IN ('db')", [1, 3]),
        ("CALL IN (1, 9)", [1, 9]),
        ("WALL IN (2ms, 1ms)", [3, 9]),
        ('DETAIL == "select * from orders where id = ?"', [1]),
    ],
)
def test_functions_lists_and_labels(tmp_path, text, expected):
    assert kept(shop(tmp_path / "t.1.er"), text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CALL == 1 || CALL == 2 && CALL == 9", [1]),
        ("(CALL == 1 || CALL == 2) && CALL == 9", []),
        ("! (CALL == 1) && CALL < 3", [2]),
        ("CALL + 2 * 3 == 7", [1]),
        ("(CALL + 2) * 3 == 9", [1]),
        ("CALL - 1 - 1 == 0", [2]),
        ("8 / 2 / CALL == 1", [4]),
        ("7 % 4 + CALL == 4", [1]),
        ("- CALL + 3 == 1", [2]),
        ("CALL < 2 + 2 && 1 < CALL", [2, 3]),
        ("BYTES / 4KiB == 1", [2]),
        ("BYTES / WALL > 0.9MiB / 1s", [2]),
        ("WALL > 0 && WALL < 1.5ms", [9]),
        ("WALL == 0.02s", [1]),
        ("1 / (CALL - 1) > 0 || CALL == 1", [1, 2, 3, 4, 9]),
        ("1 / (CALL - 1) != 1", [3, 4, 9]),
    ],
)
def test_what_binds_more_and_what_is_not_known(tmp_path, text, expected):
    assert kept(shop(tmp_path / "t.1.er"), text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ERROR == 'FileNotFoundError'", [1, 2]),
        ("'FileNotFoundError' == ERROR", [1, 2]),
        ("ERROR == 'FileNotFoundError errno 2'", [1]),
        ("ERROR IN ('FileNotFoundError', 'ValueError')", [1, 2, 3]),
        ("ERROR != 'FileNotFoundError'", [3, 4]),
        ("ERROR != 'FileNotFoundError errno 2'", [2, 3, 4]),
        ("ERROR == 'FileNotFound'", []),
        ("ERROR == ''", [4]),
    ],
)
def test_an_error_is_found_by_its_name_with_or_without_its_number(tmp_path, text, expected):
    build = Build(tmp_path / "t.1.er")
    errors = ("FileNotFoundError errno 2", "FileNotFoundError errno 20", "ValueError", "")
    numbers = [build.string(error) if error else 0 for error in errors]
    stat = build.intrinsic("os.stat", "file")
    build.block([event(at * MS, MS, call=at, intrinsic=stat, error=error) for at, error in enumerate(numbers, 1)])
    build.thread()

    assert kept(Experiment(str(build.write())), text) == expected


@pytest.mark.parametrize("text", ["WALL > 1ms", "WALL <= 1ms", "WALL != 3ms", "END > 0", "WAIT + CPU < 1h"])
def test_no_comparison_of_what_a_call_in_progress_does_not_have_holds(tmp_path, text):
    assert 4 not in kept(shop(tmp_path / "t.1.er"), text)


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("", 0, "a name, a number, a text or ( was expected"),
        ("KIND == 'db' &&", 15, "a name, a number"),
        ("KIND == 'db", 8, "the text that begins with ' does not end"),
        ("KIND = 'db'", 5, "= is not an operator; == compares"),
        ("KIND == 'db' & 1", 13, "& is not an operator; && means and"),
        ("(KIND == 'db'", 0, "the parenthesis is not closed"),
        ("KIND == 'db')", 12, "an operator or the end was expected"),
        ("1 < CALL < 3", 9, "comparisons do not chain"),
        ("WALLL > 5ms", 0, "WALLL is not a name or a label; did you mean WALL?"),
        ("CALL == 1 || laod", 13, "LAOD is not a name or a label; did you mean LOAD?"),
        ("QQQQ == 1", 0, "QQQQ is not a name or a label; there are KIND, INTRINSIC,"),
        ("WALL > 5", 7, "a time is compared with a number that has no unit; write 5ms"),
        ("WALL > 1234567", 7, "a time is compared with a number that has no unit; write 1234567ms"),
        ("BYTES > 4194304", 8, "a size is compared with a number that has no unit; write 4194304B"),
        ("WALL > -5", 7, "a time is compared with a number that has no unit; write its unit, as in 5ms"),
        ("BYTES == 1000", 9, "a size is compared with a number that has no unit; write 1000B"),
        ("WALL > 1 ms", 9, "an operator or the end was expected; write 1ms"),
        ("(BYTES > 1.5 KiB)", 13, ") was expected; write 1.5KiB"),
        ("CALL > 1 db", 9, "an operator or the end was expected"),
        ("WALL > 5mm", 8, "mm is not a unit; use ns us ms s m h, B KiB MiB GiB TiB"),
        ("WALL > 5KiB", 5, "a time is compared with a size"),
        ("WALL + CALL > 1", 5, "+ is of what is alike, not of a time and a number"),
        ("WALL * WALL * WALL * WALL > 1", 19, "multiplied too often"),
        ("KIND", 0, "KIND is a text, and no condition"),
        ("!KIND == 'db'", 0, "! is of a condition, not of a text"),
        ("KIND > 'db'", 5, "texts are compared with == != =~ and IN"),
        ("KIND == 1", 5, "a text is compared with a number"),
        ("KIND IN ('db', 5)", 15, "a text is compared with a number"),
        ("CALL =~ '1'", 5, "=~ is of a text, not of a number"),
        ("KIND =~ 'd(b'", 10, "the pattern: ( without )"),
        ("KIND =~ KIND", 8, "behind =~ stands a regular expression in quotes"),
        ("FNAM('x') IN STACK", 0, "FNAM is not a function; did you mean FNAME?"),
        ("FNAME(1) IN STACK", 6, "FNAME is of a text in quotes"),
        ("FNAME('x')", 0, "frames are in something"),
        ("FNAME == 'x'", 0, "FNAME is of a text: FNAME('…')"),
        ("KIND IN STACK", 0, "in STACK there are frames"),
        ("'main' LEAF STACK", 12, "LEAF needs IN"),
        ("KIND LEAF IN ('db')", 14, "LEAF IN is of STACK"),
        ("KIND SOME IN ('db', 'net')", 13, "SOME IN is of STACK or LABEL"),
        ("'laod' IN LABEL", 0, "no such label: laod; did you mean LOAD?"),
        ("STACK == 1", 0, "STACK is a stack, which is not compared"),
        ("load == 1", 0, "LOAD is a condition, which is not compared"),
        ("(" * 40, 32, "more than 32 parentheses or signs within each other"),
        ("1" + "+1" * 300 + " > 1", 401, "more than 200 operators of arithmetic"),
        ("1" * 21 + " > 1", 0, "a number has at most 20 digits"),
        ("x" * (LONGEST + 1), LONGEST, "at most 4,096 characters"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path, text, place, what):
    with pytest.raises(ExpressionError) as told:
        Filter(text, shop(tmp_path / "t.1.er"))

    assert what in str(told.value)
    assert told.value.place == place


def test_the_largest_expression_that_is_allowed_is_decided(tmp_path):
    text = "(" * 30 + "CALL" + " + 1" * 200 + ")" * 30 + " == 202"

    assert kept(shop(tmp_path / "t.1.er"), " || ".join(["CALL == 9"] * 100 + [text])) == [2, 9]


def test_an_error_is_a_line_and_a_caret_under_the_place(place, capsys):
    shop(place / "t.1.er")

    code = main(["events", "--filter", "KIND == 'é\x1b' && WALLL > 5ms", "t.1.er"])

    assert code == 2
    assert capsys.readouterr() == (
        "",
        "interpose: WALLL is not a name or a label; did you mean WALL?\n"
        "  KIND == 'é\\x1b' && WALLL > 5ms\n"
        "                     ^\n",
    )


def test_of_a_long_expression_the_place_is_shown(place, capsys):
    shop(place / "t.1.er")

    main(["events", "--filter", "CALL == 1 || " * 100 + "WALLL > 5ms", "t.1.er"])

    _, shown, caret = capsys.readouterr().err.splitlines()
    assert shown[caret.index("^") :] == "WALLL > 5ms"
    assert len(shown) < 80


def test_filtered_events_with_the_other_options(place, capsys):
    shop(place / "t.1.er")

    def calls(*words):
        assert main(["events", "--format", "json", *words, "t.1.er"]) == 0
        return [row["call"] for row in json.loads(capsys.readouterr().out)]

    assert calls("--filter", "PROCESS == 'founder'") == [1, 2, 3, 4]
    assert calls("--filter", "PROCESS == 'founder'", "--last", "2") == [3, 4]
    assert calls("--filter", "PROCESS == 'founder'", "--limit", "1") == [1]
    assert calls("--filter", "KIND == 'db'", "--since", "20ms") == [3]
    assert calls("--filter", "KIND == 'db'", "--label", "load") == [1]


def test_help_tells_every_token_function_and_operator(place, capsys):
    assert main(["events", "--filter", "Help", "--format", "json"]) == 0

    told = {row["name"] for row in json.loads(capsys.readouterr().out)}
    assert {*TOKENS, *(f"{name}( )" for name in FUNCTIONS)} < told
    assert {sign for name in told for sign in name.split()} > {"||", "&&", "==", "=~", "%", IN, *HOWS}


def test_filters_that_are_shown_can_be_read(tmp_path):
    pages = [(TOP / page).read_text(encoding="utf-8") for page in ("docs/commands.md", "docs/filters.md")]

    # What a comment says is run, and its output is in the page: a filter that is refused.
    shown = [text for page in pages for text in re.findall(r'--filter "(.+?)"', re.sub(r"<!--.*?-->", "", page))]

    assert len(shown) > 4
    assert all(Filter(text, shop(tmp_path / "t.1.er")).names for text in shown)


def test_no_label_can_be_called_as_something_in_an_expression():
    words = {*TOKENS, *FUNCTIONS, IN, *HOWS, "HELP"}

    assert {word.lower() for word in words if re.fullmatch("[A-Za-z0-9]+", word)} <= RESERVED


def test_a_label_of_before_its_name_was_reserved_is_read(tmp_path):
    experiment = shop(tmp_path / "t.1.er")
    write_marks(experiment.directory, [Mark("rows", "start", START_NS + 35 * MS)])

    assert kept(Experiment(experiment.directory), "'rows' IN LABEL") == [3, 4, 9]


def test_each_of_several_experiments_has_its_own_beginning_and_labels(tmp_path):
    one = shop(tmp_path / "t.1.er")
    two = shop(tmp_path / "t.2.er", start_ns=START_NS - SECOND)
    write_marks(two.directory, [Mark("late", "start", START_NS + 30 * MS)])
    both = Collection([one, Experiment(two.directory)])

    began = Filter("START < 11ms", both)
    late = Filter("late", both)

    def founders(chosen):
        return [
            [each.call for each in read(process) if chosen.keeps(process, each)]
            for process in both.processes
            if not process.lineage
        ]

    assert founders(began) == [[1], []]
    assert founders(late) == [[], [3]]


def test_what_hangs_on_a_number_is_decided_once_for_it(tmp_path, monkeypatch):
    build = Build(tmp_path / "t.1.er")
    build.intrinsic("os.write", "file")
    stack = build.stack(build.site("/a.py", 1, "f"))
    build.block([event(n, 5, call=n + 1, stack=stack) for n in range(100)])
    experiment = Experiment(str(build.write()))
    matched = []
    is_in = deciding.Pattern.is_in
    monkeypatch.setattr(deciding.Pattern, "is_in", lambda self, text: matched.append(text) or is_in(self, text))

    found = kept(experiment, "INTRINSIC =~ 'write' && FNAME('a') SOME IN STACK && FILE =~ 'a' && WALL > 0")

    assert len(found) == 100
    assert matched == ["os.write", "/a.py", "/a.py"]


# The plain reference: of each expression its text, how tightly it binds, and what it is of an event as a dictionary.
NUMBERS = {"CALL": "call", "PARENT": "parent", "TASK": "task"}
KINDS = ("db", "file", "net")
BINDING = {"||": 1, "&&": 2, "<": 3, "==": 3, "!=": 3, ">=": 3, "+": 4, "-": 4, "*": 5, "!": 6, "": 7}
MEANING = {
    "||": lambda a, b: a or b,
    "&&": lambda a, b: a and b,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


def plain(text, of):
    return text, BINDING[""], of


def within(part, least):
    return f"({part[0]})" if part[1] < least else part[0]


def joined(sign, left, right):
    """Comparisons do not chain: neither side may be one without parentheses."""
    mine = BINDING[sign]
    text = f"{within(left, mine + (mine == 3))} {sign} {within(right, mine + 1)}"
    return text, mine, lambda each: MEANING[sign](left[2](each), right[2](each))


numbers = st.recursive(
    st.one_of(
        st.integers(0, 5).map(lambda n: plain(str(n), lambda each: n)),
        st.sampled_from(sorted(NUMBERS)).map(lambda name: plain(name, lambda each: each[NUMBERS[name]])),
    ),
    lambda below: st.builds(joined, st.sampled_from(["+", "-", "*"]), below, below),
    max_leaves=4,
)
of_kinds = st.sampled_from(KINDS).map(lambda kind: plain(f"(kind == '{kind}')", lambda each: each["kind"] == kind))
conditions = st.recursive(
    st.one_of(st.builds(joined, st.sampled_from(["<", "==", "!=", ">="]), numbers, numbers), of_kinds),
    lambda below: st.one_of(
        st.builds(joined, st.sampled_from(["&&", "||"]), below, below),
        below.map(lambda part: (f"!{within(part, 6)}", 6, lambda each: not part[2](each))),
    ),
    max_leaves=8,
)
events = st.lists(
    st.fixed_dictionaries(
        {name: st.integers(0, 4) for name in ("call", "parent", "task")} | {"kind": st.sampled_from(KINDS)}
    ),
    max_size=10,
)


@pytest.mark.long
@given(condition=conditions, made=events)
def test_an_expression_keeps_what_the_plain_reference_keeps(tmp_path_factory, condition, made):
    build = Build(tmp_path_factory.mktemp("plain") / "t.1.er")
    for kind in KINDS:
        build.intrinsic(f"a.{kind}", kind)
    text, _, of = condition
    build.block(
        [
            event(n, 1, intrinsic=KINDS.index(each["kind"]) + 1, **{name: each[name] for name in NUMBERS.values()})
            for n, each in enumerate(made)
        ]
    )
    experiment = Experiment(str(build.write()))
    decide = Filter(text, experiment).over(experiment.founder)

    assert [bool(decide(each, 0)) for each in read(experiment.founder)] == [bool(of(each)) for each in made]


@given(text=st.text(alphabet="ab'\"()!&|<>=~+-*/%, 159msKIND WALLSTACKINFNAME", max_size=40))
def test_whatever_is_given_is_an_expression_or_is_told_with_a_place_in_it(text):
    experiment = Nothing()

    try:
        Filter(text, experiment)
    except ExpressionError as error:
        assert 0 <= error.place <= len(text)


class Nothing:
    """An experiment of no process, for expressions that are only read."""

    marks = ()
    processes = ()

    @property
    def experiments(self):
        return [self]

    class founder:
        class log:
            start_ns = 0
