"""Which calls are recorded at all: what INTERPOSE_FILTER and `interpose control TARGET filter` may say.

A filter is clauses with `;` between them, all of which have to hold: `kind=db,net; module=shop.*,-shop.cache`.
A clause has alternatives with `,` between them, one of which has to hold; what begins with `-` must not. This is
imported inside the traced program when it starts, so it imports next to nothing.
"""

from __future__ import annotations

from interpose import quantities
from interpose.kinds import IN_PROGRAMS, KINDS, ON_REQUEST
from interpose.legacy.codes import CODES, STATEMENT, codes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

OFF = "off"
LONGEST = 200  # characters of an alternative, as many as the recorder has room for
MOST_RULES = 64
LAST_NUMBER = 1 << 32


class Filter:
    """Rules: for each a word, whether it leaves out, and the values that the recorder compares with.

    `text` is how it was said. The times of `from` and `to` count from the beginning of the experiment.
    """

    __slots__ = ("rules", "text")

    def __init__(self, text, rules):
        self.text = text
        self.rules = rules

    def compiled(self, start_ns: int) -> bytes:
        """What the recorder reads: a line for each rule, times by the monotonic clock; `start_ns` is the beginning."""
        lines = [_line(word, without, values, start_ns) for word, without, values in self.rules]
        return "".join(lines).encode("utf-8", "replace")


def _line(word, without, values, start_ns):
    if word in ("from", "to"):
        values = (values[0] + start_ns,)
    shown = "\t".join(map(str, values))
    return f"{'-' if without else '+'}{word}\t{shown}\n"


def parse(text: str, recorded: Collection[str] = IN_PROGRAMS) -> Filter | None:
    """The filter in `text`; None for `off` or an empty text. Raises ValueError, with the mistake, for an invalid filter
    and for one that leaves none of the kinds that are `recorded`."""
    rules = []
    for clause in text.split(";"):
        if clause.strip() and clause.strip() != OFF:
            rules.extend(_rules_of(clause.strip()))
    if _means_logic(rules) and not asks_for_statements(rules):
        rules.append(("event", True, ("name", STATEMENT)))
    if len(rules) > MOST_RULES:
        raise ValueError(f"more than {MOST_RULES} alternatives")
    if why := _leaves_nothing(rules, recorded):
        raise ValueError(f"{why}: nothing would be recorded")
    return Filter(text, rules) if rules else None


def requested(text: str) -> tuple[str, ...]:
    """The kinds that are off unless asked for and that a filter asks for: by name (`kind=import`), or by a code of
    theirs (`event=PL`). A group of codes asks for none."""
    said = set()
    for clause in text.split(";"):
        word, _, values = clause.partition("=")
        if word.strip() in ("kind", "event"):
            said.update([value.strip() for value in values.split(",")])
    return tuple([kind for kind in ON_REQUEST if said & {kind, *(each.code for each in CODES if kind in each.kinds)}])


def _rules_of(clause):
    word, equals, said = (part.strip() for part in clause.partition("="))
    if word not in WORDS:
        raise ValueError(f"{word!r} is not one of {', '.join(WORDS)}")
    alternatives = [each.strip() for each in said.split(",")] if equals else [""]
    if "" in alternatives or "-" in alternatives:
        raise ValueError(f"{clause!r}: a value is missing")
    for each in alternatives:
        without = each.startswith("-")
        value = each[1:].strip() if without else each
        if len(value) > LONGEST or not value.isprintable():
            raise ValueError(f"{value[:20]!r}... is longer than {LONGEST} characters, or has unprintable ones")
        if word in BLOCKS and (without or len(alternatives) > 1):
            raise ValueError(f"{clause!r}: only one value, without -, is possible")
        for values in WORDS[word](value):
            yield word, without, values


def _kinds(value):
    if value not in KINDS:
        raise ValueError(f"{value!r} is not one of the kinds {', '.join(KINDS)}")
    yield (value,)


