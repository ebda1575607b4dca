"""What a user may set, in one table: by variable, by option of `interpose run`, or in pyproject.toml.

An option goes before the environment, the environment before the file, the file before the default. This is
imported inside the traced program when it starts, so it imports next to nothing.

`python -m interpose.settings` prints docs/settings.md.
"""

from __future__ import annotations

import os

from interpose import levels, quantities
from interpose.errors import SettingError
from interpose.experiments import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    # What a file says: the text for each key, and the place (`pyproject.toml:12`) that says so.
    FileSettings = Mapping[str, tuple[str, str]]

FILE = "pyproject.toml"
SECTION = "tool.interpose"
LARGEST_FILE_BYTES = 1 << 20

RECORDABLE = ("calls", "lines", "coverage")
CLOCKS = ("auto", "rseq", "perf", "syscall")
STACKS = ("own", "none")
LAYERS = ("raw", "buffered")
ROWS = ("each", "cursor", "auto")
WAYS = ("place", "wrapt")
WHEN_FULL = ("drop", "wait")
LEAST_SIZE_BYTES = 1 << 20
ARCHIVES_OF_SOURCES = ("on", "src", "usedsrc", "all")
ARCHIVES_OF_OBJECTS = ("ldobjects", "usedldobjects", "all")
ARCHIVES = ("off", *ARCHIVES_OF_SOURCES, "ldobjects", "usedldobjects")
FOLLOW = ("off", "on")
LIBRARIES = ("G", "P", "S")  # how many are searched: from the group's on, from the account's on, ours alone
LIBRARIES_KEY = "libraries"
DIALOGUE_BYTES = 64 << 20
LARGEST_RING_BYTES = 16 << 30
LARGEST_DEPTH = 65536
CHOICES_AT_MOST = 64
LONGEST_CHOICE = 250
LONGEST_EXPRESSION = 500
LETTERS_OF_EXPRESSION = 10_000
ANY_ERROR = "*"
LONGEST_ERRORS = 500
LEAST_SAMPLING_NS = 10**3


def parse_record(text: str) -> tuple[str, ...]:
    """What to record: nothing for `0` and an empty text, `calls` for `1`, else the words of a comma list."""
    if text in ("", "0"):
        return ()
    words = ["calls" if word.strip() == "1" else word.strip() for word in text.split(",")]
    for word in words:
        if word not in RECORDABLE:
            raise ValueError(f"{word!r} is not one of {', '.join(('0', '1', *RECORDABLE))}")
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
    return None if text == "off" else _duration_ns(text, "nor off")


def _duration_ns(text: str, instead: str, bare: str = "") -> int:
    """Nanoseconds; the error says what may be there `instead`."""
    try:
        return quantities.recorded_ns(text, bare)
    except ValueError as error:
        raise ValueError(f"{error}, {instead}") from None


def one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    """A function that takes one of `choices` and nothing else."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"not one of {', '.join(choices)}")
        return text

    return parse


def parse_size(text: str) -> int:
    """Bytes for `512MiB`, `2GiB` or a number of MiB; 0 for `off`. At least 1 MiB."""
    if text == "off":
        return 0
    try:
        size_bytes = quantities.size_bytes(text, "MiB")
    except ValueError:
        size_bytes = 0
    if not LEAST_SIZE_BYTES <= size_bytes < quantities.ABOVE_ALL:
        raise ValueError("not a size from 1MiB on, like 512MiB, 2GiB, nor off")
    return size_bytes


def parse_dialogue(text: str) -> int:
    """Bytes of the dialogue that are kept: 0 for `0`, a good many for `1`, or a size."""
    if text in ("0", "1"):
        return DIALOGUE_BYTES if text == "1" else 0
    try:
        size_bytes = parse_size(text)
    except ValueError:
        size_bytes = 0
    if not size_bytes:
        raise ValueError("not one of 0, 1, nor a size from 1MiB on")
    return size_bytes


def parse_switch(text: str) -> bool:
    """Whether something is on."""
    if text not in ("0", "1"):
        raise ValueError("not one of 0, 1")
    return text == "1"


def parse_ring(text: str) -> int:
    """Bytes for `64MiB`, `1GiB` or a number of MiB; 0 for `off`."""
    size_bytes = parse_size(text)
    if size_bytes > LARGEST_RING_BYTES:
        raise ValueError(f"a ring is of {LARGEST_RING_BYTES >> 30}GiB at most")
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
            raise ValueError("not a trigger like call > 2s, error, error = NAME, exit != 0, nor off")
    if len(" ".join(trigger.errors)) > LONGEST_ERRORS:
        raise ValueError(f"the names of errors are at most {LONGEST_ERRORS} letters")
    return trigger


def _is_dotted_name(text: str) -> bool:
    return text.isascii() and all(word.isidentifier() for word in text.split("."))


def parse_sampling(text: str) -> int | None:
    """Nanoseconds from 1 us on; None for `off`."""
    interval_ns = parse_duration_ns(text)
    if interval_ns is not None and interval_ns < LEAST_SAMPLING_NS:
        raise ValueError("an interval is of 1us at least")
    return interval_ns


def parse_one_in(text: str) -> int:
    """The number of transactions of which one is kept, for `1/10` or `10`; 0 for `all`, and where it is 1."""
    number = text.removeprefix("1/")
    if text == "all":
        return 0
    if not (number.isascii() and number.isdigit() and len(number) < 8 and int(number)):
        raise ValueError("not one in so many like 1/10, nor all")
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


def parse_count(text: str) -> int:
    """A whole number from 0 on."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValueError("not a number from 0 on")
    return int(text)


