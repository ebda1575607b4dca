"""`interpose profile`: the sections of a performance profile, against what is known of the calls."""

import json
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.account import account
from interpose.analysis.consolidation.consolidate import consolidated
from interpose.analysis.consolidation.plain_consolidator import PlainConsolidator
from interpose.analysis.partial.coding import packed, unpacked
from interpose.analysis.partial.sections import ProfilePart, merged, question, reduced
from interpose.analysis.profile.profiled import profiled as sampled_profile
from interpose.analysis.profile.profiled import program_waits
from interpose.analysis.time import concurrency
from interpose.analysis.time.concurrency import solo_times
from interpose.analysis.time.run_queue import spent_by_thread, whole_of
from interpose.analysis.time.slices import slices_of
from interpose.experiments.model.collection import Collection
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats import markdown
from interpose.reports.screen.sections import SECTIONS, Profiled, profiled, told_unasked
from tests.build import START_NS, Build, event
from tests.random_calls import INTRINSICS, processes, write

MS = 1_000_000
on_disk = settings(max_examples=25)  # each of them writes an experiment


def made_of(given_processes, sampled=()):
    directory = tempfile.TemporaryDirectory()
    path, found = write(Path(directory.name) / "t.1.er", given_processes, sampled)
    return directory, Experiment(str(path)), found


def values(made, name):
    """The rows of a section as machines get them."""
    table = SECTIONS[name](made).table
    return [table.values(row) for row in table.rows]


@on_disk
@given(processes(), st.one_of(st.none(), st.integers(1, 3)), st.sets(st.integers(0, 1)))
@example([[([], 100)]], None, {0})
def test_the_columns_of_every_section_add_up_to_the_totals(made, limit, sampled):
    directory, experiment, found = made_of(made, sampled)
    with directory:
        shown = profiled(Analysis(experiment), limit=limit)
        session = {row["figure"]: row["value"] for row in values(shown, "session")}
        wall_ns, cpu_ns = session["run time (of all threads)"], session["CPU time"]
        resource, files = values(shown, "resource"), values(shown, "files")
        waits = [row["wait_ns"] for row in values(shown, "wait") if row["section"] or row["module"]]
        of_cpu = [row["cpu_ns"] for row in values(shown, "cpu") if row["section"] or row["module"]]
        sections, moves = values(shown, "section"), values(shown, "transaction")

    assert limit is None or max(map(len, (resource, files, sections))) <= limit + 1
    assert limit is None or sum(row["transaction"] != "" for row in moves) <= limit + 1
    assert sum(row["total_ns"] for row in resource) == wall_ns
    assert sum(row["cpu_ns"] for row in resource) == cpu_ns
    assert sum(row["calls"] for row in resource) == len(found)
    assert sum(of_cpu) == sum(row["cpu_ns"] for row in sections) == cpu_ns
    assert sum(waits) == sum(row["wait_ns"] for row in resource) == wall_ns - cpu_ns
    assert sum(row["response_ns"] for row in moves if row["transaction"]) == wall_ns
    assert session["CPU time"] + session["wait"] + (session["wait for CPU"] or 0) == wall_ns
    of_files = [call for call in found if INTRINSICS[call.intrinsic][1] in ("file", "net")]
    assert sum(row["time_ns"] for row in files) == sum(call.self_wall_ns for call in of_files)
    assert sum(row["operations"] for row in files) == len(of_files)


@on_disk
@given(processes(), st.sets(st.integers(0, 1)))
def test_the_parts_below_a_line_add_up_to_it(made, sampled):
    directory, experiment, _ = made_of(made, sampled)
    with directory:
        shown = profiled(Analysis(experiment))
        for name, figure in (("wait", "wait_ns"), ("cpu", "cpu_ns")):
            head, parts = None, []
            for row in [*values(shown, name), {"section": "end", figure: 0}]:
                if row["section"]:
                    assert head is None or not parts or sum(parts) == head
                    head, parts = row[figure], []
                else:
                    parts.append(row[figure])


