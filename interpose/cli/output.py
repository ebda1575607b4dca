"""Where results go, and in which format."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, TextIO

from interpose.errors import InterposeError, UsageError
from interpose.experiments.metadata import names
from interpose.reports.formats.colour import Paint, wants_colour
from interpose.reports.formats.links import linked, wants_links
from interpose.reports.formats.table import Table

FORMATS = ("text", "json", "csv", "markdown")
GITHUB = "github"  # where a command has more to say there than a table
_WIDTH = 80
_NO_WIDTH = 200  # in a file or a pipe little is cut off; nothing is in the other formats


def add_output_arguments(parser: argparse.ArgumentParser, *others: str) -> None:
    """The options --format and -o; `others` are formats that are no format of a table."""
    told = ", ".join(("text (for people)", *FORMATS[1:], *others))
    parser.add_argument("--format", choices=(*FORMATS, *others), metavar="FORMAT", default="text", help=told)
    add_output_argument(parser)


def add_output_argument(parser: argparse.ArgumentParser, where: str = "") -> None:
    """The option -o, where `-` is standard output; `where` says what else there is to know of it."""
    told = f"write to FILE instead of the terminal{where}"
    parser.add_argument("-o", "--output", metavar="FILE", type=lambda path: None if path == "-" else path, help=told)


def positive(text: str) -> int:
    """The whole number above 0 that `text` is, for argparse."""
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 19 and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def seconds(text: str) -> float | str:
    """The time in seconds, from a tenth of a second to a day, in `text`, for argparse; other texts are errors."""
    try:
        found = float(text)
    except ValueError:
        return text
    if not 0.1 <= found <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 86400")
    return found


def only_seconds(text: str) -> float:
    """The same, where nothing but a number can stand, for argparse."""
    found = seconds(text)
    if isinstance(found, str):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return found


@contextmanager
def opened_output(path: str | None) -> Iterator[TextIO]:
    """The file to write results to as text: standard output, or the one at `path`, which is there when all is written,
    or as it was before. Raises InterposeError."""
    if path is None:
        yield sys.stdout
        return
    with opened_bytes(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="\n")
        yield text
        text.flush()
        text.detach()


@contextmanager
def opened_bytes(path: str | None, is_text: bool = False) -> Iterator[BinaryIO]:
    """The same for bytes. Raises UsageError if binary output would go to a terminal."""
    if path is None:
        if sys.stdout.isatty() and not is_text:
            raise UsageError("this output is binary: write it to a file with -o FILE")
        sys.stdout.flush()
        yield from _standard_output()
        return
    refuse_within_experiments(path)
    beside = _beside(path)
    try:
        with open(beside or path, "wb") as file:
            if beside and os.path.exists(path):
                os.fchmod(file.fileno(), stat.S_IMODE(os.stat(path).st_mode))
            yield file
        if beside:
            os.replace(beside, path)
    except OSError as error:
        raise InterposeError(f"{path}: {error.strerror}") from error
    finally:
        if beside and os.path.lexists(beside):
            os.unlink(beside)


def _standard_output() -> Iterator[BinaryIO]:
    """Standard output for bytes; if a caller of main() has replaced it by text, it gets text."""
    if buffer := getattr(sys.stdout, "buffer", None):
        yield buffer
        return
    kept = io.BytesIO()
    yield kept
    sys.stdout.write(kept.getvalue().decode("utf-8", "backslashreplace"))


def _beside(path: str) -> str:
    """The path of the temporary file that replaces this one; empty for files that can only be written in place, such as
    pipes."""
    directory = os.path.dirname(path)
    try:
        there = os.lstat(path)
        plain = stat.S_ISREG(there.st_mode) and there.st_nlink == 1 and there.st_uid == os.geteuid()
    except FileNotFoundError:
        plain = True
    except OSError:
        return ""
    if not plain or not os.access(directory or ".", os.W_OK):
        return ""
    return os.path.join(directory, f".interpose-{os.getpid()}.part")


def refuse_within_experiments(path: str) -> None:
    """Raises UsageError for a path in an experiment: results must not overwrite their source."""
    directory = os.path.dirname(os.path.realpath(path))
    while directory != os.path.dirname(directory):
        if directory.endswith(names.SUFFIX) and os.path.exists(os.path.join(directory, names.LOG)):
            raise UsageError(f"{path}: lies in the experiment {os.path.basename(directory)}")
        directory = os.path.dirname(directory)


def write_table(table: Table, arguments: argparse.Namespace) -> None:
    """Write `table` in the format and to the place that `arguments` say."""
    module = importlib.import_module(f"interpose.reports.formats.{arguments.format}")
    with opened_output(arguments.output) as out:
        module.write(table, linking(out, table.shown) if arguments.format == "text" else out, table_width(out))


def linking(out: TextIO, shown: Mapping[str, str | None]) -> TextIO | Linking:
    """`out`, with the lines of code that were `shown` as links if it is a terminal that has them."""
    return Linking(out, shown) if wants_links(out, os.environ) else out


def with_links(text: str, shown: Mapping[str, str | None], out: TextIO) -> str:
    """`text` for `out`, with the lines of code that were `shown` as links if it is a terminal that has them."""
    return linked(text, shown) if wants_links(out, os.environ) else text


class Linking:
    """A terminal to which lines of code are written as links; `shown` are those that may be in a text."""

    def __init__(self, out: TextIO, shown: Mapping[str, str | None]) -> None:
        self._out = out
        self._shown = shown

    def write(self, text: str) -> int:
        """Write `text`."""
        return self._out.write(linked(text, self._shown))


def width_of(out: TextIO, where_nobody_looks: int = _WIDTH) -> int:
    """How wide lines may be: COLUMNS, else that of the terminal; or as said where there is neither."""
    if not out.isatty() and not os.environ.get("COLUMNS"):
        return where_nobody_looks
    return shutil.get_terminal_size((_WIDTH, 24)).columns


def table_width(out: TextIO) -> int:
    """How wide the lines of a table may be."""
    return width_of(out, where_nobody_looks=_NO_WIDTH)


def paint_for(out: TextIO) -> Paint:
    """Colours for `out`."""
    return Paint(wants_colour(out, os.environ))