def parse_waits(text: str) -> int | None:
    """Nanoseconds from which on a wait is recorded: 0 for `all`, None for `auto`, which is measured at the start."""
    if text in ("auto", "all"):
        return None if text == "auto" else 0
    return _duration_ns(text, "nor auto, nor all")


def parse_interval(text: str) -> int | None:
    """Nanoseconds for `2s`, `500ms` or a number of seconds; 1 s for `on`, None for `off`."""
    if text == "on":
        return quantities.TIMES_NS["s"]
    interval_ns = None if text == "off" else _duration_ns(text, "nor seconds, on, off", bare="s")
    if interval_ns == 0:
        raise ValueError("an interval is longer than nothing")
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
        longest = f"{LONGEST_EXPRESSION} letters, or than {LETTERS_OF_EXPRESSION:,} with what it repeats"
        raise ValueError(f"longer than {longest}")
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
        raise ValueError(f"at most {CHOICES_AT_MOST} patterns, of at most {LONGEST_CHOICE} letters")
    return tuple((module or "*", function or "*") for module, _, function in choices)


def parse_depth(text: str) -> int:
    """A whole number from 1 on."""
    depth = parse_count(text)
    if not 1 <= depth <= LARGEST_DEPTH:
        raise ValueError(f"not a number from 1 to {LARGEST_DEPTH}")
    return depth


class Trigger:
    """What a trigger fires at: a call at least so long, these errors by name, an exit status that is not 0."""

    __slots__ = ("above_ns", "errors", "exit")

    def __init__(self) -> None:
        self.above_ns: int | None = None
        self.errors: tuple[str, ...] = ()
        self.exit = False


class Setting:
    """One thing that can be set: its names, its default as one would write it, and what it means."""

    __slots__ = ("default", "form", "key", "letter", "meaning", "name", "parse", "variable")

    def __init__(
        self,
        name: str,
        variable: str,
        key: str,
        form: str,
        default: str,
        parse: Callable[[str], object],
        meaning: str,
        letter: str = "",
    ) -> None:
        self.name = name
        self.variable = variable
        self.key = key
        self.form = form
        self.default = default
        self.parse = parse
        self.meaning = meaning
        self.letter = letter

    @property
    def option(self) -> str:
        """The option of `interpose run`."""
        return f"--{self.key}"

    @property
    def options(self) -> tuple[str, ...]:
        """Every way to write the option: with one letter, where it has one, and with its name."""
        return (f"-{self.letter}", self.option) if self.letter else (self.option,)