@pytest.mark.long
@on_disk
@given(st.lists(processes(), min_size=2, max_size=4))
def test_sections_of_several_experiments_are_those_of_reading_all_at_once(made):
    parts, asked = [], question([need for each in SECTIONS.values() for need in each.needs], 4)
    with ExitStack() as stack:
        opened = []
        for directory, experiment, _ in (made_of(each, {number % 2}) for number, each in enumerate(made)):
            stack.enter_context(directory)
            opened.append(experiment)
            text = packed(reduced(Analysis(experiment), asked), ProfilePart)
            parts.append(unpacked(text, ProfilePart))
        at_once = profiled(Analysis(Collection(opened)))
    one_by_one = Profiled(merged([merged(parts[:1]), merged(parts[1:])]))

    for name in set(SECTIONS) - {"session", "activity"}:
        assert sorted(map(str, values(one_by_one, name))) == sorted(map(str, values(at_once, name))), name
    figures = ("run time (of all threads)", "CPU time", "wait", "calls recorded", "processes")
    whole, *each_one = (
        {row["figure"]: row["value"] for row in values(each, "session")}
        for each in (one_by_one, *map(Profiled, parts))
    )
    assert [whole[name] for name in figures] == [sum(each[name] for each in each_one) for name in figures]
    slices = [values(Profiled(part), "activity") for part in parts]
    for number, row in enumerate(values(one_by_one, "activity")):
        assert row["calls"] == sum(each[number]["calls"] for each in slices)
        assert row["elapsed_ns"] == sum(each[number]["elapsed_ns"] for each in slices) // len(slices)


@on_disk
@given(processes(), st.integers(1, 7))
def test_every_call_is_in_the_slice_in_which_it_began(made, number):
    directory, experiment, found = made_of(made)
    with directory:
        slices = slices_of(Analysis(experiment), number)
        plain = slices_of(Analysis(experiment, consolidator=PlainConsolidator), number)

    assert [each.calls for each in slices.slices] == [each.calls for each in plain.slices]
    assert slices.slices[0].start_ns == START_NS
    assert all(one.stop_ns == other.start_ns for one, other in zip(slices.slices, slices.slices[1:], strict=False))
    for each in slices.slices:
        inside = [call for call in found if each.start_ns <= START_NS + call.start_ns < each.stop_ns]
        assert each.calls[3] == len(inside)
        assert each.calls[0] == sum(call.self_wall_ns for call in inside)


@on_disk
@given(processes())
def test_time_is_solo_where_no_other_thread_is_in_a_call_that_does_something(made):
    directory, experiment, _ = made_of(made)
    with directory:
        solo = solo_times(experiment)

    # What is one process's is one list of threads in `made`; each instant is looked at by itself.
    expected = Counter()
    for threads in made:
        innermost = [instants(roots) for roots, _ in threads]
        for instant in set().union(*innermost):
            there = [each[instant] for each in innermost if instant in each]
            busy = [kind for kind in there if kind != "sleep"]
            for kind in there:
                others = len(busy) - (kind != "sleep")
                expected[kind] += not others
    by_kind = Counter()
    for (kind, _), time_ns in solo.items():
        by_kind[kind] += time_ns
    assert +by_kind == +expected


def instants(roots):
    """The kind of the innermost call at each instant in which a thread was in one."""
    found = {}
    for root in roots:
        for call in reversed(list(root.walk())):
            span = range(call.start_ns, call.start_ns + call.wall_ns)
            found.update(dict.fromkeys(span, INTRINSICS[call.intrinsic][1]))
    return found


def test_solo_is_not_reckoned_of_too_many_calls(tmp_path, monkeypatch):
    monkeypatch.setattr(concurrency, "CALLS_AT_MOST", 1)
    build = Build(tmp_path / "t.1.er")
    number = build.intrinsic("os.write", "file")
    build.block([event(0, 5, call=1, intrinsic=number), event(9, 5, call=1, thread=2, intrinsic=number)])
    for _ in range(2):
        build.thread(end_ns=START_NS + 20, recorded=1)
    made = profiled(Analysis(Experiment(str(build.write()))))

    assert [row["solo_ns"] for row in values(made, "resource") if row["kind"] == "file"] == [None]
    assert any("solo: not calculated" in note for note in SECTIONS["resource"](made).notes)


