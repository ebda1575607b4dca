"""What the text of a setting means: a function for each form, which raises ValueError for what means nothing.

This is imported inside the traced program when it starts, so it imports next to nothing.
"""

import os

from interpose import quantities
from interpose.experiments.metadata import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ON = ("1", "yes", "true", "on")
OFF = ("0", "no", "false", "off")
RECORDABLE = ("calls", "native", "lines", "coverage", "profile", "heap")
LEAST_SIZE_BYTES = 1 << 20
RESERVE_AUTO = 2**64 - 1  # as much as the size of the file system demands (cext/core/reserve.h)
FOLLOW = ("off", "on")
DIALOGUE_BYTES = 64 << 20
LARGEST_RING_BYTES = 16 << 30
LARGEST_DEPTH = 65536
LARGEST_NUMBER = 999_999_999
CHOICES_AT_MOST = 64
LONGEST_CHOICE = 250
LONGEST_EXPRESSION = 500
LETTERS_OF_EXPRESSION = 10_000
ANY_ERROR = "*"
LONGEST_ERRORS = 500
LEAST_SAMPLING_NS = 10**3


class Trigger:
    """What a trigger fires at: a call at least so long, these errors by name, an exit status that is not 0."""

    __slots__ = ("above_ns", "errors", "exit")

    def __init__(self) -> None:
        self.above_ns: int | None = None
        self.errors: tuple[str, ...] = ()
        self.exit = False


def parse_record(text: str) -> tuple[str, ...]:
    """What to record: nothing for `0`, `off` and an empty text, `calls` for `1` and `on`, else the words of a list."""
    words = [word.strip().lower() for word in text.split(",")]
    if len(words) == 1 and words[0] in ("", *OFF):
        return ()
    words = ["calls" if word in ON else word for word in words]
    for word in words:
        if word not in RECORDABLE:
            raise ValueError(f"{word!r} is not one of {', '.join(('0', '1', *RECORDABLE))}")
    if "native" in words:
        words.append("calls")  # within which native calls are made
    return tuple(word for word in RECORDABLE if word in words)


def parse_directory(text: str) -> str:
    """The directory, `~` being the user's own."""
    return os.path.expanduser(text)


def parse_name(text: str) -> str:
    """The name, if it can be one."""
    if why := names.why_not(text):
        raise ValueError(why)
    return text


def parse_duration_ns(text: str) -> int | None:
    """Nanoseconds for `500us`, `10ms`, `2s`; None for `off`."""
    return None if text == "off" else _duration_ns(text, "or off")


def _duration_ns(text: str, instead: str, bare: str = "") -> int:
    """Nanoseconds; the error says what may be there `instead`."""
    try:
        return quantities.recorded_ns(text, bare)
    except ValueError as error:
        raise ValueError(f"{error} {instead}") from None


