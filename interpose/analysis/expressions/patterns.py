r"""Regular expressions that match in time proportional to the text, whatever the pattern.

`re` backtracks, so `(a+)+b` can take years over thirty characters, and anybody may have written the names in an
experiment. Here a pattern becomes a set of states that are followed all at once (K. Thompson, Regular expression search
algorithm, CACM 11 (6), 1968), and each set's successor is cached by character. The syntax is a part of that of `re`:

    .  [abc] [^a-z]  \d \w \s \D \W \S  * + ? {2} {2,} {2,5} (and lazy)  |  ( ) (?: )  ^ $  (?i) at the beginning

There are no back-references and no look-around. `$` matches only at the very end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from interpose.errors import UsageError

LONGEST_PATTERN = 500
LONGEST_TEXT = 16 * 1024  # no string of an experiment is longer
STATES_AT_MOST = 2_000
REPEATED_AT_MOST = 100
DEEPEST = 16
REMEMBERED_LETTERS = 8_000_000  # of texts that were looked through
REMEMBERED_STATES = 400_000  # in what steps lead to
_WRITTEN = {"n": "\n", "t": "\t", "r": "\r"}

Is = Callable[[str], bool]
_CLASSES: dict[str, Is] = {
    "d": str.isdecimal,
    "s": str.isspace,
    "w": lambda letter: letter.isalnum() or letter == "_",
}


class PatternError(UsageError):
    """An invalid pattern; `place` is the position of the mistake."""

    def __init__(self, what: str, place: int) -> None:
        super().__init__(what)
        self.place = place


@dataclass
class _State:
    """A state of the match: continues to `after` with a character that `takes` allows, or without one. `begins` and
    `ends` can be passed only at the beginning and at the end of the text."""

    takes: Is | None = None
    after: list[_State] = field(default_factory=list)
    begins: bool = False
    ends: bool = False
    number: int = 0


@dataclass
class _Piece:
    """States from `first` to `last`, which has no successor yet."""

    first: _State
    last: _State


class Pattern:
    """A pattern; `is_in` finds it anywhere in a text. Raises PatternError."""

    def __init__(self, text: str) -> None:
        self._known: dict[str, bool] = {}
        self._known_letters = 0
        self._steps: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._steps_states = 0
        reader = _Reader(text)
        piece = reader.whole()
        self._ignores_case = reader.ignores_case
        self._states = reader.states
        self._accepting = piece.last.number
        self._first = piece.first.number
        self._anywhere = self._reached([self._first], at_start=False)
        self._at_start = self._reached([self._first], at_start=True)

    def is_in(self, text: str) -> bool:
        """Whether it matches somewhere in `text`; each text is looked through once."""
        found = self._known.get(text)
        if found is None:
            self._known_letters += len(text) + 1
            if self._known_letters > REMEMBERED_LETTERS:
                self._known.clear()
                self._known_letters = 0
            found = self._known[text] = self._search(text[:LONGEST_TEXT])
        return found

    def _search(self, text: str) -> bool:
        letters = text.lower() if self._ignores_case else text
        states, accepting = self._at_start, self._accepting
        for letter in letters:
            if accepting in states:
                return True
            step = (states, letter)
            after = self._steps.get(step)
            if after is None:
                after = self._step(step)
            states = after
        return accepting in states or accepting in self._at_end(states, not letters)

    def _step(self, step: tuple[frozenset[int], str]) -> frozenset[int]:
        states, letter = step
        taken = (self._states[number] for number in states)
        gone = [each.after[0].number for each in taken if each.takes and each.takes(letter)]
        after = self._reached(gone, at_start=False) | self._anywhere
        self._steps_states += len(after)
        if self._steps_states > REMEMBERED_STATES:
            self._steps.clear()
            self._steps_states = len(after)
        self._steps[step] = after
        return after

    def _at_end(self, states: frozenset[int], at_start: bool) -> frozenset[int]:
        return self._reached(list(states), at_start, at_end=True)

    def _reached(self, numbers: list[int], at_start: bool, at_end: bool = False) -> frozenset[int]:
        """The states, and those that are reached from them without a letter."""
        found, waiting = set(numbers), list(numbers)
        while waiting:
            state = self._states[waiting.pop()]
            is_open = not state.takes and (at_start or not state.begins) and (at_end or not state.ends)
            for after in state.after if is_open else ():
                if after.number not in found:
                    found.add(after.number)
                    waiting.append(after.number)
        return frozenset(found)


def _not(takes: Is) -> Is:
    return lambda letter: not takes(letter)


class _Reader:
    """Reads a pattern, letter after letter, into states."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST_PATTERN:
            raise PatternError(f"a pattern can have at most {LONGEST_PATTERN} characters", LONGEST_PATTERN)
        self.states: list[_State] = []
        self.ignores_case = text.startswith("(?i)")
        self._text = text
        self._place = 4 if self.ignores_case else 0
        self._depth = 0

    def whole(self) -> _Piece:
        found = self._either()
        if self._place < len(self._text):
            raise PatternError(") without (", self._place)
        return found

    def _either(self) -> _Piece:
        first, last = self._state(), self._state()
        while True:
            piece = self._row()
            first.after.append(piece.first)
            piece.last.after.append(last)
            if not self._passes("|"):
                return _Piece(first, last)

    def _row(self) -> _Piece:
        empty = self._state()
        found = _Piece(empty, empty)
        while self._place < len(self._text) and self._text[self._place] not in "|)":
            found = self._joined(found, self._repeated())
        return found

    def _joined(self, one: _Piece, other: _Piece) -> _Piece:
        one.last.after.append(other.first)
        return _Piece(one.first, other.last)

    def _repeated(self) -> _Piece:
        begin, states = self._place, len(self.states)
        piece = self._one()
        end = self._place
        least, most = self._times()
        if (least, most) == (1, 1):
            return piece
        del self.states[states:]  # parsed again for each repetition
        found = self._copies(begin, end, least, most)
        self._passes("?")
        if self._place < len(self._text) and self._text[self._place] in "*+?":
            raise PatternError("nothing to repeat", self._place)
        return found

    def _copies(self, begin: int, end: int, least: int, most: int | None) -> _Piece:
        after = self._place
        first = self._state()
        found = _Piece(first, first)
        for _ in range(least):
            found = self._joined(found, self._again(begin, end))
        if most is None:
            found = self._joined(found, self._any_times(self._again(begin, end)))
        skipped = self._state()
        for _ in range((most or least) - least):
            found.last.after.append(skipped)
            found = self._joined(found, self._again(begin, end))
        found.last.after.append(skipped)
        self._place = after
        return _Piece(found.first, skipped)

    def _again(self, begin: int, end: int) -> _Piece:
        self._place = begin
        piece = self._one()
        assert self._place == end
        return piece

    def _any_times(self, piece: _Piece) -> _Piece:
        around, last = self._state(), self._state()
        around.after += [piece.first, last]
        piece.last.after.append(around)
        return _Piece(around, last)

    def _times(self) -> tuple[int, int | None]:
        for sign, times in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._passes(sign):
                return times
        found = re.compile(r"\{([0-9]{1,4})(?:(,)([0-9]{1,4})?)?\}").match(self._text, self._place)
        if not found:
            return 1, 1
        least = int(found[1])
        most = None if found[2] and not found[3] else int(found[3] or least)
        if least > REPEATED_AT_MOST or (most is not None and not least <= most <= REPEATED_AT_MOST):
            raise PatternError(f"repetitions are from 0 to {REPEATED_AT_MOST}, smaller number first", self._place)
        self._place = found.end()
        return least, most

    def _one(self) -> _Piece:
        place, letter = self._place, self._text[self._place]
        self._place += 1
        if letter == "(":
            return self._group(place)
        if letter == "[":
            return self._taking(self._bracket(place))
        if letter in "^$":
            state = self._state(begins=letter == "^", ends=letter == "$")
            return self._joined(_Piece(state, state), self._empty())
        if letter in "*+?":
            raise PatternError("nothing to repeat", place)
        if letter == ".":
            return self._taking(lambda each: each != "\n")
        return self._taking(self._escaped(place) if letter == "\\" else self._is(letter))

    def _group(self, place: int) -> _Piece:
        if self._text.startswith("?:", self._place):
            self._place += 2
        elif self._text.startswith("?", self._place):
            raise PatternError("only (?: and, at the beginning, (?i) are supported", place)
        self._depth += 1
        if self._depth > DEEPEST:
            raise PatternError(f"more than {DEEPEST} nested groups", place)
        piece = self._either()
        self._depth -= 1
        if not self._passes(")"):
            raise PatternError("( without )", place)
        return piece

    def _bracket(self, place: int) -> Is:
        """What takes the letters of a class in brackets, which is open."""
        inverted, parts = self._passes("^"), []
        begin = self._place
        while self._place < len(self._text) and (self._text[self._place] != "]" or self._place == begin):
            parts.append(self._member())
        if not self._passes("]"):
            raise PatternError("[ without ]", place)
        return lambda letter: any(part(letter) for part in parts) is not inverted

    def _member(self) -> Is:
        place = self._place
        low = self._letter()
        if not isinstance(low, str):
            return low
        is_range = self._text.startswith("-", self._place) and not self._text.startswith("-]", self._place)
        if not is_range:
            return self._is(low)
        self._place += 1
        high = self._letter()
        if not isinstance(high, str) or high < low:
            raise PatternError("invalid range of characters", place)
        if self.ignores_case:
            return lambda letter: low <= letter <= high or low <= letter.upper() <= high
        return lambda letter: low <= letter <= high

    def _letter(self) -> str | Is:
        """A letter within brackets, or the letters of a sort."""
        if self._place >= len(self._text):
            raise PatternError("[ without ]", self._place)
        place, letter = self._place, self._text[self._place]
        self._place += 1
        return self._sort_or_letter(place) if letter == "\\" else letter

    def _escaped(self, place: int) -> Is:
        found = self._sort_or_letter(place)
        return self._is(found) if isinstance(found, str) else found

    def _sort_or_letter(self, place: int) -> str | Is:
        """What a backslash and the next letter mean."""
        letter = self._text[self._place : self._place + 1]
        self._place += 1
        sort = _CLASSES.get(letter.lower())
        if sort is not None:
            return sort if letter.islower() else _not(sort)
        if letter in _WRITTEN:
            return _WRITTEN[letter]
        if not letter or letter.isalnum():
            raise PatternError(f"\\{letter} is not supported", place)
        return letter

    def _is(self, letter: str) -> Is:
        wanted = letter.lower() if self.ignores_case else letter
        return lambda each: each == wanted

    def _taking(self, takes: Is) -> _Piece:
        state, last = self._state(), self._state()
        state.takes = takes
        state.after.append(last)
        return _Piece(state, last)

    def _empty(self) -> _Piece:
        state = self._state()
        return _Piece(state, state)

    def _state(self, begins: bool = False, ends: bool = False) -> _State:
        if len(self.states) >= STATES_AT_MOST:
            raise PatternError("the pattern is too large; avoid repetitions of repetitions", self._place)
        state = _State(begins=begins, ends=ends, number=len(self.states))
        self.states.append(state)
        return state

    def _passes(self, letter: str) -> bool:
        """Whether the next letter is that one, which is then taken."""
        if not self._text.startswith(letter, self._place):
            return False
        self._place += 1
        return True