SETTINGS = (
    Setting(
        "record",
        "INTERPOSE",
        "record",
        "WHAT",
        "0",
        parse_record,
        "what to record: 1 (that is calls), or a list of what is known (calls, lines, coverage); 0 or empty: nothing."
        " `interpose run` takes 1 where nothing else is said",
    ),
    Setting(
        "dir",
        "INTERPOSE_DIR",
        "dir",
        "DIRECTORY",
        ".",
        parse_directory,
        "where experiments are made; in a file, from the file's own directory on",
        letter="d",
    ),
    Setting(
        "name",
        "INTERPOSE_NAME",
        "name",
        "NAME",
        "test",
        parse_name,
        "name of the experiment: test makes test.1.er, test.2.er and so on; NAME.er is taken as it is",
    ),
    Setting(
        "clock",
        "INTERPOSE_CLOCK",
        "clock",
        "|".join(CLOCKS),
        "auto",
        one_of(CLOCKS),
        "how a thread's CPU time is read; auto takes the cheapest that passes its test",
    ),
    Setting(
        "stack",
        "INTERPOSE_STACK",
        "stack",
        "|".join(STACKS),
        "own",
        one_of(STACKS),
        "where a call came from: own is the innermost frames up to the first of one's own code",
    ),
    Setting(
        "stack_above_ns",
        "INTERPOSE_STACK_ABOVE",
        "stack-above",
        "DURATION",
        "10ms",
        parse_duration_ns,
        "a call at least this long (10ms, 500us, 2s, or off) keeps the whole stack",
    ),
    Setting(
        "wait_above_ns",
        "INTERPOSE_SYNC",
        "sync",
        "auto|all|DURATION",
        "auto",
        parse_waits,
        "a wait for a lock or its like is recorded from this time on, shorter ones are counted; auto measures what"
        " free locks take, all records free locks too",
    ),
    Setting(
        "sample_every_ns",
        "INTERPOSE_SAMPLE",
        "sample",
        "on|off|SECONDS",
        "on",
        parse_interval,
        "how often it is noted what the process has used (CPU, memory, faults, switches), with the next call that"
        " ends; on is each second, off only at the beginning and the end",
        letter="S",
    ),
    Setting(
        "pool_bytes",
        "INTERPOSE_POOL",
        "pool",
        "SIZE",
        "2GiB",
        parse_size,
        "how much of the disk the events of an experiment may take at a time (512MiB, 2GiB, off: without limit)",
    ),
    Setting(
        "when_full",
        "INTERPOSE_WHEN_FULL",
        "when-full",
        "|".join(WHEN_FULL),
        "drop",
        one_of(WHEN_FULL),
        "when the pool is full: drop events, counted, or let the program wait for the monitor that makes room",
    ),
    Setting(
        "limit_bytes",
        "INTERPOSE_LIMIT",
        "limit",
        "SIZE",
        "off",
        parse_size,
        "how many events are recorded at most, by their size before compression; afterwards they are dropped, counted",
        letter="L",
    ),
    Setting(
        "ring_bytes",
        "INTERPOSE_RING",
        "ring",
        "SIZE",
        "off",
        parse_ring,
        "keep only the newest events of each process, so many (64MiB, 1GiB, off: all are kept); `interpose save` keeps"
        " what is there",
    ),
    Setting(
        "consolidate",
        "INTERPOSE_CONSOLIDATE",
        "consolidate",
        "0|1",
        "0",
        parse_switch,
        "1: like calls are put together as they are recorded, and no events are kept: the experiment grows with what is"
        " different, not with what is called",
    ),
    Setting(
        "slowest",
        "INTERPOSE_SLOWEST",
        "slowest",
        "N",
        "100",
        parse_count,
        "how many of the slowest calls of a process are kept whole where calls are put together",
    ),
    Setting(
        "trigger",
        "INTERPOSE_TRIGGER",
        "trigger",
        "WHEN",
        "off",
        parse_trigger,
        "when to take note: call > 2s, error, error = sqlite3.OperationalError, exit != 0, or several with commas."
        " It is counted, and `interpose run` keeps a copy of the experiment as it is then",
    ),
    Setting(
        "saves",
        "INTERPOSE_SAVES",
        "saves",
        "N",
        "3",
        parse_count,
        "how many copies `interpose run` keeps because a trigger fired, at most",
    ),
    Setting(
        "paused",
        "INTERPOSE_PAUSED",
        "paused",
        "0|1",
        "0",
        parse_switch,
        "1: nothing is recorded until somebody outside says so, as `interpose run --at` does",
    ),
    Setting(
        "control",
        "INTERPOSE_CONTROL",
        "control",
        "FILE",
        "off",
        parse_file,
        "a control file with keywords as the Natural Profiler has them (FUNCTION=INIT, FILTER=EVENT, ... END-PROFILER;"
        " docs/control.md): what it says goes before the other settings",
    ),
    Setting(
        "filter",
        "INTERPOSE_FILTER",
        "filter",
        "off|WORD=VALUE;...",
        "off",
        parse_text,
        "only calls for which it holds are recorded (`kind=db; module=shop.*,-shop.cache; skip=100; keep=500`):"
        " docs/control.md has the words. What is no filter is told in the report, and all is recorded",
    ),
    Setting(
        "interval_ns",
        "INTERPOSE_INTERVAL",
        "interval",
        "off|DURATION",
        "off",
        parse_sampling,
        "sample calls: of each thread only those are recorded that run as so much of its CPU time (4800us) has passed"
        " again. Reports then have CPU times, which are estimates, and no others; `interpose control suggest` tells an"
        " interval",
    ),
    Setting(
        "one_in",
        "INTERPOSE_TRANSACTIONS",
        "transactions",
        "all|1/N",
        "all",
        parse_one_in,
        "sample transactions: one in so many (1/10) is recorded whole, of the others no more than when they were; what"
        " is outside of any is recorded always. Reports estimate counts and times, with the margin of error",
    ),
    Setting(
        "seed",
        "INTERPOSE_SEED",
        "seed",
        "random|N",
        "random",
        parse_seed,
        "which transactions are chosen: with the same number, and transactions in the same order, the same ones; the"
        " number that was drawn stands in the experiment",
    ),
    Setting(
        "kinds",
        "INTERPOSE_KINDS",
        "kinds",
        "all|KIND[=LEVEL],...",
        "all",
        levels.parse_kinds,
        "which kinds of calls are recorded (db, screen, file, net, process, sync, sleep, logic, import), and how: time,"
        " count (counted, not timed) or off. all is every kind but import, and others may follow it (all,import). What"
        " starts processes always is recorded, for descendants are followed by it",
    ),
    Setting(
        "levels",
        "INTERPOSE_LEVELS",
        "levels",
        "NAME=LEVEL,...",
        "time",
        levels.parse_levels,
        "the same for single intrinsics, by the name that reports show or its beginning (os.stat=count, sqlite3=off),"
        " or for a library; it goes before the kind's",
    ),
    Setting(
        "budget_ppm",
        "INTERPOSE_BUDGET",
        "budget",
        "off|SHARE",
        "off",
        levels.parse_budget,
        "how much of the program's CPU time recording may take (2%): when it is more, what costs most is counted"
        " instead of timed, then not even that, for the rest of the run",
    ),
    Setting(
        "files",
        "INTERPOSE_FILES",
        "files",
        "|".join(LAYERS),
        "raw",
        one_of(LAYERS),
        "where files are interposed: raw is what reaches the outside, buffered the buffers above it as well",
    ),
    Setting(
        "rows",
        "INTERPOSE_ROWS",
        "rows",
        "|".join(ROWS),
        "auto",
        one_of(ROWS),
        "how fetches of rows are recorded: each as a call of its own, those of a cursor from one line put together in"
        " one with the count of rows, or auto: put together where a cursor gives more than 1,000 a second",
    ),
    Setting(
        "by",
        "INTERPOSE_BY",
        "by",
        "|".join(WAYS),
        "place",
        one_of(WAYS),
        "how calls are interposed: in place (all of them), or with wrapt those that wrappers can reach",
    ),
    Setting(
        "lib",
        "INTERPOSE_LIB",
        "lib",
        "|".join(LIBRARIES),
        "G",
        one_of(LIBRARIES),
        "which libraries are searched: G the group's, the account's, those of packages, ours; P all but the group's; S"
        " ours alone",
    ),
    Setting(
        "xl",
        "INTERPOSE_XL",
        "xl",
        "LIBRARY,...",
        "off",
        parse_names,
        "these libraries in this order, and ours last unless it is named (`system`): names as `interpose map` shows"
        " them, `group`, `account`, or paths of files; then `lib` does not matter",
    ),
    Setting(
        "collectors",
        "INTERPOSE_COLLECTORS",
        "collectors",
        "auto|off|NAME,...",
        "auto",
        parse_collectors,
        "which data collectors name what is going on (docs/collectors.md), in this order: auto those that are found for"
        " the program (`interpose_<prefix>.py` in an `interpose.d`, entry points), or names or paths of files",
    ),
    Setting(
        "unsat",
        "INTERPOSE_UNSAT",
        "unsat",
        "off|skip|FUNCTION",
        "off",
        str,
        "what becomes of a name that a library declares and its module has not: off is an error of `interpose run` and"
        " `map`; skip leaves it out; a function of a library is called with library and target, and may give another"
        " target",
    ),
    Setting(
        "group",
        "INTERPOSE_GROUP",
        "group",
        "auto|DIRECTORY",
        "auto",
        parse_directory,
        "the directory whose `interpose.d`, or `libraries` in `pyproject.toml`, are the group's; auto finds it from the"
        " main script's directory upward. Descendants have their founder's",
    ),
    Setting(
        "archive",
        "INTERPOSE_ARCHIVE",
        "archive",
        "|".join(ARCHIVES),
        "usedsrc",
        one_of(ARCHIVES),
        "what is copied into the experiment after the program's end: usedsrc (also on, src) the sources that calls were"
        " made from, usedldobjects (also ldobjects) the programs and libraries that were mapped, all both, off nothing",
        letter="a",
    ),
    Setting(
        "follow",
        "INTERPOSE_FOLLOW",
        "follow",
        "off|on|=REGEX",
        "on",
        parse_follow,
        "which descendants are recorded: all, none, or those whose command line (as reports show it) or lineage the"
        " expression (extended, of POSIX) matches; of what `interpose run` starts that is no Python itself, the first"
        " Python program that matches is the founder",
        letter="F",
    ),
    Setting(
        "lines",
        "INTERPOSE_LINES",
        "lines",
        "own|MODULE[:FUNCTION],...",
        "own",
        parse_choices,
        "of which functions each line is counted and timed, where lines are recorded: those of modules and by qualified"
        " names, both with `*` and `?` (shop, shop.orders:Client.*, *:main); own is the program's own code. A module"
        " stands for those below it, too. All other functions run as without",
    ),
    Setting(
        "lines_depth",
        "INTERPOSE_LINES_DEPTH",
        "lines-depth",
        "N",
        "1024",
        parse_depth,
        "of calls inside each other so many are recorded by line, deeper ones are not, which the result says",
    ),
    Setting(
        "lines_system",
        "INTERPOSE_LINES_SYSTEM",
        "lines-system",
        "0|1",
        "0",
        parse_switch,
        "1: user and system time of each line apart, for the price of a system call at each line",
    ),
    Setting(
        "statements",
        "INTERPOSE_STATEMENTS",
        "statements",
        "0|1",
        "0",
        parse_switch,
        "1: each line that is come to is an event among the calls, an instant without a duration, where calls are"
        " recorded and only while lines are (`INTERPOSE=calls,lines`; with calls alone the report tells that), of 88"
        " bytes",
    ),
    Setting(
        "coverage",
        "INTERPOSE_COVERAGE",
        "coverage",
        "own|MODULE[:FUNCTION],...",
        "own",
        parse_choices,
        "of which functions is recorded which statements were executed, where coverage is recorded; as with"
        " `INTERPOSE_LINES`",
    ),
    Setting(
        "branches",
        "INTERPOSE_BRANCHES",
        "branches",
        "0|1",
        "0",
        parse_switch,
        "1: coverage records which way each condition went as well; code that goes one way only stays slower",
    ),
    Setting(
        "contexts",
        "INTERPOSE_CONTEXTS",
        "contexts",
        "0|1",
        "0",
        parse_switch,
        "1: coverage is recorded for each transaction by itself, by name",
    ),
    Setting(
        "probes",
        "INTERPOSE_PROBES",
        "probes",
        "0|1",
        "1",
        parse_switch,
        "0: on Python 3.11 coverage is recorded by a trace function, which makes the program several times slower, and"
        " not by probes in the bytecode; later versions need neither",
    ),
    Setting(
        "dialogue_bytes",
        "INTERPOSE_DIALOGUE",
        "dialogue",
        "0|1|SIZE",
        "0",
        parse_dialogue,
        "1: what terminals showed and what was typed there is kept, with times, up to 64MiB a process or the size that"
        " is said (`interpose dialogue`); what is typed while the terminal's echo is off never is",
    ),
    Setting(
        "arguments",
        "INTERPOSE_ARGUMENTS",
        "arguments",
        "usual|KIND=HOW,...",
        "usual",
        levels.parse_arguments,
        "how much is kept of what calls of a kind were about (statement, path, address, command; db=whole,file=shape):"
        " nothing; shape (`SELECT`, `/*/*.csv`, `*:443`); normalised (literals `?`, numbers `*`, of a command the"
        " program); whole, values and arguments with it; usual: of db and process as normalised, of others whole",
    ),
    Setting(
        "redact",
        "INTERPOSE_REDACT",
        "redact",
        "off|REGEX",
        "off",
        parse_redact,
        "what matches the expression (extended, of POSIX; several with `|`) becomes `?` before anything is written:"
        " details of calls, names, the command line, the dialogue. Sources are then archived only by `interpose"
        " archive`",
    ),
    Setting(
        "group_reads",
        "INTERPOSE_GROUP_READS",
        "group-reads",
        "0|1",
        "0",
        parse_switch,
        "1: the group of the directory where experiments are made may read them, where the user is of that group",
    ),
)
BY_KEY = {setting.key: setting for setting in SETTINGS}


