"""The rules of the house: which way imports go, who prints, what is documented, what stands in no file."""

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from interpose.cli.commands import coverage
from interpose.cli.main import COMMANDS, load_commands, main, make_parser

TOP = Path(__file__).parents[2]

# What the files of a place may import of interpose; a place's own files always. docs/architecture.md says why.
ROOT = ("interpose.counters", "interpose.errors", "interpose.kinds", "interpose.quantities")
STORAGE = (*ROOT, "interpose.experiments")
CONFIG = (*STORAGE, "interpose.config", "interpose.legacy.codes")
INSTRUMENTATION = (*CONFIG, "interpose", "interpose.library", "interpose.instrumentation", "interpose.timing")
CAPTURE = (*INSTRUMENTATION, "interpose.boot", "interpose.capture")
ANALYSIS = (*STORAGE, "interpose.analysis", "interpose.legacy")
REPORTS = (*ANALYSIS, "interpose.reports")
OUTSIDE = tuple(
    f"interpose.{each}" for each in ("attach", "cli", "kernel_view", "monitor", "profiler", "pytest", "view")
)
EXPORTS = (*REPORTS, "interpose.__version__", "interpose.exports")
EVERYTHING = (*CAPTURE, *EXPORTS, *OUTSIDE)
NOT_IN_THE_PROGRAM = tuple(f"interpose.{each}" for each in ("analysis", "attach", "cli", "exports", "reports", "view"))
MAY_IMPORT = {
    "cext": (),
    "timing": (),
    "experiments": ROOT,
    "interpose/counters.py": (),
    "interpose/errors.py": (),
    "interpose/kinds.py": (),
    "interpose/quantities.py": ("interpose.errors",),
    "interpose/legacy/codes.py": (),
    "interpose/config": CONFIG,
    "interpose/library.py": CONFIG,
    "interpose/instrumentation": INSTRUMENTATION,
    "interpose/capture": CAPTURE,
    "interpose/boot.py": ("interpose.capture", "interpose.timing"),
    "interpose/bundle.py": (
        *("interpose.config.in_force", "interpose.instrumentation.system_library", "interpose.library"),
    ),
    "interpose/transactions.py": (),
    "interpose/__init__.py": ("interpose.boot", "interpose.instrumentation.collectors", "interpose.transactions"),
    "interpose/attach": (
        *("interpose", *ROOT, "interpose.bundle", "interpose.instrumentation.interpreters", "interpose.timing"),
    ),
    "interpose/analysis": ANALYSIS,
    "interpose/legacy": REPORTS,
    "interpose/reports": REPORTS,
    "interpose/exports": EXPORTS,
    "interpose/view": (*REPORTS, "interpose.view"),
    "interpose/monitor.py": (*ANALYSIS, "interpose.profiler"),
    "interpose/profiler.py": (*ANALYSIS, "interpose.memory_limit", "interpose.timing"),
    "interpose/memory_limit.py": (),
    "interpose/kernel_view.py": (*STORAGE, "interpose.__version__", "interpose.timing"),
    "interpose/ipython.py": (*CAPTURE, *REPORTS),
    "interpose/pytest": (*CAPTURE, *REPORTS, "interpose.pytest"),
    "interpose/cli": EVERYTHING,
    "interpose/__main__.py": ("interpose.cli",),
}
PYTHON = (".py", ".pyx", ".pxd", ".pxi")
IMPORT_IN_CYTHON = re.compile(
    r"^[ \t]*(?:from|c?import)[ \t]+(interpose(?:\.\w+)*)(?:[ \t]+c?import[ \t]+(\w+))?", re.M
)
PRINTING = ("print", "sys.stdout.write", "sys.stderr.write")
NAMES_OF_NOTHING = {"utils", "util", "helpers", "helper", "manager", "common", "base", "misc"}
SOURCES = ("interpose", "experiments", "timing", "cext", "benchmarks", "examples", "tests", "docs", "tools", ".ci")
WORDS_LEFT_BEHIND = re.compile("\\b(TO" + "DO|FIX" + "ME)\\b")
HOMES = re.compile(r"(?<![\w.}])/(?:root|Users/\w+|home/(?!u\b)\w+)/")


def modules(place: str) -> list[Path]:
    """The Python files at `place`: a file, or all in a folder."""
    path = TOP / place
    return [path] if path.suffix else sorted(path.rglob("*.py"))


def sources(place: str) -> list[Path]:
    """The same, and the files in Cython."""
    path = TOP / place
    return [path] if path.suffix else sorted(each for each in path.rglob("*") if each.suffix in PYTHON)


