"""What README.md shows is what one gets."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from interpose.cli.main import main
from interpose.config import schema

TOP = Path(__file__).parents[2]
README = (TOP / "README.md").read_text(encoding="utf-8")
INSTALL = "pip install ."  # tests/project/test_packaging.py does that


def blocks(language: str, page: str = README) -> list[str]:
    """The fenced blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.M | re.S)


def commands_in(lines: Iterable[str]) -> list[list[str]]:
    """The words of the lines that are commands of interpose."""
    return [shlex.split(line) for line in lines if re.match("interpose [a-z]", line)]


def wrong_options(command: Sequence[str], capsys) -> list[str]:
    """The options of a command that its help does not have; fails where there is no such command."""
    _, name, *arguments = command
    if name == "display":  # its words are those of er_print
        return []
    words = [name, *arguments[:1]] if name == "coverage" and arguments[:1] != ["--help"] else [name]
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--help"])
    told = capsys.readouterr().out
    options = [each for each in arguments if each.startswith("--") and each not in ("--", "--noreload")]
    return [each for each in options if each not in told]


def variables_in(lines: Iterable[str]) -> set[str]:
    """The settings that lines set."""
    return {name for line in lines for name in re.findall(r"INTERPOSE(?:_[A-Z]+)?(?=[=:])", line)}


def kinds(report: str) -> Iterator[tuple[str, str]]:
    """The kinds of a first screen, and the calls of each."""
    for line in report.splitlines():
        if found := re.match(r" (\w+) +(?:([\d,]+) )? *~?[\d.,]+ (?:s|ms|us) ", line):
            yield found[1], found[2] or ""


@pytest.fixture
def shell(tmp_path, own_environment):
    """A function that runs lines in a shell as one does in a checkout, with this interpreter's commands."""
    shutil.copytree(TOP / "examples", tmp_path / "checkout" / "examples")
    commands = tmp_path / "bin"
    commands.mkdir()
    write_script(commands / "interpose", f'exec "{sys.executable}" -m interpose "$@"')
    write_script(commands / "python", f'exec "{sys.executable}" "$@"')
    path = os.pathsep.join([str(commands), own_environment["PATH"]])

    def run(lines: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-ec", lines],
            cwd=tmp_path / "checkout",
            env={**own_environment, "PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def write_script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def causes(report: str) -> list[str]:
    """The causes that a report names, the first one first, without their figures."""
    return re.findall(r"^(?:Slowest|Also): ([^,]*)", report, re.M)


@pytest.mark.long
def test_the_main_example_gives_the_report_that_is_shown(shell):
    install, *lines = blocks("sh")[0].splitlines()
    assert install == INSTALL

    done = shell("\n".join(lines))

    assert (done.returncode, done.stderr) == (0, "")
    report = done.stdout[done.stdout.index("test.1.er") :]
    made, shown = dict(kinds(report)), dict(kinds(blocks("text")[0]))
    assert list(made) == list(shown) == ["db", "screen", "file", "sync", "sleep", "startup", "code", "overhead"]
    if sys.version_info >= (3, 14):  # whose buffers are of 128 KiB, not 8
        shown["screen"] = "4"
    # How many files are looked at to import something depends on where Python lies.
    assert [made[kind] for kind in ("db", "screen", "sleep")] == [shown[kind] for kind in ("db", "screen", "sleep")]
    assert "   complete\n" in report
    assert causes(blocks("text")[0])[0] in causes(report)  # where the disk is slow, its commits come first
    assert max(map(len, report.splitlines())) <= 80


def test_what_the_page_points_to_is_there():
    files = re.findall(r"\]\(([^)#:]+)\)", README)

    assert files
    assert all((TOP / file).is_file() for file in files)


def test_every_command_option_and_setting_of_the_page_is_one(capsys):
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", README, flags=re.M | re.S))
    shown = [line for block in (*blocks("sh"), *inline) for line in block.splitlines()]
    commands = commands_in(shown)
    variables = variables_in(shown)

    assert len(commands) > 8 and len(variables) > 3
    assert variables <= {each.variable for each in schema.SETTINGS}
    assert [wrong for command in commands for wrong in wrong_options(command, capsys)] == []


def test_the_page_is_short_enough_to_be_read():
    assert len(README.splitlines()) <= 150


def tables(page: str) -> list[list[str]]:
    """The cells of each row of a page's tables."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]


def costs() -> dict[str, tuple[str, str]]:
    """What interpose costs and what others do, by what was measured, as the page says."""
    section = README.partition("## What it costs")[2].partition("\n## ")[0]
    return {row[0]: (row[1], row[2]) for row in tables(section) if len(row) == 3}


def measured(name: str) -> list[list[str]]:
    return tables((TOP / "docs" / name).read_text(encoding="utf-8"))


def test_the_costs_of_calls_starts_and_services_are_those_that_were_measured():
    calls = {row[0]: row[1].split()[0] for row in measured("performance/calls.md") if row[1].startswith("+")}
    service = {row[0]: row[2] for row in measured("performance.md") if len(row) == 6}

    def us(what: str, digits: int) -> str:
        return f"{int(calls[what].replace(',', '')) / 1000:+.{digits}f} us"

    found = costs()
    own, wrapper = found["a call, both clocks and its line"]
    assert own == us("own line", 2) and wrapper.endswith(us("wrapt, two clocks", 1))
    on, off = float(calls["INTERPOSE=1"]), float(calls["INTERPOSE not set"])
    assert found["start of a program"][0] == f"{on:+.0f} ms; {off:+.1f} ms if recording is off"
    assert found["a Flask service under gunicorn"] == (
        f"{service['`INTERPOSE_RING=64MiB`']} the requests a second",
        f"OpenTelemetry {service['OpenTelemetry']}, ddtrace {service['ddtrace']}",
    )


def test_the_costs_of_line_trace_and_sampling_are_those_that_were_measured():
    lines = [row for row in measured("performance/lines.md") if len(row) == 9 and row[0].startswith("3.12")]

    def between(column: int, digits: int = 2) -> str:
        found = [float(row[column].split()[0]) for row in lines]
        return " to ".join(f"{each:.{digits}g}" if each < 10 else f"{each:.0f}" for each in (min(found), max(found)))

    own, others = costs()["line trace"]
    assert len(lines) == 4
    assert [float(each) for each in own.split()[:3:2]] == [float(each) for each in between(2).split(" to ")]
    assert others == f"line_profiler {between(6)} x, coverage.py {between(7)} x"
    sampled = {row[0]: row[1] for row in measured("performance/profile.md") if len(row) == 4}
    assert costs()["sampling your code under `interpose run`"][0].startswith(sampled["interpose"].removesuffix(" %"))


def test_each_cost_has_the_command_that_measures_it_and_the_day():
    found = {row[0]: row[1:3] for row in measured("performance.md") if len(row) == 5 and re.search(r"20\d\d-", row[2])}
    commands = {(TOP / "benchmarks" / f"{command.strip('`').split()[0]}.py").is_file() for command, _ in found.values()}

    assert found.keys() == costs().keys() - {"", "---"}
    assert commands == {True}


def test_the_page_of_other_tools_has_the_same_figures():
    beside = {row[0]: row[1:] for row in measured("comparison.md") if len(row) == 3}

    assert beside["line trace"] == list(costs()["line trace"])
    assert beside["a call, both clocks and its line"] == list(costs()["a call, both clocks and its line"])
    figures = [re.findall(r"[\d.]+", " ".join(row)) for name, row in beside.items() if "gunicorn" in name]
    assert figures == [re.findall(r"[\d.]+", " ".join(costs()["a Flask service under gunicorn"]))]
