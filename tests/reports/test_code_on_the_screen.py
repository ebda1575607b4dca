"""The first screen names the functions that compute and what the program waited for; findings name their callers."""

import re

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.cli.main import main
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.sampled import NOT_READ
from interpose.reports.formats.colour import Paint
from interpose.reports.screen.screen import Screen
from interpose.reports.screen.summary import summary
from interpose.reports.screen.whole import whole_report
from interpose.reports.sentences.sentences import Sentences
from tests.build import START_NS, Build, event
from tests.schedules import MS, READY, WAITS

SHOP = "/home/u/shop"


@pytest.fixture
def batch(tmp_path):
    """A program that computes in two functions, waits for CPU, waits for something, and serves a request."""
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    request = build.intrinsic("flask.Flask.wsgi_app", "logic")
    build.events([event(2000 * MS, 300 * MS, 300 * MS, call=1, intrinsic=request)])
    main = (f"{SHOP}/batch.py", 20, "main")
    parse = build.sampled_stack(main, (f"{SHOP}/batch.py", 3, "parse"))
    inner = build.sampled_stack(main, (f"{SHOP}/batch.py", 8, "Totals.aggregate_all_of_them"))
    view = build.sampled_stack((f"{SHOP}/web.py", 7, "view"))
    now = cpu = 0
    for stack, state, times, advance in [(parse, 1, 100, 10), (inner, 1, 40, 10), (inner, 2, 30, 0), (parse, 3, 30, 0)]:
        for _ in range(times):
            now, cpu = now + 10 * MS, cpu + advance * MS
            build.thread_sample(START_NS + now, cpu_ns=cpu, stack=stack, state=state)
    for _ in range(30):
        now, cpu = now + 10 * MS, cpu + 10 * MS
        build.thread_sample(START_NS + now, cpu_ns=cpu, stack=view, call=1, intrinsic=request)
    build.thread(end_ns=START_NS + now, end_cpu_ns=cpu, tid=1, main=1, recorded=1, made=1, run_delay_ns=300 * MS)
    build.ended(now, cpu)
    return build


def screen_of(build, width=80):
    analysis = Analysis(Experiment(str(build.write())))
    return Screen(profile(analysis, "site"), 0.0, width, Paint(False), Survey(analysis))


def rows_of(screen):
    return [" ".join(line.split()) for line in summary(screen)]


def test_the_functions_with_the_most_cpu_time_stand_below_the_program(batch):
    rows = rows_of(screen_of(batch))

    place = next(number for number, line in enumerate(rows) if line.startswith("code"))
    assert rows[place + 1 : place + 5] == [
        "parse 1.000 s batch.py:3",
        "aggregate_… 0.400 s batch.py:8",
        "wait for CPU 0.300 s processors busy",
        "unexplained 0.300 s no known cause",
    ]
    assert not any(line.startswith("unexplained wait") for line in rows)


