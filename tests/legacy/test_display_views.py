"""`interpose display`: the commands of er_print, from words, scripts and a prompt."""

import os
import pty
import re
import stat
import subprocess
import sys

import pytest

from interpose.cli.er_print.commands import VERBS
from interpose.cli.er_print.prompt import Completer
from interpose.cli.er_print.views import Session
from interpose.experiments.maintenance.archives import Archive
from interpose.experiments.model.experiment import Experiment
from tests.build import START_NS, Build, event

MS = 1_000_000
SOURCE = '''"""Orders."""


def save(order):
    write(order)
    return order


def main():
    for order in "ab":
        save(order)
        log(order)
'''


@pytest.fixture
def shop(tmp_path):
    """Orders are written from one line and logged from another; one write fails."""
    directory = tmp_path / "shop"
    directory.mkdir()
    source = directory / "orders.py"
    source.write_text(SOURCE)
    build = Build(tmp_path / "t.1.er", cwd=str(directory), settings={"INTERPOSE": "1"})
    query, write = build.intrinsic("sqlite3.Cursor.execute", "db"), build.intrinsic("os.write", "file")
    module = build.stack(build.site(str(source), 1, "<module>"))
    main = build.stack(build.site(str(source), 11, "main"), module)
    save = build.stack(build.site(str(source), 5, "save"), main)
    log = build.stack(
        build.site("/usr/lib/log.py", 5, "emit", own=0), build.stack(build.site(str(source), 12, "main"), module)
    )
    out, error = build.string("/data/out.txt"), build.string("OSError")
    build.block(
        [
            event(0, 300 * MS, 40 * MS, call=1, intrinsic=query, stack=save),
            event(400 * MS, 100 * MS, 100 * MS, call=2, intrinsic=write, stack=log, bytes=700, detail=out),
            event(600 * MS, 50 * MS, 0, call=3, intrinsic=write, stack=log, bytes=9000, detail=out),
            event(700 * MS, 10 * MS, 0, call=4, intrinsic=write, stack=log, detail=out, error=error),
        ]
    )
    build.thread(end_ns=START_NS + 1000 * MS, end_cpu_ns=200 * MS, tid=812, main=1, recorded=4)
    build.ended(1000 * MS, 200 * MS)
    build.write()
    with Archive(str(build.directory)) as archive, open(source, "rb") as file:
        archive.add(str(source), "source", file.fileno(), False)
    return build.directory


@pytest.fixture
def display(interpose_here, shop):
    """What `interpose display` writes, for words about the shop."""

    def run(*words, **options):
        return interpose_here("display", str(shop), *words, **options)

    return run


def rows(text):
    """The lines below the heads of a table, in cells; the last one is the name."""
    lines = [line for line in text.splitlines() if re.match(r" *[\d.]", line)]
    return {cells[-1].strip(): cells[:-1] for cells in (re.split(r"  +", line.strip()) for line in lines)}


def test_functions_show_what_each_took_and_what_all_took(display):
    shown = rows(display("-functions").stdout)

    assert next(iter(shown)) == "<Total>"
    assert shown["<Total>"] == ["1.000", "100.00", "1.000", "0.200", "0.800", "4"]
    assert shown["sqlite3.Cursor.execute"] == ["0.300", "30.00", "0.300", "0.040", "0.260", "1"]
    assert shown["os.write"] == ["0.160", "16.00", "0.160", "0.100", "0.060", "3"]
    assert shown["save"] == ["0.", "0.", "0.300", "0.", "0.", "0"]
    assert shown["main"][2] == "0.460"


def test_commands_are_done_in_order_with_or_without_the_dash(display):
    with_dash = display("-limit", "2", "-functions", "-sort", "i.db", "-objects").stdout
    without = display("limit", "2", "functions", "sort", "i.db", "objects").stdout

    assert with_dash == without
    assert "Functions sorted by metric: Exclusive Wall" in with_dash
    assert "Objects sorted by metric: Inclusive db" in with_dash


