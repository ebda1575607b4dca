"""What is passed on of a `tracestate`, compared with W3C's grammar as a regular expression, under a sanitizer."""

import re
import subprocess
from pathlib import Path

import pytest
from core.test_trace_context import compiled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MEMBER = re.compile(rb"[a-z0-9][a-z0-9_\-*/@]{0,255}=[ -+\--<>-~]{0,255}[!-+\--<>-~]")
LARGEST, LONG, MOST = 512, 128, 32


def expected(text):
    """The list as it is passed on, by Level 2 of the standard; nothing if it is invalid."""
    members = [each for part in text.split(b",") if (each := part.strip(b" \t"))]
    if len(members) > MOST or not all(MEMBER.fullmatch(each) for each in members):
        return b""
    if len(b",".join(members)) > LARGEST:
        members = [each for each in members if len(each) <= LONG]
    while len(b",".join(members)) > LARGEST:
        members.pop()
    return b",".join(members)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return compiled("trace_state", tmp_path_factory.mktemp("reader"), Path(__file__).with_name("trace_state.c"))


def told(reader, texts):
    given_bytes = b"".join(len(text).to_bytes(2, "big") + text for text in texts)
    return subprocess.run([reader], input=given_bytes, capture_output=True, check=True).stdout.split(b"\n")[:-1]


members = st.from_regex(rb"[a-z0-9][a-z0-9_*/@-]{0,40}=[!-+.-<>-~]{1,200}", fullmatch=True)
spaces = st.sampled_from([b"", b" ", b"\t", b" \t "])
lists = st.lists(st.builds(lambda before, each, behind: before + each + behind, spaces, members | st.just(b""), spaces))
wrong = st.binary(max_size=60) | st.from_regex(rb"[a-z0-9=, ]{0,40}", fullmatch=True)
texts = st.lists(lists.map(b",".join) | st.lists(members | wrong, max_size=40).map(b",".join), max_size=60)


@pytest.mark.long
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(texts)
def test_valid_lists_are_passed_on_as_far_as_there_is_room(reader, given_texts):
    assert told(reader, given_texts) == list(map(expected, given_texts))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (b"foo=1,bar=2", b"foo=1,bar=2"),
        (b" foo=1 ,\t, bar=a b", b"foo=1,bar=a b"),
        (b"1a-_*/@z=!", b"1a-_*/@z=!"),
        (b"foo=1,foo=2", b"foo=1,foo=2"),
        (b",".join(b"k%d=v" % number for number in range(32)), b",".join(b"k%d=v" % number for number in range(32))),
        (b",".join(b"k%d=v" % number for number in range(33)), b""),
        (b"z" * 256 + b"=1", b"z" * 256 + b"=1"),
        (b"z" * 257 + b"=1", b""),
        (b"z=" + b"v" * 257, b""),
        (b"a=1,long=" + b"v" * 200 + b",b=" + b"w" * 120 + b",c=" + b"x" * 120 + b",d=" + b"y" * 120 + b",e=5",
         b"a=1,b=" + b"w" * 120 + b",c=" + b"x" * 120 + b",d=" + b"y" * 120 + b",e=5"),
        (b",".join(b"%c=%s" % (97 + number, b"v" * 100) for number in range(6)),
         b",".join(b"%c=%s" % (97 + number, b"v" * 100) for number in range(4))),
        *((text, b"") for text in (b"Foo=1", b"foo=", b"=1", b"foo", b"foo=a=b", b"foo=1\n", b"foo=\xc3\xa4", b"@a=1")),
    ],
)  # fmt: skip
def test_what_the_standard_says_of_lists(reader, text, kept):
    assert told(reader, [text]) == [kept] == [expected(text)]
