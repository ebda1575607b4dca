"""Patterns: they find what `re` finds, and no pattern takes long over any text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.analysis.expressions.patterns import LONGEST_PATTERN, Pattern, PatternError

PIECES = (
    *("a", "b", ".", "[ab]", "[^a]", "[a-c1]", "[]a]", "(a|b)", "(?:ab)*", "a*", "b+?", "a?", "^", "$", "a{2}"),
    *("b{1,}", "(a|b|)", "(a*)*", "|", r"\d", r"\W", r"[\w.]", r"\.", "(a{0,2}b)+", "(^a|b$)", r"\n", "A", r"[^\s]"),
)
texts = st.text(alphabet="abcA1.]\n", max_size=8)


@given(pieces=st.lists(st.sampled_from(PIECES), max_size=5), ignoring=st.booleans(), text=texts)
def test_a_pattern_finds_what_re_finds(pieces, ignoring, text):
    written = ("(?i)" if ignoring else "") + "".join(pieces)

    expected = re.search(written.replace("$", r"\Z"), text) is not None

    assert Pattern(written).is_in(text) is expected


HARD = ("(a+)+b", "(a|a)*b", "(a|aa)+$b", ".*.*.*.*.*x", "((a{0,99}b?){0,9})x", "(.*)*[^a]")


@pytest.mark.parametrize("written", HARD)
def test_what_would_keep_re_busy_for_years_is_found_in_one_pass(written):
    steps = []
    pattern = Pattern(written)
    take = pattern._step
    pattern._step = lambda step: steps.append(step) or take(step)

    assert not pattern.is_in("a" * 16_000)
    assert len(steps) < 2_000  # what a set of states becomes at a letter is found out once


def test_a_text_is_looked_through_once():
    pattern = Pattern("b$")
    searched = []
    search = pattern._search
    pattern._search = lambda text: searched.append(text) or search(text)

    assert [pattern.is_in(text) for text in ("ab", "ba", "ab", "ab")] == [True, False, True, True]
    assert searched == ["ab", "ba"]


@pytest.mark.parametrize(
    ("written", "place", "what"),
    [
        ("(a", 0, "( without )"),
        ("a)", 1, ") without ("),
        ("a[b", 1, "[ without ]"),
        ("*a", 0, "nothing to repeat"),
        ("a**", 2, "nothing to repeat"),
        ("(?=a)", 0, "only (?: and"),
        (r"(a)\1", 3, r"\1 is not supported"),
        ("a{3,2}", 1, "smaller number first"),
        ("[b-a]", 1, "invalid range"),
        ("a\\", 1, "is not supported"),
        ("(" * 40, 16, "more than 16 nested groups"),
        ("a" * (LONGEST_PATTERN + 1), LONGEST_PATTERN, "at most 500 characters"),
    ],
)
def test_what_is_no_pattern_is_told_with_its_place(written, place, what):
    with pytest.raises(PatternError, match=re.escape(what)) as told:
        Pattern(written)

    assert told.value.place == place


def test_repetitions_of_repetitions_do_not_grow_without_end():
    with pytest.raises(PatternError, match="too large"):
        Pattern("((a{100}){100}){100}")