@pytest.fixture
def shop(tmp_path):
    """Queries from own lines, one of them by way of a library; the second thread waited for CPU."""
    build = Build(tmp_path / "t.1.er")
    query, stat_ = build.intrinsic("sqlite3.Cursor.execute", "db"), build.intrinsic("os.stat", "file")
    save = build.stack(build.site("/home/u/shop/orders.py", 88, "save"))
    session = build.stack(build.site("/usr/lib/sqlalchemy/orm.py", 5, "flush", own=0), save)
    load = build.stack(build.site("/home/u/shop/orders.py", 99, "load"))
    file = build.string("/etc/shop.conf")
    build.block(
        [
            event(0, 300 * MS, 100 * MS, call=1, intrinsic=query, stack=session),
            event(400 * MS, 100 * MS, 0, call=2, intrinsic=query, stack=load),
            event(600 * MS, 0, 0, call=3, intrinsic=stat_, stack=load, detail=file),
        ]
    )
    build.thread(end_ns=START_NS + 1000 * MS, end_cpu_ns=200 * MS, tid=812, main=1, recorded=3, run_delay_ns=50 * MS)
    for place in range(5):
        used = {"cpu_ns": place * 50 * MS, "run_delay_ns": place * 12 * MS}
        build.sample(time_ns=START_NS + place * 250 * MS, kind=2, **used)
    return build.write()