def test_the_experiment_may_stand_first_or_last(interpose_here, shop):
    shown = interpose_here("display", "-functions", str(shop)).stdout

    assert shown == interpose_here("display", str(shop), "functions").stdout


@pytest.mark.parametrize(
    ("spec", "heads", "total"),
    [
        ("e.%wall:i+cpu:name", ["Excl. Wall sec.", "Excl. Wall %", "Incl. CPU ns", "Name"], "1.000;100.00;200000000"),
        ("dbn:e.db", ["Excl. db calls", "Incl. db calls", "Excl. db sec.", "Name"], "1;1;0.300"),
        ("name:!wall:e+bytes", ["Name", "Excl. Bytes"], "9700"),
        ("ei.wait", ["Excl. Wait sec.", "Incl. Wait sec.", "Name"], "0.800;0.800"),
        ("i+errors:i+filen", ["Incl. Errors", "Incl. file calls", "Name"], "1;3"),
    ],
)
def test_columns_are_those_that_the_metrics_say(display, spec, heads, total):
    lines = display("-printmode", ";", "-metrics", spec, "-functions").stdout.splitlines()

    assert lines[0] == ";".join(f'"{head}"' for head in heads)
    assert total in lines[1].replace('"', "")


def test_callers_stand_above_and_called_ones_below(display):
    text = display("-metrics", "i.wall", "-csingle", "main").stdout
    found = [re.split(r"  +", line.strip()) for line in text.splitlines()[5:]]

    assert found == [
        ["0.460", "0.460", "<module>"],
        ["0.", "0.460", "*main"],
        ["0.300", "0.300", "save"],
        ["0.160", "0.160", "emit"],
    ]


def test_a_fragment_grows_and_shrinks(display):
    done = display("-metrics", "i.wall", "-csingle", "save", "-cprepend", "main", "-crmlast")

    parts = done.stdout.split("Callers and callees")[1:]
    assert ["*save" in part for part in parts] == [True, True, False]
    assert ["*main" in part for part in parts] == [False, True, True]
    assert display("-cappend", "save").stderr == "interpose: use csingle FUNCTION first\n"


def test_all_callers_and_callees_are_shown_for_each_function(display):
    text = display("-metrics", "i.wall", "-callers-callees").stdout

    assert [line.split("*")[1] for line in text.splitlines() if "*" in line][:2] == ["<Total>", "<code>"]
    assert text.count("*") == 9


def test_the_tree_has_the_largest_branch_first(display):
    text = display("-metrics", "i.wall", "-calltree").stdout

    names = [line.split("  ", 1)[1] for line in text.splitlines() if line.strip()[:1].isdigit()]
    assert [name.strip(" |+-") for name in names] == [
        "<Total>",
        "<code>",
        "<module>",
        "main",
        "save",
        "sqlite3.Cursor.execute",
        "emit",
        "os.write",
        "<overhead>",
    ]


def test_a_source_has_metrics_to_the_left_and_marks_at_hot_lines(display):
    text = display("-metrics", "i.wall:i+calls", "-source", "orders.py").stdout
    lines = {int(found[1]): line for line in text.splitlines() if (found := re.search(r" ([1-9]\d*)\.(?= |$)", line))}

    assert lines[1].split()[:3] == ["##", "0.460", "4"]
    assert lines[5].split()[:2] == lines[11].split()[:2] == ["0.300", "1"]
    assert lines[12].split()[:3] == ["##", "0.160", "3"]  # three quarters of the calls
    assert lines[6].split()[:2] == ["0.", "0."]
    assert lines[2].split() == ["2."]
    assert "##" not in lines[6]
    numbered = text.splitlines()
    assert numbered[numbered.index(lines[4]) - 1].strip() == "<Function: save>"


def test_from_which_share_on_a_line_is_hot_can_be_said(display):
    assert display("-metrics", "i.wall", "-sthresh", "50", "-source", "main").stdout.count("##") == 3
    assert display("-metrics", "i.wall", "-sthresh", "100", "-source", "main").stdout.count("##") == 1


