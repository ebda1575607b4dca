"""What is not to be written becomes `?`, in any text, however long, and without the program standing still for it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest
from recorder_library import RecorderLibrary

from interpose.config import values

MAIL = b"[A-Za-z0-9._]+@[a-z]+"


@pytest.fixture
def library() -> Iterator[ctypes.CDLL]:
    loaded = RecorderLibrary()
    loaded.redact_choose.restype = ctypes.c_char_p
    loaded.redact.restype = ctypes.c_void_p
    yield loaded
    loaded.redact_choose(b"")


def redacted(library: ctypes.CDLL, expression: bytes, text: bytes) -> bytes:
    assert library.redact_choose(expression) is None
    bytes_ = ctypes.c_size_t(len(text))
    found = library.redact(text, ctypes.byref(bytes_))
    if not found:
        return text if bytes_.value else b""
    left = ctypes.string_at(found, bytes_.value)
    ctypes.CDLL(None).free(ctypes.c_void_p(found))
    return left


@pytest.mark.parametrize(
    ("expression", "text", "left"),
    [
        (b"hunter[0-9]", b"a hunter2, hunter3", b"a ?, ?"),
        (b"x*", b"axxb", b"a?b"),
        (b"^a", b"aa", b"?a"),
        (b"a$", b"aa", b"a?"),
        (b"pass=.*", b"pass=hun\xe9ter2 \0 more", b"?"),
        ("ä+b".encode(), "xäb".encode(), b"x?"),
        (b"[^;]+;", b"\xff\xfe;rest", b"?rest"),
        (MAIL, b"ann@example and bob@example", b"? and ?"),
    ],
)
def test_what_matches_is_left_out(library, expression, text, left):
    assert redacted(library, expression, text) == left


@pytest.mark.parametrize("letter", [b"a", "ä".encode(), b"\xe9", b"\n"])
def test_a_long_text_in_which_nothing_matches_is_as_it_was(library, letter):
    text = letter * 30_000

    assert redacted(library, MAIL, text) == text


def test_of_a_long_line_with_a_match_nothing_is_kept_and_of_others_what_does_not_match(library):
    text = b"a" * 60_000 + b"@example\n" + b"to ann@example\n" * 200 + b"b" * 5_000

    assert redacted(library, MAIL, text) == b"?\n" + b"to ?\n" * 200 + b"b" * 5_000


def test_of_a_long_text_with_a_match_over_lines_nothing_is_kept(library):
    text = b"line\n" * 400 + b"BEGIN KEY\nabc\nEND KEY\n" + b"line\n" * 400

    assert redacted(library, b"BEGIN KEY[^-]*END KEY", text) == b"?"
    assert redacted(library, b"KEY\nabc", text) == b"?"


@pytest.mark.parametrize(
    "text", ["(a)\\1", "((a{1,255}){1,255}){1,255}", "x" * 501, "(((a{9}){9}){9}){9}{9}", "[]a-](b{10001})"]
)
def test_what_would_take_very_long_or_very_much_memory_is_refused(text):
    with pytest.raises(ValueError, match=r"refers back|longer than"):
        values.parse_redact(text)


@pytest.mark.parametrize(
    "text",
    [
        *("[0-9]{4}(-[0-9]{4}){3}|Ann[a-z]*", "[\\1]", "[[:digit:]1]{5}", "a\\\\1", "[]{5}]", "(a|b){1,}"),
        *("{", "[", "\\", ")"),
    ],
)
def test_what_is_plain_is_left_to_the_library_that_compiles_it(text):
    assert values.parse_redact(text) == text


@pytest.mark.parametrize("expression", [b"a(b", b"[", b"\\", b"a" * 5000])
def test_what_is_no_expression_is_told(library, expression):
    assert library.redact_choose(expression)
    assert redacted(library, b"b", b"abc") == b"a?c"