class Settings:
    """The settings in force, each by its name; by variable, their texts and where these came from."""

    record: tuple[str, ...]
    dir: str
    name: str
    clock: str
    stack: str
    stack_above_ns: int | None
    wait_above_ns: int | None
    sample_every_ns: int | None
    pool_bytes: int
    when_full: str
    limit_bytes: int
    ring_bytes: int
    consolidate: bool
    slowest: int
    trigger: Trigger | None
    saves: int
    paused: bool
    control: str
    filter: str
    interval_ns: int | None
    one_in: int
    seed: int | None
    kinds: dict[str, str] | None
    levels: dict[str, str]
    budget_ppm: int
    files: str
    rows: str
    by: str
    lib: str
    xl: tuple[str, ...]
    collectors: tuple[str, ...] | None
    unsat: str
    group: str
    archive: str
    follow: str
    lines: tuple[tuple[str, str], ...]
    lines_depth: int
    lines_system: bool
    statements: bool
    coverage: tuple[tuple[str, str], ...]
    branches: bool
    contexts: bool
    probes: bool
    dialogue_bytes: int
    arguments: dict[str, int]
    redact: str
    group_reads: bool

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.origins: dict[str, str] = {}
        self.said: dict[str, str] = {}  # as it was said there, for messages
        self.forbidden: Mapping[str, str] = {}  # kinds that the administrator forbids, by the place that says so
        self.within = ""  # what became of the transaction that the process was started in
        self.warnings: list[str] = []  # what could not be done of it, while all else is

    @property
    def stack_kept(self) -> bool:
        """Whether it is recorded where calls come from."""
        return self.stack != "none"

    @property
    def wait_when_full(self) -> bool:
        """Whether the program waits for room, and no events are dropped."""
        return self.when_full == "wait"

    @property
    def objects(self) -> bool:
        """Whether the files that are mapped are noted."""
        return self.archive in ARCHIVES_OF_OBJECTS

    @property
    def trigger_above_ns(self) -> int | None:
        """How long a call is that fires the trigger; None where none does."""
        return self.trigger.above_ns if self.trigger else None

    @property
    def trigger_errors(self) -> str:
        """The names of errors that fire it, with spaces between them."""
        return " ".join(self.trigger.errors) if self.trigger else ""

    @property
    def trigger_exit(self) -> bool:
        """Whether an exit status that is not 0 does."""
        return self.trigger is not None and self.trigger.exit

    def environment(self) -> dict[str, str]:
        """The variables that give a program these same settings, wherever it is started."""
        ours = {"INTERPOSE": ",".join(self.record) or "0", "INTERPOSE_DIR": self.dir, "INTERPOSE_GROUP": self.group}
        return {**self.texts, **ours}


