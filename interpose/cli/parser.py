"""The parser of the command line: a mistake is answered in one line, with the word that was probably meant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from interpose.cli.suggestions import did_you_mean
from interpose.errors import UsageError


def sentence(words: str) -> str:
    """What a command does, as its help begins with it."""
    return f"{words[0].upper()}{words[1:]}."


class _OfLines(argparse.Action):
    """Stores what to group by: what users call a line is a site."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, "site" if values == "line" else values)


def list_below(parser: argparse.ArgumentParser, title: str, rows: Iterable[tuple[str, str]]) -> None:
    """List words with their meanings at the end of the help, each on a line of its own."""
    told = list(rows)
    width = max(len(word) for word, _ in told)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join([f"{title}:", *(f"  {word:<{width}}  {meaning}" for word, meaning in told)])


def add_by_argument(parser: argparse.ArgumentParser, choices: Iterable[str], default: str | None, told: str) -> None:
    """The option --by; `told` says what the `choices` are for. `line` stands for `site`, which is accepted."""
    words = ["line" if each == "site" else each for each in choices]
    parser.add_argument(
        "--by",
        choices=words,
        type=lambda text: "line" if text == "site" else text,
        action=_OfLines,
        metavar="WHAT",
        default=default,
        help=f"{told} {', '.join(words)}{' (default: %(default)s)' if default else ''}",
    )


def add_by_line_argument(parser: argparse.ArgumentParser) -> None:
    """The option --by of what is known of lines."""
    parser.add_argument(
        "--by",
        choices=("line", "function"),
        metavar="WHAT",
        default="line",
        help="one row for each line (default), or function",
    )


def add_unscaled_argument(parser: argparse.ArgumentParser) -> None:
    """The option --unscaled."""
    parser.add_argument(
        "--unscaled",
        action="store_true",
        help="if transactions were sampled: show what was recorded, without estimates",
    )


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError instead of printing its usage and exiting; so do those of its commands. Its help
    begins with an example."""

    def __init__(self, *given: Any, example: str = "", **options: Any) -> None:
        super().__init__(*given, **options)
        self._example = example

    def format_help(self) -> str:
        return (f"example: {self._example}\n\n" if self._example else "") + super().format_help()

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write to `file`; unlike argparse's own, raise OSError if that fails."""
        (file or sys.stdout).write(message)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End after the help; raise OSError if it could not be written, instead of failing at the interpreter's end."""
        sys.stdout.flush()
        super().exit(status, message)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message.removeprefix('argument ')} ({self.prog} --help)")

    def parse_known_args(  # type: ignore[override]  # what is unknown is an error
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self._refuse(next((word for word in unknown if word.startswith("-")), unknown[0]))
        return found, unknown

    def _refuse(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            self.error(f"unexpected argument: {word}")
        option = word.partition("=")[0]
        self.error(f"{option} is not an option{did_you_mean(option, self._option_string_actions, '--')}")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        words = [str(each) for each in action.choices or ()]
        if words and value not in words:
            meant = did_you_mean(str(value), words) or f"; choose from {', '.join(words)}"
            raise argparse.ArgumentError(action, f"{value} is not a choice{meant}")
