"""docs/lineage.md claims nothing that is not there: each test, command, option and setting in it exists."""

import argparse
import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from interpose.cli.main import load_commands
from interpose.config import schema

TOP = Path(__file__).parents[2]
SYSTEMS = ("Natural Profiler", "STROBE", "HP3000", "GT.M", "gprofng")
NOT_YET = "not yet"


def rows() -> Iterator[tuple[str, str, str]]:
    """Feature, what does it here, and test, of each row of the page's tables."""
    for line in (TOP / "docs" / "lineage.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] != "feature" and not cells[0].startswith("---"):
            feature, here, test = cells
            yield feature, here, test


@cache
def functions(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def options(command: str) -> set[str]:
    parser = argparse.ArgumentParser(prog=command)
    load_commands()[command].add_arguments(parser)
    return {option for action in parser._actions for option in action.option_strings}


def choices(command: str, option: str) -> tuple[str, ...]:
    parser = argparse.ArgumentParser(prog=command)
    load_commands()[command].add_arguments(parser)
    return tuple(next(action.choices or () for action in parser._actions if option in action.option_strings))


@pytest.mark.parametrize("feature, here, test", list(rows()))
def test_the_test_of_a_row_exists(feature, here, test):
    if test == NOT_YET:
        assert not here
        return
    path, _, name = test.strip("`").partition("::")

    assert name in functions(TOP / path)


@pytest.mark.parametrize("feature, here, test", [row for row in rows() if row[1]])
def test_the_command_or_setting_of_a_row_exists(feature, here, test):
    for named in re.findall(r"`([^`]*)`", here):
        program, *words = named.split()
        if program != "interpose":
            assert named in [setting.variable for setting in schema.SETTINGS]
            continue
        command, *words = words
        assert command in load_commands()
        assert set(words[:1]) <= options(command)
        assert not words[1:] or words[1] in choices(command, words[0])


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_of_the_five_systems_has_its_section(system):
    page = (TOP / "docs" / "lineage.md").read_text()

    assert re.search(rf"^## .*{re.escape(system)}", page, re.M)
    assert page.count("Does not apply:") == len(SYSTEMS)