def package_of(place: str) -> str:
    """`interpose.experiments` for `experiments`."""
    name = place.removesuffix(".py").replace("/", ".")
    return name if name.startswith("interpose") else f"interpose.{name}"


def is_module(name: str) -> bool:
    """Is there a file or a folder of ours for this dotted name?"""
    inside = name.removeprefix("interpose.").replace(".", "/")
    return any((top / inside).is_dir() or (top / f"{inside}.py").exists() for top in (TOP, TOP / "interpose"))


def imported(path: Path) -> Iterator[str]:
    """What a file imports of interpose, wherever in it."""
    if path.suffix == ".py":
        yield from imported_by_python(ast.parse(path.read_text()))
        return
    for words in IMPORT_IN_CYTHON.finditer(path.read_text()):
        yield words[1] if words[1] != "interpose" else f"interpose.{words[2]}"


def imported_by_python(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if is_ours(alias.name))
        elif isinstance(node, ast.ImportFrom) and is_ours(node.module or ""):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if node.module == "interpose" or is_module(name) else str(node.module) for name in names)


def is_ours(name: str) -> bool:
    return name.partition(".")[0] == "interpose"


def is_within(name: str, packages: tuple[str, ...]) -> bool:
    below = tuple(f"{package}." for package in packages if package != "interpose")
    return f"{name}.".startswith(below)


@pytest.mark.parametrize("place", MAY_IMPORT)
def test_imports_go_one_way_only(place):
    allowed = (*MAY_IMPORT[place], package_of(place))
    attributes = {"interpose", "interpose.__version__"} if "interpose" in allowed else set()

    wrong = {
        f"{path.relative_to(TOP)} imports {name}"
        for path in sources(place)
        for name in imported(path)
        if not is_within(name, allowed) and name not in attributes
    }

    assert not wrong


def test_every_file_has_a_rule_of_what_it_may_import():
    of_places = {path for place in MAY_IMPORT for path in sources(place)}

    assert {path for place in ("cext", "experiments", "interpose", "timing") for path in sources(place)} == of_places


