"""Sources with what line trace counted beside each line, hot ones marked, as text and as a page; changed ones told."""

from __future__ import annotations

import os
import time

from interpose.analysis.lines import line_rows
from interpose.analysis.lines.line_rows import line_trace
from interpose.analysis.lines.line_sources import line_files
from interpose.cli.main import main

PROGRAM = '''
def cheap(n):
    return n

def spin():
    total = 0
    for i in range(200_000): total += i * i
    return total

def never():
    return 0

[cheap(n) for n in range(7)]; spin()
'''
HOT = 7  # the line of the loop


def annotated(traced, capsys, *words: str) -> list[str]:
    done = traced(PROGRAM, INTERPOSE="lines")
    assert main(["lines", done.path, "--annotate", *words]) == 0
    return capsys.readouterr().out.splitlines()


def line_of(shown: list[str], number: int) -> list[str]:
    """The mark, if any, and the figures of a line."""
    found = next(line for line in shown if f" {number}. " in f"{line} ")
    return found.partition(f" {number}.")[0].split()


def test_lines_have_their_figures_and_hot_ones_a_mark(traced, place, capsys):
    shown = annotated(traced, capsys)

    assert shown[0] == "Source file: program.py"
    assert line_of(shown, HOT)[0] == "##"
    assert line_of(shown, 3)[:2] == ["7", "7"]
    assert line_of(shown, 2)[:2] == ["1", "1"]
    assert line_of(shown, 11) == ["0."] * 5
    assert line_of(shown, 4) == []
    assert any("<Function: spin>" in line for line in shown)


def test_what_is_hot_is_from_so_much_of_the_largest_on(traced, place, capsys):
    shown = annotated(traced, capsys, "--hot", "1")

    assert line_of(shown, HOT)[0] == "##"
    assert line_of(annotated(traced, capsys, "--hot", "100"), HOT)[0] == "##"
    assert not [line for line in shown if line.startswith("##") and "return 0" in line]


def test_annotated_sources_are_no_table(traced, place, capsys):
    done = traced(PROGRAM, INTERPOSE="lines")

    assert main(["lines", done.path, "--annotate", "--format", "csv"]) == 2


def test_one_function_alone_is_annotated_where_asked(traced, place, capsys):
    shown = annotated(traced, capsys, "--function", "cheap")

    assert [each for each in line_of(shown, 3) if each != "##"][:2] == ["7", "7"]
    assert line_of(shown, HOT) == ["0."] * 5


def test_a_source_that_changed_is_told_and_the_archived_one_shown(traced, place, capsys):
    done = traced(PROGRAM, INTERPOSE="lines")
    assert main(["lines", done.path]) == 0  # whoever reads first has it archived
    program = place / "program.py"
    program.write_text("# nothing of it\n")
    os.utime(program, (time.time() + 60, time.time() + 60))
    capsys.readouterr()

    assert main(["lines", done.path, "--annotate"]) == 0

    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "Source file: program.py (changed since the run; its archived source is shown)"
    assert any("def spin():" in line for line in shown)


def test_a_source_that_is_missing_leaves_the_figures(traced, place, capsys):
    done = traced(PROGRAM, INTERPOSE="lines", INTERPOSE_ARCHIVE="off")
    (place / "program.py").unlink()

    assert main(["lines", done.path, "--annotate"]) == 0

    shown = capsys.readouterr().out.splitlines()
    assert "its source cannot be read: No such file or directory" in shown[0]
    assert any("7. (not in this source)" in line for line in shown)


def test_the_page_has_hot_lines_red_and_escapes_the_source(traced, place):
    done = traced(PROGRAM.replace("return total", "return total  # <script>"), INTERPOSE="lines")

    assert main(["lines", done.path, "--format", "html", "-o", "lines.html"]) == 0

    page = (place / "lines.html").read_text()
    assert page.count('<tr class="red">') >= 1 and '<tr class="green">' in page
    assert "<script" not in page and "&lt;script&gt;" in page


# Functions of one line, of which some are nested in others on it; it prints how long each line's work took.
NESTED = """
import time

def rest(): time.sleep(0.05)
def maps(): return list(map(lambda n: time.sleep(0.05), range(4)))
def calls(): return list(map(lambda n: rest(), range(4)))
def sums(): return sum(time.sleep(0.05) or n for n in range(4))
def sums_calls(): return sum(rest() or n for n in range(4))
def deep(): return (lambda: (lambda: (lambda: [time.sleep(0.1), rest(), rest()])())())()
def makes(): return lambda: time.sleep(0.1)
lambdas = lambda: [each() for each in [lambda: time.sleep(0.1), lambda: time.sleep(0.1)]]

def later():
    made = makes()
    made()
    made()

for function, named in [*[(each, each) for each in (maps, calls, sums, sums_calls, deep, lambdas)], (later, makes)]:
    begin = time.perf_counter_ns()
    function()
    print(named.__code__.co_firstlineno, time.perf_counter_ns() - begin)
"""
SLEPT_NS = 200_000_000


def test_a_line_counts_the_time_of_a_function_nested_in_another_once(traced):
    done = traced(NESTED, INTERPOSE="lines")

    (file,) = line_files(done.experiment, line_trace(done.experiment).lines)
    for number, took_ns in (map(int, each.split()) for each in done.stdout.splitlines()):
        assert 0.99 * SLEPT_NS < file.lines[number].wall_ns < 1.01 * took_ns, number


def test_the_row_of_a_line_counts_the_time_of_a_generator_expression_once(traced):
    done = traced(NESTED, INTERPOSE="lines")

    took_ns = dict(map(int, each.split()) for each in done.stdout.splitlines())
    rows = [row for row in line_trace(done.experiment).lines if row.place.function in ("sums", "sums_calls")]
    for row in rows:
        assert 0.99 * SLEPT_NS < row.figures.wall_ns < 1.01 * took_ns[row.line], row.place.function
    assert len(rows) == 2


def test_estimated_times_are_marked_wherever_the_message_says_so(traced, place, capsys, monkeypatch):
    monkeypatch.setattr(line_rows, "ESTIMATED_PERCENT", 0)

    shown = annotated(traced, capsys)

    figures = next(line for line in shown if f" {HOT}. " in line)
    assert figures.count("~") == 3
    for name, are_marked in (("html", True), ("markdown", True), ("text", True), ("csv", False), ("json", False)):
        assert main(["lines", "--format", name]) == 0
        told = capsys.readouterr()
        assert ("times marked ~ are estimates" in told.err, "~" in told.out) == (are_marked, are_marked), name
        assert "are estimates" in told.err