def test_waits_are_told_with_the_line_that_invoked_them_and_the_library_between(shop):
    rows = values(profiled(Analysis(Experiment(str(shop)))), "wait")

    assert [(row["section"], row["invoked_by"], row["via"], row["wait_ns"] // MS) for row in rows][1:4] == [
        ("sqlite3.Cursor.execute", "", "", 300),
        ("", "save /home/u/shop/orders.py:88", "flush (/usr/lib/sqlalchemy/orm.py)", 200),
        ("", "load /home/u/shop/orders.py:99", "", 100),
    ]


def test_wall_time_is_cpu_wait_and_run_queue_delay(shop):
    process = Experiment(str(shop)).founder
    spent = whole_of(spent_by_thread([account(process, consolidated(process, ("thread",)).by_thread())]).values())

    assert (spent.wall_ns, spent.cpu_ns, spent.delay_ns) == (1000 * MS, 200 * MS, 50 * MS)
    assert spent.wall_ns == spent.cpu_ns + spent.wait_ns + spent.delay_ns
    assert spent.has_delay


def test_what_is_estimated_is_said_with_its_margin_of_error(shop):
    made = profiled(Analysis(Experiment(str(shop))), slices=4)
    rows = values(made, "activity")

    assert [row["cpu_ns"] for row in rows] == [50 * MS] * 4
    assert [row["run_delay_ns"] for row in rows] == [12 * MS] * 4
    assert [row["calls"] for row in rows] == [1, 1, 1, 0]
    margin = "estimated from the 4 samples have a margin of error of 98/sqrt(n) = 49.0 %"
    assert any(margin in note for note in SECTIONS["activity"](made).notes)
    assert any(margin in note for note in SECTIONS["session"](made).notes)


@pytest.fixture
def computing(tmp_path):
    """An experiment that was sampled: a request in which `total` ran, and code around it in which `spin` did."""
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    request, query = build.intrinsic("flask.Flask.wsgi_app", "logic"), build.intrinsic("sqlite3.Cursor.execute", "db")
    app = "/home/u/shop/app.py"
    serve = build.stack(build.site(app, 5, "serve"))
    inside = {"inner_wall_ns": 10 * MS, "inner_cpu_ns": MS, "detail": build.string("/orders")}
    build.block(
        [
            event(20 * MS, 10 * MS, MS, call=2, parent=1, intrinsic=query, stack=serve),
            event(0, 100 * MS, 60 * MS, call=1, intrinsic=request, stack=serve, **inside),
        ]
    )
    build.thread(end_ns=START_NS + 500 * MS, end_cpu_ns=400 * MS, tid=812, main=1, recorded=2)
    total = build.sampled_stack((app, 9, "total"))
    spin = build.sampled_stack((app, 1, "<module>"), (app, 20, "spin"))
    for number in range(1, 10):
        build.thread_sample(
            START_NS + number * 10 * MS, cpu_ns=number * 6 * MS, stack=total, call=1, intrinsic=request
        )
    for number in range(1, 40):
        build.thread_sample(START_NS + (100 + number * 10) * MS, cpu_ns=(60 + number * 8) * MS, stack=spin)
    build.ended(500 * MS, 400 * MS)
    return build.write()


@pytest.mark.parametrize("words", [(), ("--replace",)])
def test_code_that_was_sampled_is_one_resource_and_a_section_for_each_function(interpose_here, computing, words):
    if words:
        assert interpose_here("consolidate", *words, str(computing)).returncode == 0
    made = profiled(Analysis(Experiment(str(computing))))
    resource = {(row["kind"], row["resource"]): row for row in values(made, "resource")}
    section = {row["section"]: row["cpu_ns"] for row in values(made, "section")}
    procedure = {row["procedure"]: row for row in values(made, "procedure")}

    code = resource["<code>", ""]
    assert (code["total_ns"], code["cpu_ns"], code["wait_ns"]) == (400 * MS, 340 * MS, 60 * MS)
    assert resource["logic", "/orders"]["cpu_ns"] == 59 * MS
    assert sum(row["cpu_ns"] for row in resource.values()) == sum(section.values()) == 400 * MS
    assert section["spin"] == 340 * MS
    assert section["total"] == 59 * MS
    made.limit = 1
    shown = [(row["section"] or row["module"], row["cpu_ns"]) for row in values(made, "section")]
    assert shown == [("spin", 340 * MS), (".OTHER", 60 * MS)]
    assert (procedure["spin"]["calls"], procedure["spin"]["cpu_ns"]) == (0, 340 * MS)
    for name in ("section", "cpu", "procedure"):
        notes = " ".join(SECTIONS[name](made).notes)
        assert "estimated from samples" in notes
        assert "not recorded" not in notes


def test_a_file_that_took_no_time_is_listed(shop):
    (row,) = values(profiled(Analysis(Experiment(str(shop)))), "files")

    assert (row["file"], row["operations"], row["other"], row["time_ns"]) == ("/etc/shop.conf", 1, 1, 0)


def test_what_is_not_recorded_is_said(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.thread(end_ns=START_NS + 100)
    made = profiled(Analysis(Experiment(str(build.write()))))
    notes = {name: " ".join(SECTIONS[name](made).notes) for name in SECTIONS}

    assert "wait for CPU: not recorded" in notes["session"]
    assert "samples: not recorded (record with INTERPOSE_SAMPLE=on)" in notes["activity"]
    for name in ("section", "procedure", "cpu"):
        assert "not recorded (record with INTERPOSE=calls,lines)" in notes[name]
    assert "mode of opening is not recorded" in notes["files"]


def test_the_command_shows_all_sections_or_those_that_are_asked_for(interpose_here, shop):
    whole = interpose_here("profile", str(shop))
    one = interpose_here("profile", str(shop), "--section", "files", "--format", "json")
    unasked = told_unasked(profiled(Analysis(Experiment(str(shop)))))

    assert (whole.returncode, whole.stderr) == (0, "")
    assert whole.stdout.count("\nmade from: ") == len(unasked)
    assert set(SECTIONS) - set(unasked) == {"identified"}
    assert json.loads(one.stdout)[0]["file"] == "/etc/shop.conf"
    assert interpose_here("profile", str(shop), "--format", "markdown").stdout.count("## ") == len(unasked)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--format", "csv"], "--format csv takes a single --section"),
        (["--section", "sections"], "sections is not a choice. Did you mean section?"),
        (["--slices", "100000"], "--slices must be at most 1000"),
        (["--section", "activity", "--limit", "3"], "--limit does not apply to --section activity: use --slices N"),
        (["--section", "session", "--limit", "3"], "--limit does not apply to --section session"),
    ],
)
def test_what_cannot_be_shown_is_told(interpose_here, shop, words, told):
    done = interpose_here("profile", str(shop), *words)

    assert done.returncode == 2
    assert told in done.stderr