def test_what_begins_a_recording_imports_nothing_heavy(tmp_path):
    asked = "import sys; had = set(sys.modules); import interpose.capture.session; print(*set(sys.modules) - had)"

    done = subprocess.run(
        [sys.executable, "-I", "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    names = done.stdout.split()
    assert {name for name in names if not is_ours(name)} <= {"__future__", "time"}
    assert not [name for name in names if is_within(name, NOT_IN_THE_PROGRAM)]


@pytest.mark.parametrize("command", ["run", "list", "events", "report"])
def test_what_a_command_seldom_needs_does_not_make_it_start_later(command, tmp_path):
    asked = "import sys, interpose.cli.main; interpose.cli.main.load(sys.argv[1]); print(*sys.modules)"

    done = subprocess.run(
        [sys.executable, "-I", "-c", asked, command], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    late = ("interpose.reports.page", "interpose.cli.many.reading", "interpose.analysis.coverage", "webbrowser")
    assert not [name for name in done.stdout.split() if is_within(name, late)]


def prints(node: ast.AST) -> Iterator[int]:
    """Lines that print, or write to a standard stream; what runs only as a program of its own left out."""
    if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func) in PRINTING:
        yield node.lineno
    for child in ast.iter_child_nodes(node):
        yield from prints(child)


@pytest.mark.long
def test_only_commands_print():
    files = [path for place in ("interpose", "experiments", "timing") for path in modules(place)]

    printing = {
        f"{path.relative_to(TOP)}:{line}"
        for path in files
        if "cli" not in path.relative_to(TOP).parts
        for line in prints(ast.parse(path.read_text()))
    }

    assert not printing


def test_one_module_writes_to_stderr():
    writing = {
        path.name
        for path in modules("interpose")
        if "sys.stderr" in path.read_text()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and re.search(r"sys\.stderr\.write|file=sys\.stderr", ast.unparse(node))
    }

    assert writing == {"messages.py"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_on_its_page_and_has_help(name):
    command = load_commands()[name]

    assert f"`interpose {name}" in (TOP / "docs/commands.md").read_text()
    assert name == command.NAME
    assert command.HELP


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_prints_its_help(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])

    assert ended.value.code == 0
    example, _, usage = capsys.readouterr().out.partition("\n\n")
    assert example.startswith(f"example: interpose {name}")
    assert usage.startswith(f"usage: interpose {name}")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_every_command_is_understood(name):
    command = load_commands()[name]
    words = shlex.split(command.EXAMPLE)
    rearranged = getattr(command, "rearranged", list)

    found = make_parser({name: command}).parse_args([name, *rearranged(words[2:])])

    assert words[:2] == ["interpose", name]
    assert found.command == name


def test_the_examples_of_coverage_s_commands_are_understood():
    parser = make_parser({"coverage": load_commands()["coverage"]})

    found = [parser.parse_args(shlex.split(each.example)[1:]).what for each in coverage.SUBCOMMANDS]

    assert found == [each.name for each in coverage.SUBCOMMANDS]


def test_the_help_has_the_commands_in_five_groups_and_four_examples(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])

    shown = capsys.readouterr().out
    groups = re.findall(r"^(\w+):\n((?:  .*\n)+)", shown, re.M)
    assert [name for name, _ in groups[:5]] == ["Record", "Look", "Compare", "Manage", "Advanced"]
    assert re.findall(r"^  (\w+) +\w", "".join(rows for _, rows in groups[:5]), re.M) == list(COMMANDS)
    assert re.findall(r"^  interpose .*\S {2,}\S", groups[-1][1], re.M)
    assert groups[-1][1].count("  interpose ") == 4
    assert max(map(len, shown.splitlines())) <= 80
    assert sum(rows.count("\n") for _, rows in groups[:5]) == len(COMMANDS)  # a line each


@pytest.mark.parametrize("name", COMMANDS)
def test_the_options_of_every_command_fit_a_terminal(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([name, "--help"])

    _, _, options = capsys.readouterr().out.partition("\noptions:\n")
    too_long = [line for line in options.splitlines() if len(line) > 80 and not line.startswith("  -")]
    assert too_long == []  # but for options whose values are many


@pytest.mark.parametrize("command", ["report", "compare", "lines"])
def test_what_rows_are_grouped_by_is_listed_once(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])

    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("--by WHAT") == 2  # usage and option
    assert "{" not in shown.partition("--by WHAT")[2].partition("--")[0]


def texts() -> Iterator[tuple[str, str]]:
    """Each text file of the sources and at the top, and what is in it."""
    files = [path for path in TOP.iterdir() if path.is_file()]
    files += [path for place in SOURCES for path in (TOP / place).rglob("*") if path.is_file()]
    for path in files:
        is_hostile = path.parents[1].name == "corpus"  # no texts, and whatever they please
        if not is_hostile and "__pycache__" not in path.parts and path.suffix not in (".so", ".pyc", ".zst"):
            yield str(path.relative_to(TOP)), path.read_text(encoding="utf-8")


def test_nothing_is_left_for_later_and_no_home_is_named():
    home = os.path.expanduser("~")

    found = {
        f"{name}:{number}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if WORDS_LEFT_BEHIND.search(line) or HOMES.search(line) or (len(home) > 5 and f"{home}/" in line)
    }

    assert not found


def test_no_module_is_named_after_nothing():
    assert not {name for name, _ in texts() if Path(name).stem in NAMES_OF_NOTHING}


# --- C: headers hold types, declarations and the hot path; includes go one way

# What the C of a folder may include of the others; its own always.
C_MAY_INCLUDE: dict[str, tuple[str, ...]] = {
    "boot": (),
    "starter": (),
    "core": (),
    "cpython": ("core",),
    "collectors": ("core", "cpython"),
    "hooks": ("core", "cpython", "collectors"),
    "native": ("core", "cpython", "hooks"),
    "lines": ("core", "cpython"),
    "coverage": ("core", "cpython"),
    "heap": ("core", "cpython"),
    "sampler": ("core",),
    "kernel": ("core", "sampler"),
    "program": ("core", "hooks", "native"),
}
LINES_AT_MOST = 10  # of code, of a function in a header
EACH_READING = "every reading of the clocks is one"
EACH_CALL = "every recorded call passes through it"
LONGER = {
    ("core/clock.h", "clock_read"): EACH_READING,
    ("core/spans.h", "span_begin"): EACH_CALL,
    ("core/spans.h", "span_write"): EACH_CALL,
}
INCLUDED = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def headers() -> list[Path]:
    return sorted((TOP / "cext").glob("*/*.h"))


def name_in_cext(path: Path) -> str:
    return str(path.relative_to(TOP / "cext"))


def code_of(path: Path) -> str:
    """C without comments, preprocessor lines, texts and expanded lists."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*", "", text, flags=re.MULTILINE)
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', "0", text)
    return re.sub(r"^[A-Z_]+\(\w+\)$", "", text, flags=re.MULTILINE)


def top_level(path: Path) -> Iterator[tuple[str, str]]:
    """Each declaration and definition in a C file: what stands before its braces, and what in them."""
    before, body, depth = "", "", 0
    for letter in code_of(path):
        depth += (letter == "{") - (letter == "}")
        if depth or letter in "{}":
            body += letter
        elif letter != ";":
            before += letter
        is_function = bool(body) and before.rstrip().endswith(")") and "=" not in before
        if depth == 0 and (letter == ";" or (letter == "}" and is_function)):
            yield " ".join(before.split()), body
            before, body = "", ""


def is_function(before: str, body: str) -> bool:
    return bool(body) and before.endswith(")") and "=" not in before


def name_of(before: str) -> str:
    """The name of a function."""
    return re.findall(r"(\w+)\s*\(", re.sub(r"__attribute__\s*\(\(.*?\)\)\s*", "", before))[0]


def functions(path: Path) -> Iterator[tuple[str, str, str]]:
    """The name, what stands before the braces, and the body of each function in a C file."""
    for before, body in top_level(path):
        if is_function(before, body):
            yield name_of(before), before, body


def is_mutable_data(before: str, body: str) -> bool:
    """Is it a definition of what can change?"""
    is_declaration = re.match(r"(VISIBLE )?extern\b|typedef\b", before)
    is_type = re.fullmatch(r"(struct|union|enum)( \w+)?", before)
    named = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", before.split("=")[0])
    is_prototype = re.match(r"[^(]*\w\(", named)
    is_constant = re.search(r"\bconst\b[^*]*$", named)
    return not (not before or is_declaration or is_type or is_prototype or is_constant or is_function(before, body))


def test_headers_define_nothing_that_changes():
    wrong = {
        f"{name_in_cext(path)}: {before}"
        for path in headers()
        for before, body in top_level(path)
        if is_mutable_data(before, body)
    }
    inside = {
        f"{name_in_cext(path)}: {name} keeps {found[0].strip()}"
        for path in headers()
        for name, _, body in functions(path)
        if (found := re.search(r"\bstatic (?!const\b)[^;]*", body))
    }

    assert not wrong | inside


def test_functions_in_headers_are_few_lines_of_the_hot_path():
    lengths = {
        (name_in_cext(path), name): len([line for line in body.splitlines()[1:-1] if line.strip()])
        for path in headers()
        for name, _, body in functions(path)
    }
    cold = {
        f"{name_in_cext(path)}: {name} is out of line"
        for path in headers()
        for name, before, _ in functions(path)
        if "noinline" in before or "inline" not in before
    }

    assert not cold
    assert {where for where, length in lengths.items() if length > LINES_AT_MOST} == set(LONGER)


def test_headers_declare_no_function_that_they_define_themselves():
    forward = {
        f"{name_in_cext(path)}: {before}"
        for path in headers()
        for before, body in top_level(path)
        if before.startswith("static") and before.endswith(")") and not body and "=" not in before
    }

    assert not forward


@cache
def system_headers(path: Path) -> list[str]:
    """Those that are not ours, as the compiler comes to them."""
    found = []
    for ours, systems in re.findall(r'^#include (?:"([^"]+)"|<([^>]+)>)', path.read_text(), re.MULTILINE):
        inner = TOP / "cext" / ours
        if systems:
            found.append(systems)
        elif inner.is_file():
            found += system_headers(inner)
    return found


def test_pythons_header_comes_first():
    """It says which of the system's declarations there are to be; from 3.15 on more than without."""
    found = {name_in_cext(path): system_headers(path) for path in (TOP / "cext").glob("*/*.c")}

    assert not {name for name, headers in found.items() if "Python.h" in headers and headers[0] != "Python.h"}


def test_versions_of_python_are_told_apart_in_one_place():
    places = [*(TOP / "cext").glob("*/*.[ch]"), *(TOP / "timing").glob("*.p*")]

    found = {path.name for path in places if re.search(r"PY_(VERSION_HEX|(MAJOR|MINOR)_VERSION\b)", path.read_text())}

    assert found == {"version.h", "version_known.h", "version_unknown.h"}


def test_headers_include_each_other_in_no_circle():
    included = {name_in_cext(path): set(INCLUDED.findall(path.read_text())) for path in headers()}
    left = dict(included)
    while ends := {name for name, wanted in left.items() if not wanted & left.keys()}:
        left = {name: wanted for name, wanted in left.items() if name not in ends}

    assert not left


@pytest.mark.parametrize("folder", C_MAY_INCLUDE)
def test_includes_go_one_way_only(folder):
    allowed = {*C_MAY_INCLUDE[folder], folder}

    wrong = {
        f"{name_in_cext(path)} includes {name}"
        for path in (TOP / "cext" / folder).glob("*.[ch]")
        for name in INCLUDED.findall(path.read_text())
        if "/" in name and name.partition("/")[0] not in allowed
    }

    assert not wrong


def test_every_folder_of_c_has_its_rule():
    assert {path.parent.name for path in (TOP / "cext").glob("*/*.[ch]")} == set(C_MAY_INCLUDE)
