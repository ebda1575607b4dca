"""Reads the elements of an XML file, as long as it is well-formed.

The standard library's expat parses it. A document type declaration is refused, and with it every entity that could name
a file or grow. So are endless files and endless nesting.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import BinaryIO
from xml.parsers import expat

from interpose.errors import ExperimentError
from interpose.experiments.model.files import Damages, open_plain

LARGEST_XML_BYTES = 16 * 1024 * 1024
DEEPEST = 16
_CHUNK_BYTES = 64 * 1024

Attributes = dict[str, str]


def read_elements(
    path: str,
    place: str,
    damages: Damages,
    begin: Callable[[str, Attributes], None],
    text: Callable[[str], None],
    end: Callable[[str], None],
) -> None:
    """Pass the elements of the file to the three functions, as long as it is well-formed. Raises OSError."""
    with open(open_plain(path), "rb") as file:
        parse_elements(file, place, damages, begin, text, end)


def parse_elements(
    file: BinaryIO,
    place: str,
    damages: Damages,
    begin: Callable[[str, Attributes], None],
    text: Callable[[str], None],
    end: Callable[[str], None],
) -> None:
    """The same for an open file."""
    parser = _guarded_parser(place, begin, text, end)
    left = LARGEST_XML_BYTES
    try:
        while left > 0 and (chunk := file.read(min(_CHUNK_BYTES, left))):
            parser.Parse(chunk, False)
            left -= len(chunk)
        if not left:
            damages.add(place, f"longer than {LARGEST_XML_BYTES >> 20} MiB, the rest was not read")
        else:
            parser.Parse(b"", True)
    except expat.ExpatError as error:
        damages.add(place, f"line {error.lineno}: {expat.ErrorString(error.code)}")


def _guarded_parser(
    place: str,
    begin: Callable[[str, Attributes], None],
    text: Callable[[str], None],
    end: Callable[[str], None],
) -> expat.XMLParserType:
    parser = expat.ParserCreate("utf-8")
    depth = 0

    def guarded_begin(name: str, attributes: Attributes) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise ExperimentError(f"{place}: elements are nested more than {DEEPEST} deep")
        begin(name, attributes)

    def guarded_end(name: str) -> None:
        nonlocal depth
        depth -= 1
        end(name)

    def refuse_declaration(*_: object) -> None:
        raise ExperimentError(f"{place}: has a document type declaration")

    parser.buffer_text = True
    parser.StartElementHandler = guarded_begin
    parser.EndElementHandler = guarded_end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refuse_declaration
    return parser


@lru_cache(maxsize=1024)  # layouts have the same few offsets
def integer(text: str) -> int | None:
    """The whole number in `text`; None if it is none, or too large for any field."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,20}", text) else None