def test_a_source_is_found_in_directories_that_are_named(display, shop, tmp_path):
    for file in (shop / "archives").iterdir():
        file.unlink()
    (tmp_path / "shop" / "orders.py").rename(tmp_path / "orders.py")

    assert "source missing or changed" in display("-source", "orders.py").stderr
    assert "def save" in display("-addpath", str(tmp_path), "-source", "orders.py").stdout
    assert "def save" in display("-pathmap", str(tmp_path / "shop"), str(tmp_path), "-source", "save").stdout


def test_lines_are_told_with_their_file(display):
    shown = rows(display("-metrics", "i.wall", "-lines").stdout)

    assert shown["save, line 5 in orders.py"] == ["0.300"]
    assert shown["main, line 12 in orders.py"] == ["0.160"]


def test_objects_can_be_hidden_or_shown_by_what_was_entered(display):
    by_api = rows(display("-api", "library", "-functions").stdout)
    hidden = rows(display("-object_hide", "log.py,sqlite3", "-functions").stdout)
    selected = rows(display("-object_select", "orders.py", "-functions").stdout)

    assert by_api["emit"][0] == "0.160"
    assert "os.write" not in by_api
    assert hidden["<sqlite3>"][0] == "0.300"
    assert "emit" not in hidden
    assert "save" in selected
    assert "emit" not in selected
    assert "api" in display("-api", "library", "-object_list").stdout


def test_input_and_output_is_counted_by_size_and_by_file(display):
    stat_text = display("-iostat").stdout
    assert re.search(r"write calls +3 +0\.160", stat_text)
    assert re.search(r"of them failed +1", stat_text)
    assert re.search(r"0 - 1\.00 KiB +1 +0\.100", stat_text)
    assert re.search(r"8\.00 KiB - 32\.0 KiB +1 +0\.050", stat_text)
    assert re.search(r"largest +9000", stat_text)

    by_file = rows(display("-ioactivity").stdout)
    assert by_file["/data/out.txt"] == by_file["<Total>"] == ["0", "0", "0.", "9700", "3", "0.160", "0", "0.", "1"]

    detail = rows(display("-iodetail").stdout)
    assert detail["/data/out.txt"] == ["3", "0.160", "0.100", "9700", "0", "9000", "1", "os.write"]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("threads", "Process 4194305, thread 812 main"),
        ("processes", "Process 4194305"),
        ("experiments", "t.1.er"),
        ("header", "INTERPOSE=1"),
        ("overview", "[X]  *  wall"),
        ("statistics", "events recorded"),
        ("samples", "wait for CPU"),
        ("metric_list", "dbn"),
        ("fsummary", "sqlite3.Cursor.execute"),
        ("describe", "INTRINSIC"),
        ("help", "callers-callees"),
        ("object_list", "orders.py"),
    ],
)
def test_every_other_view_is_there(display, command, shown):
    done = display(command)

    assert (done.returncode, done.stderr) == (0, "")
    assert shown in done.stdout


def test_what_is_written_in_html_is_escaped(display):
    text = display("-printmode", "html", "-functions").stdout

    assert "<td>&lt;Total&gt;</td>" in text
    assert "<Total>" not in text