def resolve(
    options: Mapping[str, str | None], environment: Mapping[str, str], file: FileSettings
) -> Settings:
    """The settings in force, from the options (by key; None is not given), the environment and the file.

    An empty variable counts as not set. Raises SettingError for a value that means nothing.
    """
    settings = Settings()
    for setting in SETTINGS:
        text, origin, said = _choose(setting, options, environment, file)
        try:
            value = setting.parse(text)
        except ValueError as error:
            raise SettingError(f"{said}: {error}") from None
        setattr(settings, setting.name, value)
        settings.texts[setting.variable] = text
        settings.origins[setting.variable] = origin
        settings.said[setting.variable] = said
    if settings.control:
        _heed_control_file(settings)
    if settings.filter:
        _heed_filter(settings)
    if settings.one_in and settings.interval_ns:
        why = "calls are sampled already (INTERPOSE_INTERVAL)"
        raise SettingError(f"{settings.said['INTERPOSE_TRANSACTIONS']}: {why}")
    if settings.statements and (why := _why_no_statements(settings)):
        settings.statements, settings.texts["INTERPOSE_STATEMENTS"] = False, "0"
        settings.warnings.append(f"{settings.said['INTERPOSE_STATEMENTS']}: {why}")
    elif settings.statements and "lines" not in settings.record:
        why = "only while lines are recorded (INTERPOSE=calls,lines): none before the program switches these on"
        settings.warnings.append(f"{settings.said['INTERPOSE_STATEMENTS']}: {why}")
    settings.dir = _absolute(settings.dir, settings.origins["INTERPOSE_DIR"])
    if settings.group != "auto":
        settings.group = _absolute(settings.group, settings.origins["INTERPOSE_GROUP"])
    return settings