def one_of(choices: tuple[str, ...]) -> "Callable[[str], str]":
    """A function that takes one of `choices` and nothing else."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"not one of {', '.join(choices)}")
        return text

    return parse


def parse_size(text: str, words: str = "off") -> int:
    """Bytes for `512MiB`, `2GiB` or a number of MiB; 0 for `off`. At least 1 MiB."""
    if text == "off":
        return 0
    try:
        size_bytes = quantities.size_bytes(text, "MiB")
    except ValueError:
        size_bytes = 0
    if not LEAST_SIZE_BYTES <= size_bytes < quantities.ABOVE_ALL:
        raise ValueError(f"not {words} or a size of at least 1MiB, such as 512MiB or 2GiB")
    return size_bytes


def parse_heap(text: str) -> int:
    """After how many bytes of allocations one is recorded, on average; 0 for all."""
    if text == "all":
        return 0
    size_bytes = quantities.size_bytes(text, "KiB")
    if not 1024 <= size_bytes <= LARGEST_RING_BYTES:
        raise ValueError(f"neither all nor a size from 1KiB to {LARGEST_RING_BYTES >> 30}GiB")
    return size_bytes


def parse_counters(text: str) -> tuple[str, ...]:
    """The counters that are read with the profile; nothing for `off`."""
    if text == "off":
        return ()
    from interpose import counters  # which nothing else in the program needs

    return counters.parse_counters(text)


def parse_dialogue(text: str) -> int:
    """Bytes of the dialogue that are kept: 0 for `0`, a good many for `1`, or a size."""
    if text in ("0", "1"):
        return DIALOGUE_BYTES if text == "1" else 0
    try:
        size_bytes = parse_size(text)
    except ValueError:
        size_bytes = 0
    if not size_bytes:
        raise ValueError("not 0, 1 or a size of at least 1MiB")
    return size_bytes


def parse_switch(text: str) -> bool:
    """Whether something is on."""
    if text not in ("0", "1"):
        raise ValueError("not one of 0, 1")
    return text == "1"


def parse_reserve(text: str) -> int:
    """Bytes for `512MiB` or a number of MiB, 0 for `off`, `RESERVE_AUTO` for `auto`."""
    return RESERVE_AUTO if text == "auto" else parse_size(text, "auto, off")


def parse_ring(text: str) -> int:
    """Bytes for `64MiB`, `1GiB` or a number of MiB; 0 for `off`."""
    size_bytes = parse_size(text)
    if size_bytes > LARGEST_RING_BYTES:
        raise ValueError(f"a ring can have at most {LARGEST_RING_BYTES >> 30}GiB")
    return size_bytes


def parse_trigger(text: str) -> Trigger | None:
    """What a trigger fires at, for `call > 2s`, `error`, `error = NAME`, `exit != 0`, or several; None for `off`."""
    if text == "off":
        return None
    trigger = Trigger()
    for words in (each.split() for each in text.split(",")):
        what = " ".join(words[:2])
        if what == "call >" and len(words) == 3 and words[2] != "off":
            duration_ns = parse_duration_ns(words[2]) or 1
            trigger.above_ns = min(trigger.above_ns or duration_ns, duration_ns)
        elif words == ["error"]:
            trigger.errors += (ANY_ERROR,)
        elif what == "error =" and len(words) == 3 and _is_dotted_name(words[2]):
            trigger.errors += (words[2],)
        elif words == ["exit", "!=", "0"]:
            trigger.exit = True
        else:
            raise ValueError("not off or a trigger such as call > 2s, error, error = NAME, exit != 0")
    if len(" ".join(trigger.errors)) > LONGEST_ERRORS:
        raise ValueError(f"the names of errors are longer than {LONGEST_ERRORS} characters")
    return trigger


def _is_dotted_name(text: str) -> bool:
    return text.isascii() and all(word.isidentifier() for word in text.split("."))


def parse_sampling(text: str) -> int | None:
    """Nanoseconds from 1 us on; None for `off`."""
    interval_ns = parse_duration_ns(text)
    if interval_ns is not None and interval_ns < LEAST_SAMPLING_NS:
        raise ValueError("an interval must be at least 1us")
    return interval_ns


def parse_one_in(text: str) -> int:
    """The number of transactions of which one is kept, for `1/10` or `10`; 0 for `all`, and where it is 1."""
    number = text.removeprefix("1/")
    if text == "all":
        return 0
    if not (number.isascii() and number.isdigit() and len(number) < 8 and int(number)):
        raise ValueError("not all or a fraction such as 1/10")
    return int(number) if int(number) > 1 else 0


def parse_seed(text: str) -> int | None:
    """A whole number of at most 64 bits; None for `random`."""
    if text == "random":
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and int(text) < 1 << 64):
        raise ValueError("not a number from 0 to 2^64 - 1, nor random")
    return int(text)


def parse_file(text: str) -> str:
    """The path of a file, from the root on, `~` being the user's own; nothing for `off`."""
    return "" if text == "off" else os.path.abspath(os.path.expanduser(text))


def parse_text(text: str) -> str:
    """The text; nothing for `off`."""
    return "" if text == "off" else text


