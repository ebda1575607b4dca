"""docs/architecture.md and docs/glossary.md say what is there: folders, paths, what may import what, words in order."""

import ast
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs" / "architecture.md"
GLOSSARY = TOP / "docs" / "glossary.md"
PLANES = ("cext", "timing", "experiments", "interpose")
SOURCES = {".c", ".h", ".py", ".pyx", ".pxd", ".pxi", ".js", ".css"}
IN_THE_REPOSITORY = re.compile(
    r"(?<![\w/.~-])(?:cext|timing|experiments|interpose|tests|docs|benchmarks|examples)/[\w./*-]*"
)
ANYTHING = "anything"


def sources(folder: str) -> Iterator[Path]:
    """The sources in a folder and below it."""
    for path in sorted((TOP / folder).rglob("*")):
        if path.suffix in SOURCES and "__pycache__" not in path.parts:
            yield path


def folders() -> set[str]:
    """Each folder below the planes' own that has sources, and each of the tests."""
    found = {f"{path.parent.relative_to(TOP)}/" for plane in PLANES for path in sources(plane)}
    tests = {f"tests/{path.name}/" for path in (TOP / "tests").iterdir() if path.is_dir()}
    tops = {f"{plane}/" for plane in PLANES if plane != "timing"}
    return (found | tests) - tops - {"tests/__pycache__/"}


def rows() -> Iterator[list[str]]:
    """The rows of the page's tables, their cells."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def permitted() -> dict[str, set[str]]:
    """What each folder may include or import, of those that the page says it of; ANYTHING stands for all."""
    listed = [cells for cells in rows() if len(cells) == 3]
    return {cells[0].strip("`"): set(re.findall(r"`(\w+)`", cells[2])) or {cells[2]} - {""} for cells in listed}


def included(path: Path) -> Iterator[str]:
    """The folders of cext that a file in C includes from."""
    yield from re.findall(r'^#include "(\w+)/', path.read_text(encoding="utf-8"), re.M)


def imported(path: Path) -> Iterator[str]:
    """What of interpose a Python file imports, without `interpose.`"""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, rest = name.partition(".")
            if package == "interpose" and rest and not rest.startswith("__"):
                yield rest


def part_of(name: str, own: str) -> str:
    """What the table calls the part that `name` is in, seen from the folder `own`."""
    first, *more = name.split(".")
    return more[0] if first == "experiments" == own.partition("/")[0] and more else first


def uses(path: Path, own: str) -> set[str]:
    """The other parts that a file includes or imports from."""
    if path.suffix in (".c", ".h"):
        return set(included(path)) - {Path(own).name}
    if path.suffix != ".py":
        return set()
    parts = Path(own).parts
    mine = parts[1] if len(parts) > 1 else parts[0]
    return {part_of(name, own) for name in imported(path)} - {mine}


def test_every_folder_is_in_a_table():
    named = {name for cells in rows() for cell in cells[:2] for name in re.findall(r"`([\w/]+/)`", cell)}

    assert folders() - named == set()


def test_every_folder_of_cext_and_of_the_packages_says_what_it_may_use():
    every = {folder for folder in folders() if folder.count("/") == 2 and not folder.startswith("tests/")}

    assert every - set(permitted()) == set()


@pytest.mark.parametrize("folder", [each for each, allowed in permitted().items() if allowed != {ANYTHING}])
def test_a_folder_uses_only_what_its_row_names(folder):
    allowed = permitted()[folder]

    wrong = {f"{path.relative_to(TOP)}: {part}" for path in sources(folder) for part in uses(path, folder) - allowed}

    assert not wrong


@pytest.mark.parametrize(
    "page", [*sorted((TOP / "docs").rglob("*.md")), TOP / "CONTRIBUTING.md"], ids=lambda it: it.name
)
def test_every_path_of_a_page_is_there(page):
    named = {found.rstrip(".") for found in IN_THE_REPOSITORY.findall(page.read_text(encoding="utf-8"))}

    assert {name for name in named if not any(TOP.glob(name.rstrip("/")))} == set()


def test_the_page_is_short_enough_to_be_read():
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) < 300


def terms() -> list[str]:
    """The words of the glossary, each row's first."""
    found = re.findall(r"^\| \*\*(.+?)\*\*", GLOSSARY.read_text(encoding="utf-8"), re.M)
    assert found
    return found


def test_the_glossary_is_in_the_order_of_the_alphabet():
    assert terms() == sorted(terms(), key=str.casefold)


def test_the_glossary_has_each_word_once():
    assert len({term.casefold() for term in terms()}) == len(terms())


def test_the_glossary_names_every_kind():
    kinds = runpy.run_path(str(TOP / "interpose" / "kinds.py"))["EVERY"]
    row = next(line for line in GLOSSARY.read_text(encoding="utf-8").splitlines() if line.startswith("| **kind**"))

    assert set(re.findall(r"`(\w+)`", row)) == set(kinds)