def _heed_filter(settings: Settings) -> None:
    """What is wrong with the filter is a warning. What it asks for, and is off unless asked for, is recorded."""
    said, recorded = settings.said["INTERPOSE_FILTER"], kinds_recorded(settings)
    settings.warnings += (wrong := why_no_filter(settings.filter, said, recorded))
    if not wrong and "calls" in settings.record:
        _record_requested(settings)
        _record_statements(settings)


def _record_statements(settings: Settings) -> None:
    """Have statements recorded, with lines, where the filter asks for them."""
    said = settings.said["INTERPOSE_FILTER"]
    if not _asks_for_statements(settings.filter):
        return
    if not settings.statements and settings.origins["INTERPOSE_STATEMENTS"] != "default":
        settings.warnings.append(f"{said}: no statements are recorded ({settings.said['INTERPOSE_STATEMENTS']})")
        return
    settings.record = tuple(word for word in RECORDABLE if word in (*settings.record, "lines"))
    settings.texts |= {"INTERPOSE": ",".join(settings.record), "INTERPOSE_STATEMENTS": "1"}
    if not settings.statements:
        settings.statements = True
        settings.origins["INTERPOSE_STATEMENTS"] = settings.origins["INTERPOSE_FILTER"]
        settings.said["INTERPOSE_STATEMENTS"] = said


