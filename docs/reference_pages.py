"""Pages made from the code, before Sphinx reads any: a page for each command, and the catalogue of intrinsics."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interpose.cli.main import COMMANDS, GROUPS, load_commands, make_parser
from interpose.instrumentation import system_library

MADE = "made"
WIDTH = "80"


def setup(app: Any) -> dict[str, bool]:
    """Make the pages, and name those that become man pages."""
    write(Path(app.confdir) / MADE)
    commands = load_commands()
    app.config.man_pages = [
        (f"{MADE}/commands", "interpose", "show where a Python program spends its time", "", 1),
        *((f"{MADE}/commands/{name}", f"interpose-{name}", commands[name].HELP, "", 1) for name in COMMANDS),
    ]
    return {"parallel_read_safe": True}


def write(directory: Path) -> None:
    """Write all pages below `directory`."""
    os.environ["COLUMNS"], os.environ["NO_COLOR"] = WIDTH, "1"
    for name, text in {**dict(command_pages()), **dict(intrinsic_pages())}.items():
        path = directory / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def command_pages() -> Iterator[tuple[str, str]]:
    """The pages of the commands, from their parsers."""
    loaded = load_commands()
    parsers = _parsers_in(make_parser(loaded))
    listed = ["# Commands", "", "Each page is the command's `--help`."]
    for group, names in GROUPS.items():
        listed += ["", f"## {group}", "", "| command | what it does |", "| --- | --- |"]
        listed += [f"| [interpose {name}](commands/{name}.md) | {_cell(loaded[name].HELP)} |" for name in names]
    yield "commands", "\n".join(listed) + "\n"
    for name, parser in parsers.items():
        yield f"commands/{name}", f"# interpose {name}\n{_help(parser)}"


def _help(parser: argparse.ArgumentParser) -> str:
    """What a parser says, and those of the commands in it, which have titles."""
    inner = _parsers_in(parser)
    shown = f"\n```text\n{parser.format_help().rstrip()}\n```\n"
    return shown + "".join(f"\n## {name}\n{_help(each)}" for name, each in inner.items())


def _parsers_in(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    actions = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return {name: each for action in actions for name, each in action.choices.items()}


def intrinsic_pages() -> Iterator[tuple[str, str]]:
    """The catalogue of the system library: a page for each of its modules."""
    listed = ["# Intrinsics", "", "What interpose times without any library of yours, by what is called.", ""]
    listed += ["| page | about | intrinsics |", "| --- | --- | --- |"]
    for module in pkgutil.iter_modules(system_library.__path__):
        loaded = importlib.import_module(f"{system_library.__name__}.{module.name}")
        declared = getattr(loaded, "INTRINSICS", ())
        if not declared:
            continue
        about = (loaded.__doc__ or "").strip().splitlines()[0]
        listed.append(f"| [{module.name}](intrinsics/{module.name}.md) | {_cell(about)} | {len(declared)} |")
        rows = [f"| `{each.name}` | {', '.join(each.kinds)} | `{each.target}` |" for each in declared]
        head = [f"# Intrinsics: {module.name}", "", about, "", "| intrinsic | kinds | target |", "| --- | --- | --- |"]
        yield f"intrinsics/{module.name}", "\n".join([*head, *rows]) + "\n"
    yield "intrinsics", "\n".join(listed) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