def _events(value):
    """The name of an intrinsic, with `*` and `?`, or a code of the Natural Profiler in capitals."""
    if not value.isupper():
        yield "name", value
        return
    codes = codes_of(value)
    if not codes:
        raise ValueError(f"{value!r} is not an event type")
    if value != "P" and not any(code.kinds or code.intrinsic for code in codes):
        raise ValueError(f"{value}: {codes[0].name} cannot be filtered")
    for kind in dict.fromkeys(kind for code in codes for kind in code.kinds):
        yield "kind", kind
    for code in codes:
        if code.intrinsic:
            yield "name", code.intrinsic


def _means_logic(rules):
    """Whether event types are asked for that are of the kind of statements, which are an event type of their own."""
    return any(each == ("event", False, ("kind", "logic")) for each in rules)


def asks_for_statements(rules: Sequence[tuple[str, bool, tuple[object, ...]]]) -> bool:
    """Whether statements are asked for by their event type or their name, without `*`."""
    return ("event", False, ("name", STATEMENT)) in rules


def _text(value):
    yield (value,)


def _transaction(value):
    if "*" in value:
        raise ValueError(f"{value!r}: wildcards are not possible for transactions; write the whole name")
    yield (value,)


def _function(value):
    module, colon, function = value.partition(":")
    yield (module or "*", function or "*") if colon else ("*", value)


def _line_range(value):
    """`orders.py:100-200`, `orders.py:100`, or lines of any file: `100-200`."""
    file, _, numbers = value.rpartition(":")
    first, dash, last = numbers.partition("-")
    if not _is_number(first) or (dash and not _is_number(last)) or int(last or first) < int(first):
        raise ValueError(f"{value!r} is not of the form orders.py:100-200")
    yield file or "*", int(first), int(last or first)


def _thread(value):
    if value == "0":
        raise ValueError("threads are numbered from 1")
    yield (value,)


def _process(value):
    if value != "founder" and not value.startswith(("_", "M_", "*")) and not _is_number(value):
        raise ValueError(f"{value!r} is not founder, a lineage such as _f1, or a process number")
    yield (value,)


def _count(value):
    if not _is_number(value):
        raise ValueError(f"{value!r} is not a number of events")
    yield (int(value),)


def _duration(value):
    try:
        yield (quantities.recorded_ns(value),)
    except ValueError as error:
        raise ValueError(f"{value!r} is {error}") from None


def _is_number(text):
    return text.isascii() and text.isdigit() and len(text) < 11 and int(text) < LAST_NUMBER


WORDS = {
    "kind": _kinds,
    "event": _events,
    "module": _text,
    "package": _text,
    "function": _function,
    "line": _line_range,
    "within": _function,
    "transaction": _transaction,
    "thread": _thread,
    "process": _process,
    "skip": _count,
    "keep": _count,
    "from": _duration,
    "to": _duration,
}
BLOCKS = ("skip", "keep", "from", "to")


def _leaves_nothing(rules, recorded):
    """Which words contradict each other; nothing if some calls may be left."""
    single = {word: values[0] for word, _, values in rules if word in BLOCKS}
    if single.get("keep") == 0:
        return "keep=0"
    if "to" in single and single["to"] <= single.get("from", 0):
        return "to is not after from"
    for word in WORDS:
        wanted = [values for each, without, values in rules if each == word and not without]
        unwanted = [values for each, without, values in rules if each == word and without]
        if wanted and all(values in unwanted for values in wanted):
            return f"{word} leaves out what it asks for"
    return _without_kinds(rules, recorded)


def _without_kinds(rules, recorded):
    kinds = {values[0] for word, without, values in rules if word == "kind" and not without} or set(KINDS)
    kinds -= {values[0] for word, without, values in rules if word == "kind" and without}
    if not kinds:
        return "kind leaves out all kinds"
    if not kinds.intersection(recorded):
        return "kind leaves out all kinds that are recorded"
    events = [values for word, without, values in rules if word == "event" and not without]
    by_kind = ["logic" if value == STATEMENT else value for how, value in events if how == "kind" or value == STATEMENT]
    if events and len(by_kind) == len(events) and not kinds.intersection(by_kind):
        return "kind and event have nothing in common"
    return ""