def _asks_for_statements(text: str) -> bool:
    from interpose import filters

    made = filters.parse(text)
    return made is not None and filters.asks_for_statements(made.rules)


def _why_no_statements(settings: Settings) -> str:
    """Why statements are no events; nothing where they may be. Lines may be switched on by the program later."""
    if "calls" not in settings.record:
        return "statements are recorded among calls (INTERPOSE=calls,lines)"
    return "statements are not sampled (INTERPOSE_INTERVAL)" if settings.interval_ns else ""


def _heed_control_file(settings: Settings) -> None:
    """Have in force what the control file says. What it cannot have is a warning."""
    from interpose import keywords

    try:
        steps, wrong = keywords.read(settings.control)
        found, unfit = keywords.settings_of(steps, settings.record)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None)
        settings.warnings.append(f"{settings.said['INTERPOSE_CONTROL']}: {why}" if why else str(error))
        return
    settings.warnings += wrong + unfit
    for setting in SETTINGS:
        if setting.variable in found:
            _put(settings, setting, found[setting.variable], settings.control, settings.control)


def _put(settings: Settings, setting: Setting, text: str, origin: str, place: str) -> None:
    """Have a setting as `text` says, which follows from what was said at `place`."""
    setattr(settings, setting.name, setting.parse(text))
    settings.texts[setting.variable] = text
    settings.origins[setting.variable] = origin
    settings.said[setting.variable] = f"{place}: {setting.variable}={text}"


def _record_requested(settings: Settings) -> None:
    """Have the kinds recorded that the filter asks for and that are off unless asked for."""
    from interpose import filters

    text = settings.texts["INTERPOSE_KINDS"]
    unsaid = [kind for kind in filters.requested(settings.filter) if not levels.names_kind(text, kind)]
    if unsaid:
        origin, said = settings.origins["INTERPOSE_FILTER"], settings.said["INTERPOSE_FILTER"]
        _put(settings, BY_KEY["kinds"], ",".join([text, *unsaid]), origin, said)


def kinds_recorded(settings: Settings) -> set[str]:
    """The kinds of which calls may be recorded; what the filter asks for is among them."""
    from interpose import filters

    if settings.levels:  # of any kind
        return set(levels.KINDS)
    by_kind = settings.kinds or {kind: levels.usual_level(kind) for kind in levels.KINDS}
    return {kind for kind, level in by_kind.items() if level != levels.OFF}.union(filters.requested(settings.filter))


def why_no_filter(text: str, said: str, recorded: Collection[str] = levels.KINDS) -> list[str]:
    """What is wrong with a filter, in one line that says how it was said; nothing where it is one. The kinds `recorded`
    are those of which it is to leave something."""
    from interpose import filters

    try:
        filters.parse(text, recorded)
    except ValueError as error:
        return [f"{said}: {error}"]
    return []


def in_force(environment: Mapping[str, str]) -> Settings:
    """The settings of a program started here with `environment`. Raises SettingError."""
    return resolve({}, environment, read_file("."))


def _choose(
    setting: Setting, options: Mapping[str, str | None], environment: Mapping[str, str], file: FileSettings
) -> tuple[str, str, str]:
    """The text of a setting, where it came from, and how it was said there."""
    option = options.get(setting.key)
    if option is not None:
        return option, "option", f"{setting.option} {option}"
    variable = environment.get(setting.variable)
    if variable:
        return variable, "environment", f"{setting.variable}={variable}"
    if setting.key in file:
        text, place = file[setting.key]
        return text, place, f"{place}: {setting.key} = {text}"
    return setting.default, "default", f"{setting.variable}={setting.default}"


def _absolute(directory: str, origin: str) -> str:
    """The directory from the root on; a file says it relative to where the file is."""
    path, _, line = origin.rpartition(":")
    try:
        base = os.path.dirname(path) if line.isdecimal() else os.getcwd()
    except FileNotFoundError:
        return directory
    return os.path.normpath(os.path.join(base, directory))


def read_file(directory: str) -> FileSettings:
    """What the nearest pyproject.toml says, from `directory` upward; empty where it says nothing of us.

    Reads flat lines `key = "text"`, a number, true or false: a whole TOML reader costs 15 ms to import.
    Raises SettingError, with the file and the line, for any other line in our section.
    """
    try:
        directory = os.path.abspath(directory)
    except FileNotFoundError:
        return {}
    while True:
        path = os.path.join(directory, FILE)
        data = read_plain(path)
        if data is not None:
            return dict(_parse_lines(path, data)) if b"interpose" in data else {}
        parent = os.path.dirname(directory)
        if parent == directory:
            return {}
        directory = parent