def test_cpu_time_after_the_last_sample_is_a_line_and_no_finding(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    early = build.sampled_stack((f"{SHOP}/batch.py", 3, "early"))
    for now in range(10, 310, 10):
        build.thread_sample(START_NS + now * MS, cpu_ns=now * MS, stack=early)
    build.thread(end_ns=START_NS + 1800 * MS, end_cpu_ns=1800 * MS, tid=1, main=1)
    build.ended(1800 * MS, 1800 * MS)
    screen = screen_of(build)

    rows = rows_of(screen)
    place = next(number for number, line in enumerate(rows) if line.startswith("code"))
    assert rows[place + 1 : place + 3] == ["early 0.300 s batch.py:3", "not sampled 1.500 s no samples then"]
    assert "computing" not in [each.rule for each in found_in(screen.survey)]


@pytest.mark.parametrize("signal", ["", "9"])
def test_the_end_of_python_is_a_line_and_a_finding_of_its_own(tmp_path, signal):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    work = build.sampled_stack((f"{SHOP}/batch.py", 3, "work"))
    for number in range(1, 101):
        build.thread_sample(START_NS + number * 10 * MS, cpu_ns=number * 10 * MS, stack=work if number <= 60 else 0)
    build.thread(end_ns=START_NS + 1000 * MS, end_cpu_ns=1000 * MS, tid=1, main=1)
    build.ended(1000 * MS, 1000 * MS)
    build.log_events.append(f'<event kind="exit" time_ns="{START_NS + 1000 * MS}" status="0" signal="{signal}"/>')

    rows = rows_of(screen_of(build, 200))

    place = next(number for number, line in enumerate(rows) if line.startswith("code"))
    assert rows[place + 1].startswith("work 0.600 s batch.py:3")
    assert rows[place + 2] == "no Python code 0.400 s Python's end, C threads"
    told = any("Python computes after the program's last line" in row and "(400 ms of 1.00 s)" in row for row in rows)
    assert told != bool(signal)


def test_the_functions_of_requests_stand_below_their_kind(batch):
    rows = rows_of(screen_of(batch))

    place = next(number for number, line in enumerate(rows) if line.startswith("logic"))
    assert rows[place + 1] == "view 0.300 s web.py:7"


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_screen(batch, width):
    assert max(map(len, summary(screen_of(batch, width)))) <= width


def test_the_columns_stay_where_names_are_long(batch):
    head = next(line for line in summary(screen_of(batch)) if " calls " in line and "share" in line)

    assert head.split() == ["calls", "self", "wall", "self", "CPU", "wait", "share"]
    assert any("0 % estimated" in " ".join(line.split()) for line in summary(screen_of(batch)))


def test_a_wide_screen_has_whole_names_and_margins(batch):
    row = next(line for line in summary(screen_of(batch, 130)) if "aggregate" in line and "of CPU" in line)

    assert "Totals.aggregate_all_of_them" in row
    assert "\u00b1" in row


def test_what_few_samples_say_is_marked_and_no_finding(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    main = (f"{SHOP}/batch.py", 20, "main")
    parse = build.sampled_stack(main, (f"{SHOP}/batch.py", 3, "parse"))
    load = build.sampled_stack(main, (f"{SHOP}/batch.py", 5, "load"))
    for number, stack in enumerate([parse, parse, parse, load], 1):
        build.thread_sample(START_NS + number * 50 * MS, cpu_ns=number * 50 * MS, stack=stack)
    build.thread(end_ns=START_NS + 200 * MS, end_cpu_ns=200 * MS, tid=1, main=1)
    build.ended(200 * MS, 200 * MS)
    screen = screen_of(build)

    rows = rows_of(screen)

    assert "load ~50.00 ms batch.py:5" in rows
    assert not any("load computes" in row for row in rows)


@pytest.mark.parametrize("samples", [1, 2])
def test_a_function_is_not_named_for_one_or_two_samples_even_if_there_are_no_others(tmp_path, samples):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    early = build.sampled_stack((f"{SHOP}/early.py", 546, "execsitecustomize"))
    for number in range(1, samples + 1):
        build.thread_sample(START_NS + number * 10 * MS, cpu_ns=number * 10 * MS, stack=early)
    build.thread(end_ns=START_NS + 100 * MS, end_cpu_ns=100 * MS, tid=1, main=1)
    build.ended(100 * MS, 100 * MS)

    (told,) = [each for each in found_in(screen_of(build).survey) if each.rule == "computing"]

    assert told.site is None


def test_lost_calls_are_said_to_be_in_the_time_of_a_function(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    stack = build.sampled_stack((f"{SHOP}/batch.py", 3, "parse"))
    for number in range(1, 101):
        build.thread_sample(START_NS + number * 10 * MS, cpu_ns=number * 10 * MS, stack=stack)
    build.thread(end_ns=START_NS + 1000 * MS, end_cpu_ns=1000 * MS, tid=1, main=1, dropped=5000)
    build.ended(1000 * MS, 1000 * MS)

    told = " ".join(rows_of(screen_of(build, 200)))

    computes = "batch.py:3 parse computes, or makes calls that were not recorded: CPU time of its own code or short C"
    assert f"{computes} functions (1.00 s" in told


def test_that_a_script_runs_is_not_told_of_callers(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    chain = [(f"{SHOP}/app.py", 40, "<module>"), (f"{SHOP}/app.py", 30, "load"), (f"{SHOP}/app.py", 3, "parse")]
    stack = build.sampled_stack(*chain)
    for number in range(1, 101):
        build.thread_sample(START_NS + number * 10 * MS, cpu_ns=number * 10 * MS, stack=stack)
    build.thread(end_ns=START_NS + 1000 * MS, end_cpu_ns=1000 * MS, tid=1, main=1)
    build.ended(1000 * MS, 1000 * MS)

    told = next(row for row in rows_of(screen_of(build, 200)) if "computes" in row)

    assert "(1.00 s of 1.00 s), called from app.py:30 load. See its lines" in told


def test_library_code_counts_for_the_line_of_the_application_that_called_it(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    library = "/usr/lib/python3/json"
    main, parse = (f"{SHOP}/app.py", 30, "main"), (f"{SHOP}/app.py", 9, "parse")
    loads, decode = (f"{library}/__init__.py", 346, "loads"), (f"{library}/decoder.py", 353, "decode")
    scan = (f"{library}/decoder.py", 361, "scan")
    bootstrap = ("/usr/lib/python3/threading.py", 1030, "Thread._bootstrap")
    stacks = [
        *[build.sampled_stack(bootstrap, main, parse, loads, decode, scan)] * 60,
        *[build.sampled_stack(bootstrap, main, parse, loads, decode)] * 20,
        *[build.sampled_stack(bootstrap, main, parse)] * 20,
    ]
    for number, stack in enumerate(stacks, 1):
        build.thread_sample(START_NS + number * 10 * MS, cpu_ns=number * 10 * MS, stack=stack)
    build.thread(end_ns=START_NS + 1000 * MS, end_cpu_ns=1000 * MS, tid=1, main=1)
    build.ended(1000 * MS, 1000 * MS)

    told = [row for row in rows_of(screen_of(build, 200)) if "computes" in row]

    what = "app.py:9 parse computes, 60 % of it in decoder.py:361 scan: CPU time (1.00 s of 1.00 s)"
    assert len(told) == 1
    assert f"{what}, called from app.py:30 main. See which lines call it: interpose profile" in told[0]


def computing_in(directory, *samples):
    """The words of the first screen of a program with so many samples of each of these stacks, each of 10 ms."""
    build = Build(directory / "t.1.er", call_ns=0, inside_ns=0)
    stacks = [build.sampled_stack(*frames) for number, *frames in samples for _ in range(number)]
    for number, stack in enumerate(stacks, 1):
        build.thread_sample(START_NS + number * 10 * MS, cpu_ns=number * 10 * MS, stack=stack)
    end_ns = len(stacks) * 10 * MS
    build.thread(end_ns=START_NS + end_ns, end_cpu_ns=end_ns, tid=1, main=1)
    build.ended(end_ns, end_ns)
    (told,) = [row for row in rows_of(screen_of(build, 200)) if "computes" in row]
    return told


def test_the_line_that_calls_a_library_is_named_with_it(tmp_path):
    loop, calls = (f"{SHOP}/app.py", 5, "main"), (f"{SHOP}/app.py", 6, "main")
    also = (f"{SHOP}/app.py", 7, "main")
    compress = ("/usr/lib/python3/zipped.py", 80, "compress")

    told = computing_in(tmp_path, (55, loop), (30, calls, compress), (15, also, compress))

    assert "app.py:6 main computes, 45 % of it in zipped.py:80 compress: CPU time (1.00 s of 1.00 s)" in told
    assert told.endswith("See which lines call it: interpose profile --section cpu.")


def test_the_line_that_imports_is_named_with_imports(tmp_path):
    loop, imports = (f"{SHOP}/app.py", 5, "<module>"), [(f"{SHOP}/app.py", line, "<module>") for line in (2, 3)]
    load = ("<frozen importlib._bootstrap>", 1360, "_find_and_load")

    told = computing_in(tmp_path, (40, loop), (35, imports[0], load), (25, imports[1], load))

    assert "app.py:2 <module> computes, 60 % of it in imports: CPU time" in told


OWN = "its own code or short C functions"


@pytest.mark.parametrize(
    ("own", "imported", "of_libraries", "said"),
    [
        (95, 5, 0, " computes: CPU time of its own code or short C functions ("),
        (73, 27, 0, " computes, 73 % of it in its own code or short C functions, 27 % in imports: CPU time ("),
        (40, 20, 40, f" computes, 40 % of it in {OWN}, 40 % in library code, 20 % in imports: CPU time ("),
    ],
)
def test_own_code_has_only_its_share(tmp_path, own, imported, of_libraries, said):
    lines = [(f"{SHOP}/app.py", line, "<module>") for line in (9, 2, 7)]
    load = ("<frozen importlib._bootstrap>", 1360, "_find_and_load")
    libraries = [("/usr/lib/python3/many.py", number, f"some_{number}") for number in range(of_libraries // 10)]

    told = computing_in(
        tmp_path, (own, lines[0]), (imported, lines[1], load), *[(10, lines[2], each) for each in libraries]
    )

    assert f"app.py:9 <module>{said}" in told
    assert told.endswith("See its lines: interpose report --by line.")


def test_a_part_of_a_function_that_one_sample_saw_is_not_told(tmp_path):
    own, calls = (f"{SHOP}/app.py", 5, "main"), (f"{SHOP}/app.py", 6, "main")
    compress = ("/usr/lib/python3/zipped.py", 80, "compress")

    told = computing_in(tmp_path, (1, own), (1, calls, compress), (1, calls, (*compress[:2], "other")))

    assert "main computes: CPU time (30.0 ms of 30.0 ms)" in told


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (20, ": CPU time of its own code or short C functions ("),
        (7, ", 88 % of it in its own code or short C functions: CPU time ("),
        (2, ": CPU time ("),
    ],
)
def test_shares_are_told_of_parts_that_samples_support(tmp_path, own, said):
    loop, calls, load = (f"{SHOP}/app.py", 5, "main"), (f"{SHOP}/app.py", 6, "main"), ("/usr/lib/x.py", 8, "x")

    told = computing_in(tmp_path, (own, loop), (1, calls, load))

    assert f"main computes{said}" in told


def test_a_caller_that_one_sample_saw_is_not_told(tmp_path):
    work = (f"{SHOP}/app.py", 5, "work")
    callers = [(f"{SHOP}/app.py", 30 + number, f"caller_{number}") for number in range(4)]

    told = computing_in(tmp_path, *[(1, caller, work) for caller in callers])

    assert "app.py:5 work computes: CPU time of its own code or short C functions (40.0 ms of 40.0 ms). " in told


def test_the_finding_of_a_program_that_mostly_imports_names_imports(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    main, bootstrap = (f"{SHOP}/app.py", 2, "<module>"), "<frozen importlib._bootstrap>"
    load, execute = (bootstrap, 1360, "_find_and_load"), ("/usr/lib/python3/decimal.py", 3, "<module>")
    stacks = [*[build.sampled_stack(main, load, execute)] * 60, *[build.sampled_stack(main)] * 40]
    for number, stack in enumerate(stacks, 1):
        build.thread_sample(START_NS + number * 10 * MS, cpu_ns=number * 10 * MS, stack=stack)
    build.thread(end_ns=START_NS + 1000 * MS, end_cpu_ns=1000 * MS, tid=1, main=1)
    build.ended(1000 * MS, 1000 * MS)

    (told,) = [row for row in rows_of(screen_of(build, 200)) if "computes" in row]

    assert "app.py:2 <module> computes, 60 % of it in imports: CPU time (1.00 s of 1.00 s). See each import:" in told


def test_the_verdict_names_the_hot_function_its_line_and_its_caller(batch):
    screen = screen_of(batch)

    first = found_in(screen.survey)[0]
    told = Sentences([first], SHOP, screen.survey.matters_ns).of(first)

    assert (first.rule, first.bound_ns) == ("computing", 1000 * MS)
    assert told == (
        "batch.py:3 parse computes: CPU time of its own code or short C functions (1.00 s of 2.30 s), called from"
        " batch.py:20 main."
    )
    assert "Slowest: batch.py:3 parse computes" in " ".join(rows_of(screen))


def test_names_of_functions_cannot_move_the_cursor(batch):
    batch.sampled_strings = [text.replace(b"parse", b"par\x1b[2J") for text in batch.sampled_strings]

    assert not any("\x1b" in line for line in summary(screen_of(batch)))


def test_the_report_as_an_object_has_the_function(batch):
    found = whole_report(screen_of(batch))["findings"][0]

    assert (found["function"], found["site"]) == ("parse", f"{SHOP}/batch.py:3")


def screen_of_samples_in_state(directory, state):
    """The words of the first screen of a program that computed for 900 ms, all of whose samples are in this state."""
    build = Build(directory / "t.1.er", call_ns=0, inside_ns=0)
    stack = build.sampled_stack((f"{SHOP}/batch.py", 3, "parse"))
    for turn in range(1, 101):
        build.thread_sample(START_NS + turn * 10 * MS, cpu_ns=turn * 9 * MS, stack=stack, state=state)
    build.thread(end_ns=START_NS + 1000 * MS, end_cpu_ns=900 * MS, tid=1, main=1)
    build.ended(1000 * MS, 900 * MS)
    return " ".join(rows_of(screen_of(build)))


def test_a_program_whose_samples_all_wait_is_named_with_what_to_do(tmp_path):
    shown = screen_of_samples_in_state(tmp_path, WAITS)

    assert "computes: CPU time between recorded calls (900 ms of 1.00 s)." in shown
    assert "Too few samples to name its functions; count its lines: interpose run --lines own." in shown


def test_a_function_is_named_if_all_samples_were_ready_to_run(tmp_path):
    shown = screen_of_samples_in_state(tmp_path, READY)

    assert "batch.py:3 parse computes" in shown
    assert "Too few samples" not in shown


def test_samples_that_could_not_be_read_are_told(batch):
    for place in range(20):
        batch.thread_sample(START_NS + 2300 * MS + place, cpu_ns=2000 * MS, stack=NOT_READ)

    screen = screen_of(batch)

    told = "samples of code 250, of which 20 could not be read (docs/profile.md)"
    assert told in rows_of(screen)
    assert told in whole_report(screen)["warnings"]


def test_the_chain_of_callers_that_has_most_of_it_is_named(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    run, load, other = (f"{SHOP}/app.py", 40, "run"), (f"{SHOP}/app.py", 30, "load"), (f"{SHOP}/app.py", 31, "other")
    parse = (f"{SHOP}/app.py", 3, "parse")
    stacks = [build.sampled_stack(run, load, parse)] * 80 + [build.sampled_stack(run, other, parse)] * 20
    for number, stack in enumerate(stacks, 1):
        build.thread_sample(START_NS + number * 10 * MS, cpu_ns=number * 10 * MS, stack=stack)
    build.thread(end_ns=START_NS + 1000 * MS, end_cpu_ns=1000 * MS, tid=1, main=1)
    build.ended(1000 * MS, 1000 * MS)

    told = [row for row in rows_of(screen_of(build, 200)) if "computes" in row]

    assert "app.py:3 parse computes: CPU time of its own code or short C functions (1.00 s of 1.00 s), " in told[0]
    assert "called from app.py:30 load, below app.py:40 run (80 % of it)." in told[0]


def test_a_row_below_stands_only_where_there_is_room_for_its_figure(batch):
    narrow, wide = rows_of(screen_of(batch, 40)), rows_of(screen_of(batch, 80))

    assert [line for line in wide if line.startswith("parse")]
    assert [line for line in narrow if line.startswith(("parse", "wait for CPU", "aggregate"))] == []


@pytest.mark.parametrize("by", ["line", "function"])
def test_the_row_of_those_left_out_has_a_name(batch, capsys, by):
    assert main(["report", str(batch.write()), "--by", by, "--limit", "1"]) == 0

    assert re.match(r" *\d+ more rows? ", capsys.readouterr().out.splitlines()[-1])