def test_output_goes_to_a_file_and_back(display, tmp_path):
    path = tmp_path / "out.txt"
    done = display("-outfile", str(path), "-objects", "-outfile", "-", "-lines", "-appendfile", str(path), "-functions")

    assert done.stdout.startswith("Lines")
    assert [line for line in path.read_text().splitlines() if "sorted" in line] == [
        "Objects sorted by metric: Exclusive Wall",
        "Functions sorted by metric: Exclusive Wall",
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-functons"], "-functons is not a command; did you mean functions?"),
        (["functons"], "functons is not a command or an experiment; did you mean functions?"),
        (["-metrics", "e.wal"], "wal is not a metric; did you mean wall?"),
        (["-sort", "i.dbb"], "dbb is not a metric; did you mean db?"),
        (["-csingle", "sav"], "sav: no such function; did you mean save?"),
        (["-object_hide", "order.py"], "order.py: no such object"),
        (["-limit", "x"], "limit: 'x' is not a number from 0 to 1000000000"),
        (["-limit"], "limit: N is missing"),
        (["-printmode", "pdf"], "pdf: must be text, html, delimiter, or a single character"),
        (["-outfile", "/nowhere/x"], "/nowhere/x: No such file or directory"),
        (["-source", "os.write"], "os.write: has no source"),
        (["-script", "/nowhere"], "/nowhere: No such file or directory"),
        (["-fsingle", "save", "7"], "save 7: choose by number: 1 save"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(display, words, told):
    done = display(*words)

    assert done.returncode in (1, 2)
    assert done.stderr.startswith("interpose: ")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_experiment_that_is_not_there_is_named(interpose_here):
    assert interpose_here("display", "-functions", "no.1.er").stderr == "interpose: no.1.er: no such experiment\n"


def test_a_script_is_read_line_by_line_and_its_mistakes_have_a_place(display, tmp_path):
    script = tmp_path / "views"
    script.write_text("# the largest\nlimit 1\nfunctions\n\n-objects\nfunctons\nlines\n")

    done = display("-script", str(script))

    assert done.returncode == 2
    assert done.stderr == f"interpose: {script}:6: functons is not a command; did you mean functions?\n"
    assert "Objects" in done.stdout
    assert "Lines" not in done.stdout


def test_commands_come_from_a_pipe_until_quit(display):
    done = display(input="limit 1\nfunctions\nquit\nlines\n")

    assert (done.returncode, done.stderr) == (0, "")
    assert "Functions" in done.stdout
    assert "Lines" not in done.stdout


@pytest.fixture
def defaults(tmp_path):
    """A function that writes the file of defaults; gives the variables by which it is found."""

    def write(text, mode=0o600):
        path = tmp_path / "config" / "interpose" / "displayrc"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(mode)
        return {"XDG_CONFIG_HOME": str(tmp_path / "config")}

    return write


def test_defaults_are_read_from_a_file_that_is_ones_own(display, defaults):
    done = display("-functions", variables=defaults("dmetrics i+calls\ndsort name\nfunctions\nfoo\n"))

    assert "Functions sorted by metric: Name" in done.stdout
    assert done.stdout.count("Functions") == 1
    assert [line.split(":", 1)[1] for line in done.stderr.splitlines()] == [
        line
        for line in (done.stderr.splitlines()[0].split(":", 1)[1], done.stderr.splitlines()[1].split(":", 1)[1])
        if "functions: has no default" in line or "foo is not a command" in line
    ]


def test_defaults_that_others_may_write_are_not_used(display, defaults):
    done = display("-functions", variables=defaults("dsort name\n", 0o666))

    assert "sorted by metric: Exclusive Wall" in done.stdout
    assert "displayrc: ignored: others may write to it" in done.stderr


def test_the_prompt_goes_on_after_mistakes_and_ends_with_the_file(shop, own_environment):
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "interpose", "display", str(shop)],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**own_environment, "TERM": "dumb"},
        cwd=shop.parent,
    )
    os.close(follower)
    text = ""

    def until(words):
        nonlocal text
        while words not in text:
            text += os.read(leader, 4096).decode()
        found, _, text = text.partition(words)
        return found

    until("(display) ")
    os.write(leader, b"functons\n")
    until("did you mean functions?")
    os.write(leader, b"limit 2\nfunctions\n")
    until("sqlite3.Cursor.execute")
    until("(display) ")
    os.write(leader, b"\x04")
    assert process.wait(30) == 0
    os.close(leader)
    history = shop.parent / "state" / "interpose" / "display-history"
    assert history.read_text().split() == ["functons", "limit", "2", "functions"]
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


def test_words_are_completed_by_what_the_command_takes(shop):
    completer = Completer(Session(Experiment(str(shop)), sys.stdout))

    assert completer.possible("", "call") == ["callers-callees", "calltree"]
    assert completer.possible("csingle ", "sa") == ["save"]
    assert completer.possible("sort ", "i.wa") == ["i.wait", "i.wall"]
    assert completer.possible("object_hide ", "sq") == ["sqlite3"]
    assert completer.possible("nothing ", "") == []