def parse_count(text: str, least: int = 0, most: int = LARGEST_NUMBER) -> int:
    """A whole number from `least` to `most`."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not is_number or not least <= int(text) <= most:
        raise ValueError(f"not a number from {least} to {most}")
    return int(text)


def parse_waits(text: str) -> int | None:
    """Nanoseconds from which on a wait is recorded: 0 for `all`, None for `auto`, which is measured at the start."""
    if text in ("auto", "all"):
        return None if text == "auto" else 0
    return _duration_ns(text, "or auto or all")


def parse_interval(text: str) -> int | None:
    """Nanoseconds for `2s`, `500ms` or a number of seconds; 1 s for `on`, None for `off`."""
    if text == "on":
        return quantities.TIMES_NS["s"]
    interval_ns = None if text == "off" else _duration_ns(text, "nor seconds, on, off", bare="s")
    if interval_ns == 0:
        raise ValueError("the interval must be greater than zero")
    return interval_ns


def parse_follow(text: str) -> str:
    """The text, if it can be one; whether the expression behind `=` is one is seen where it is compiled."""
    if text not in FOLLOW and not (text[:1] == "=" and text[1:]):
        raise ValueError(f"not one of {', '.join(FOLLOW)}, nor = and a regular expression")
    return text


def parse_redact(text: str) -> str:
    """The expression, empty for `off`; whether it is one is seen where it is compiled. What would take too long, or too
    much memory, is refused."""
    if text == "off":
        return ""
    if len(text) > LONGEST_EXPRESSION or _letters_of_expression(text) > LETTERS_OF_EXPRESSION:
        written_out = f"{LETTERS_OF_EXPRESSION:,} once its repetitions are written out"
        raise ValueError(f"longer than {LONGEST_EXPRESSION} characters, or than {written_out}")
    return text


def _letters_of_expression(text: str) -> int:
    """How long a regular expression is where each `{m,n}` is written out. Raises ValueError for what refers back."""
    sums, last, place = [0], 0, 0
    while place < len(text):
        letter, end = text[place], place + 1
        if letter == "(":
            sums.append(0)
        elif letter == ")" and len(sums) > 1:
            last = sums.pop()
            sums[-1] += last
        elif letter == "{":
            end = text.find("}", place) + 1 or len(text)
            bounds = text[place + 1 : end - 1].split(",")
            times = max([int(word) for word in bounds if word.isascii() and word.isdigit()], default=1)
            sums[-1] += last * (times - 1)
            last *= times
        else:
            if letter == "\\" and text[end : end + 1] in tuple("123456789"):
                raise ValueError(f"refers back to a group ({text[place : place + 2]}), which can take very long")
            end = _end_of_brackets(text, place) if letter == "[" else place + 2 if letter == "\\" else end
            last = 1
            sums[-1] += last
        place = end
    return sum(sums)


def _end_of_brackets(text: str, place: int) -> int:
    """Where the bracket expression that begins at `place` ends."""
    place += 2 if text.startswith("^", place + 1) else 1
    place += text.startswith("]", place)
    while place < len(text) and text[place] != "]":
        kind = text[place + 1 : place + 2]
        inner = text.find(f"{kind}]", place + 2) if text[place] == "[" and kind in tuple(":.=") else -1
        place = inner + 2 if inner >= 0 else place + 1
    return place + 1


def parse_names(text: str) -> tuple[str, ...]:
    """The words of a comma list; nothing for `off`."""
    return () if text == "off" else tuple(word.strip() for word in text.split(",") if word.strip())


def parse_collectors(text: str) -> tuple[str, ...] | None:
    """The words of a comma list; nothing for `off`, None for `auto`."""
    return None if text == "auto" else parse_names(text)


def parse_choices(text: str) -> tuple[tuple[str, str], ...]:
    """The module and the function that each word of a comma list names, both patterns; nothing for `own`."""
    choices = [] if text == "own" else [word.strip().partition(":") for word in text.split(",") if word.strip()]
    if len(choices) > CHOICES_AT_MOST or any(len(part) > LONGEST_CHOICE for each in choices for part in each):
        raise ValueError(f"at most {CHOICES_AT_MOST} patterns, of at most {LONGEST_CHOICE} characters")
    return tuple((module or "*", function or "*") for module, _, function in choices)


def parse_depth(text: str) -> int:
    """A whole number from 1 on."""
    return parse_count(text, 1, LARGEST_DEPTH)