def test_where_lines_were_recorded_sections_and_procedures_are_told_from_them(traced, interpose_here):
    done = traced(
        """
        def inner(n):
            total = 0
            for i in range(n):
                total += i * i
            return total
        def outer():
            return sum([inner(500) for _ in range(40)])
        outer()
        """,
        INTERPOSE="calls,lines",
    )

    def told(section, *words):
        out = interpose_here("profile", "--section", section, *words, "--format", "json", done.path).stdout
        return json.loads(out)

    usage = told("section")
    session = {row["figure"]: row["value"] for row in told("session")}
    assert {"inner", "outer", ".OUTSIDE", ".INTERPOSE", ".UNTRACED"} <= {row["section"] for row in usage}
    assert sum(row["cpu_ns"] for row in usage) == session["CPU time"]
    assert all(row["solo_ns"] == row["cpu_ns"] for row in usage)
    first, others = told("section", "--limit", "1")
    most = max(usage, key=lambda row: row["cpu_ns"])
    assert (first, others["module"], first["cpu_ns"] + others["cpu_ns"]) == (most, ".OTHER", session["CPU time"])
    procedures = {row["procedure"]: row for row in told("procedure")}
    assert (procedures["inner"]["entered"], procedures["outer"]["entered"]) == (40, 1)
    assert procedures["inner"]["cpu_ns"] >= procedures["inner"]["solo_ns"] > 0
    assert procedures["outer"]["cpu_ns"] >= procedures["inner"]["cpu_ns"]
    assert "not recorded (record with INTERPOSE=calls,lines)" not in interpose_here("profile", done.path).stdout


def test_the_longest_transactions_are_shown_and_the_others_summed(tmp_path, interpose_here):
    build = Build(tmp_path / "t.1.er")
    mark = build.intrinsic("interpose.transaction", "logic", transaction="is")
    took_ms = {"GET /c": 30, "GET /a": 20, "GET /b": 7, "GET /d": 3}
    begins_ns, calls = 0, []
    for number, (name, ms) in enumerate(took_ms.items(), 1):
        calls.append(event(begins_ns, ms * MS, MS, call=number, intrinsic=mark, detail=build.string(name)))
        begins_ns += ms * MS
    build.events(calls)
    build.thread(end_ns=START_NS + begins_ns, end_cpu_ns=4 * MS, main=1)
    build.ended(begins_ns, 4 * MS)
    path = str(build.write())

    def told(*words):
        out = interpose_here("profile", path, "--section", "transaction", *words, "--format", "json").stdout
        return [row for row in json.loads(out) if row["transaction"]]

    names = [row["transaction"] for row in told("--limit", "2")]
    others = told("--limit", "2")[-1]
    assert names == ["GET /a", "GET /c", ".OTHERS"]
    assert (others["mean_ns"], others["response_ns"], others["cpu_ns"]) == (None, 10 * MS, 2 * MS)
    for figure in ("count", "response_ns", "overlap_ns", "thread_ns", "cpu_ns"):
        assert sum(row[figure] for row in told("--limit", "2")) == sum(row[figure] for row in told())


def test_what_a_killed_process_waited_for_cpu_is_the_same_in_the_session_and_on_the_first_screen(tmp_path):
    build = Build(tmp_path / "t.1.er", pid=811)
    build.thread(tid=811, main=1, seen_ns=START_NS + 500 * MS)
    spin = build.sampled_stack(("/work/app.py", 1, "<module>"), ("/work/app.py", 20, "spin"))
    for number in range(1, 11):
        at_ns = START_NS + number * 50 * MS
        build.thread_sample(at_ns, cpu_ns=number * 20 * MS, run_delay_ns=number * 30 * MS, stack=spin)
    analysis = Analysis(Experiment(str(build.write())))

    session = {row["figure"]: row["value"] for row in values(profiled(analysis), "session")}
    waits = program_waits(analysis, sampled_profile(analysis))

    assert session["wait for CPU"] == waits.processor_ns + waits.in_calls_ns == 270 * MS


def test_a_note_of_any_length_is_shown():
    marks = 200_000 * "."

    assert markdown.sentence(f"not traced: ({marks}x@y{marks}") == f"not traced: (`{marks}x@y`{marks}"