def test_every_command_has_help_and_a_name_of_its_own():
    assert len({verb.name for verb in VERBS}) == len(VERBS)
    assert all(verb.help for verb in VERBS)


def test_filters_leave_the_calls_for_which_they_hold(display):
    text = display("-filters", "KIND == 'file' && WALL > 40ms && FUNC('^main') SOME IN STACK", "-functions").stdout
    shown = rows(text)

    assert "filter: KIND == 'file'" in text
    assert shown["<Total>"] == shown["os.write"] == ["0.150", "100.00", "0.150", "0.100", "0.050", "2"]
    assert "<code>" not in shown
    assert rows(display("-filters", "BYTES > 1KiB", "-ioactivity").stdout)["<Total>"][3:6] == ["9000", "1", "0.050"]


def test_filters_can_be_switched_off(display):
    assert display("-filters").stdout.split() == ["Filter", "none"]
    done = display("-filters", "KIND == 'db'", "-filters", "off", "-functions")
    assert done.stdout == display("-functions").stdout


def test_an_expression_that_means_nothing_is_shown_with_the_place(display, tmp_path):
    script = tmp_path / "views"
    script.write_text("limit 3\nfilters KIND = 'db'\n")

    done = display("-script", str(script))

    told, expression, caret = done.stderr.splitlines()
    assert told.startswith(f"interpose: {script}:2: ")
    assert expression.strip() == "KIND = 'db'"
    assert caret.strip() == "^"
    assert "DEPTH: not known" in display("-filters", "DEPTH > 1").stderr


def test_of_records_alone_all_is_shown_but_what_needs_events(display, interpose_here, shop):
    before = display("-functions", "-calltree", "-ioactivity").stdout
    assert interpose_here("consolidate", "--replace", str(shop)).returncode == 0

    assert display("-functions", "-calltree", "-ioactivity").stdout == before
    assert "sizes: not recorded (record without INTERPOSE_CONSOLIDATE)" in display("-iostat").stdout
    told = display("-filters", "KIND == 'db'", "-functions").stderr
    assert "single events were not recorded (record without INTERPOSE_CONSOLIDATE)" in told
    activity = interpose_here("profile", str(shop), "--section", "activity")
    assert (activity.returncode, activity.stderr) == (0, "")
    assert "single calls: not recorded (record without INTERPOSE_CONSOLIDATE)" in activity.stdout


@pytest.mark.parametrize("above", ["10ms", "1ns"])
@pytest.mark.parametrize("callers", ["main", "<module>"])
def test_inclusive_figures_of_callers_are_called_lower_bounds_where_stacks_were_cut(
    interpose_here, tmp_path, above, callers
):
    build = Build(tmp_path / "t.1.er", settings={"INTERPOSE": "1", "INTERPOSE_STACK_ABOVE": above})
    helper = build.stack(build.site("/home/u/orders.py", 3, callers))
    build.events([event(0, 5 * MS, call=1, intrinsic=build.intrinsic("time.sleep", "sleep"), stack=helper)])
    build.thread(end_ns=START_NS + 10 * MS, end_cpu_ns=MS)
    build.ended(10 * MS, MS)
    directory = str(build.write())

    for view in ("functions", "calltree", "callers-callees", "objects", "lines"):
        told = interpose_here("display", directory, f"-{view}").stdout
        assert ("INTERPOSE_STACK_ABOVE=1ns" in told) == (above == "10ms" and callers == "main"), view
    for view in ("threads", "iostat"):
        assert "INTERPOSE_STACK_ABOVE" not in interpose_here("display", directory, f"-{view}").stdout


@pytest.mark.parametrize(
    ("name", "remedy"), [("compare", "interpose compare BEFORE AFTER"), ("disasm", "no machine code")]
)
def test_commands_of_er_print_that_are_elsewhere_are_named(display, name, remedy):
    assert remedy in display(f"-{name}").stderr
    assert remedy in display(input=f"{name}\n").stderr