def read_plain(path: str) -> bytes | None:
    """The bytes of a file; None where there is none, or it may not be read. Never waits, as for a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, LARGEST_FILE_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _parse_lines(path: str, data: bytes) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the key, and the text with its place, for each line of our section."""
    ours = False
    seen = set()
    inside = 0  # a list of libraries, which is read as TOML where there is time for that
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        line = line.strip()
        if inside > 0 or (ours and _is_of_libraries(line)):
            inside += line.count("[") - line.count("]")
        elif line.startswith("["):
            ours = _is_our_section(line, f"{path}:{number}")
        elif ours and line and not line.startswith("#"):
            key, text = _parse_line(line, f"{path}:{number}")
            if key in seen:
                raise SettingError(f"{path}:{number}: {key} is said twice")
            seen.add(key)
            yield key, (text, f"{path}:{number}")


def _is_of_libraries(line: str) -> bool:
    return line.partition("=")[0].strip() == LIBRARIES_KEY


def names_libraries(data: bytes) -> bool:
    """Whether a pyproject.toml names libraries in our section."""
    ours = False
    for line in data.split(b"\n") if LIBRARIES_KEY.encode() in data else ():
        text = line.decode("utf-8", "replace").strip()
        if text.startswith("["):
            ours = text.partition("#")[0].replace(" ", "").strip("[]") == SECTION
        elif ours and _is_of_libraries(text):
            return True
    return False


def _is_our_section(line: str, place: str) -> bool:
    """Whether a line begins our section. Raises SettingError for a section within it."""
    name = line.partition("#")[0].replace(" ", "").replace("\t", "").strip("[]")
    if name.startswith(SECTION + "."):
        raise SettingError(f"{place}: [{name}] is not a section of interpose")
    return name == SECTION


def _parse_line(line: str, place: str) -> tuple[str, str]:
    """The key and the text of a line `key = value`. Raises SettingError."""
    key, equals, value = line.partition("=")
    key = key.strip().strip("\"'")
    text = _parse_value(value.strip()) if equals else None
    if text is None:
        raise SettingError(f'{place}: cannot read {line}; use key = "text", a number, true or false')
    if key not in BY_KEY:
        raise SettingError(f"{place}: {key} is not a setting; there are {', '.join(BY_KEY)}")
    return key, text


def _parse_value(value: str) -> str | None:
    """A quoted text, a number, or 1 and 0 for true and false; None for anything else."""
    quote = value[:1]
    if quote and quote in "\"'":
        text, closed, rest = value[1:].partition(quote)
        escaped = quote == '"' and "\\" in text
        plain = closed and not escaped and not rest.startswith(quote)
        return text if plain and _is_comment(rest) else None
    word, _, _ = value.partition("#")
    word = word.strip()
    if word in ("true", "false"):
        return "1" if word == "true" else "0"
    return word if word.isascii() and word.replace(".", "", 1).isdigit() else None


def _is_comment(rest: str) -> bool:
    rest = rest.strip()
    return not rest or rest.startswith("#")


def table() -> list[tuple[str, str, str, str, str]]:
    """A row for each setting: the variable, the option with its form, the key, the default, the meaning."""
    return [
        (each.variable, f"{', '.join(each.options)} {each.form}", each.key, each.default, each.meaning)
        for each in SETTINGS
    ]


PAGE = """\
# Settings

Printed by `python -m interpose.settings`; the one list is `SETTINGS` in `interpose/settings.py`.

`INTERPOSE` switches recording on; the others only narrow it. An option of `interpose run` goes before the
variable, the variable before the file, the file before the default. An empty variable counts as not set. The
bare variable gives the same as `interpose run`.

| variable | option of `interpose run` | in `[tool.interpose]` | default | meaning |
| --- | --- | --- | --- | --- |
{rows}

The file is the nearest `pyproject.toml`, from the working directory upward. Its section is read line by line:
`key = "text"`, a number, `true` or `false`, no more of TOML than that. One key may have a list, `libraries`: see
docs/libraries.md.

```toml
[tool.interpose]
dir = "experiments"
stack-above = "1ms"
```

A value that means nothing is an error that names it: from `interpose run` one line and exit code 2; under the
bare variable the program runs untouched and `interpose doctor` tells why nothing was recorded.
"""


def page() -> str:
    """docs/settings.md."""
    rows = []
    for variable, option, key, default, meaning in table():
        cells = (f"`{variable}`", f"`{option}`", f"`{key}`", f"`{default}`", meaning)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return PAGE.format(rows="\n".join(rows))


if __name__ == "__main__":
    print(page(), end="")
