"""Summaries of statements: the verb, and the first table where the verb has it, such as `SELECT orders`.

No statement is parsed. Where it is not clear which table it is, the summary is the verb alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_TOKEN = re.compile(
    r"""\s+ | --[^\n]* | /\*.*?\*/ | (?P<text>'(?:[^']|'')*' | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    | (?P<quoted>"(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\]) | (?P<word>[\w$\#@]+) | (?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_AFTER_WITH = ("select", "insert", "update", "delete", "replace", "merge")
_OF_TABLES = ("create", "drop", "alter", "truncate")
_OTHERS = ("begin", "commit", "rollback", "end", "savepoint", "release", "pragma", "explain", "with", "set", "show",
           "call", "copy", "vacuum", "analyze")  # fmt: skip
_VERBS = (*_AFTER_WITH, *_OF_TABLES, *_OTHERS)
_ENDS = (";", "union", "intersect", "except", "minus")
_MODIFIERS = {
    "insert": "ignore low_priority high_priority delayed",
    "replace": "low_priority delayed",
    "update": "ignore low_priority",
    "create": "or replace global local temp temporary unlogged external foreign virtual",
    "drop": "temporary foreign external",
    "alter": "foreign external",
}
_NO_NAMES = ("as", "from", "into", "lateral", "only", "or", "select", "set", "table", "using", "values",
             "where", "with")  # fmt: skip


class _Word(NamedTuple):
    """A word, a name in quotes, or a character, and the parentheses around it. `text` is in small letters, and empty
    if it was in quotes; `name` is empty if it cannot be a name."""

    text: str
    name: str
    depth: int


_END = _Word(";", "", 0)


def summary_of(statement: str) -> str:
    """Verb and table of a statement; the verb alone if it names none; empty if it does not begin with a known verb."""
    words = list(_words(statement))
    verb = words[0].text if words else ""
    if verb not in _VERBS:
        return ""
    queries: set[str] = set()
    if verb == "with":
        place = _main_verb(words)
        queries = {word.name.lower() for word in words[:place]}
        words = words[place:]
        verb = words[0].text
    table = _table(verb, words)
    return verb.upper() if not table or table.lower() in queries else f"{verb.upper()} {table}"


def _words(statement: str) -> Iterator[_Word]:
    """The words of a statement without comments, up to quotes whose end is not certain."""
    depth = 0
    for found in _TOKEN.finditer(statement):
        text = found[0]
        if found["quoted"]:
            yield _Word("", text[1:-1].replace(text[-1] * 2, text[-1]), depth)
        elif found["word"]:
            yield _Word(text.lower(), "" if text[0] in "0123456789$@" else text, depth)
        elif found["text"] and "\\" not in text:
            yield _Word("'", "", depth)
        elif found["text"] or text in ("'", '"', "`"):
            return
        elif found["other"]:
            depth -= text == ")"
            yield _Word(text, "", depth)
            depth += text == "("


def _main_verb(words: Sequence[_Word]) -> int:
    """Where the statement begins that follows the queries of WITH; 0 if it is not clear."""
    for place in range(1, len(words)):
        before, word = words[place - 1 : place + 1]
        if word.depth == 0 and word.text in _AFTER_WITH and before.text == ")":
            return place
    return 0


def _table(verb: str, words: Sequence[_Word]) -> str:
    if verb == "select":
        place = _after_from(words)
        return _name(words, place, is_query=True) if place else ""
    place = _after_modifiers(verb, words)
    if verb in ("insert", "replace", "merge"):
        place = _after("into", words, place)
    elif verb == "delete":
        place = _after("from", words, place)
    elif verb in _OF_TABLES:
        place = _after("table", words, place)
    elif verb != "update":
        return ""
    return _name(words, place) if place else ""


def _after_from(words: Sequence[_Word]) -> int:
    """The place after the FROM of a query itself; not that of an inner query or a function, nor IS DISTINCT FROM."""
    own = [(place, word.text) for place, word in enumerate(words) if not word.depth]
    for place, text in own:
        before = [each.text for each in words[max(place - 2, 0) : place]]
        if text in _ENDS:
            break
        if text == "from" and before[-1:] != ["."] and before not in (["is", "distinct"], ["not", "distinct"]):
            return place + 1
    return 0


def _after_modifiers(verb: str, words: Sequence[_Word]) -> int:
    """The place after the verb, and after what may stand between it and what follows, such as OR IGNORE."""
    place = 1
    if verb in ("insert", "update") and _at(words, place).text == "or":
        place += 2
    modifiers = _MODIFIERS.get(verb, "").split()
    while _at(words, place).text in modifiers and (verb != "update" or _at(words, place + 1).text != "set"):
        place += 1
    return place


def _after(word: str, words: Sequence[_Word], place: int) -> int:
    return place + 1 if _at(words, place).text == word else 0


def _name(words: Sequence[_Word], place: int, is_query: bool = False) -> str:
    """The table that is named at a place. In a query a name with parentheses is a function."""
    for skipped in ("if", "not", "exists", "only"):
        place += _at(words, place).text == skipped
    parts = []
    while True:
        word = _at(words, place)
        if not word.name or word.text in _NO_NAMES:
            return ""
        parts.append(word.name)
        place += 1
        if _at(words, place).text != ".":
            break
        place += 1
    follows = _at(words, place)
    is_whole = follows.name or follows.text in (",", ";") or (follows.text == "(" and not is_query)
    return ".".join(parts) if is_whole and not (is_query and follows.text == "from") else ""


def _at(words: Sequence[_Word], place: int) -> _Word:
    return words[place] if place < len(words) else _END
