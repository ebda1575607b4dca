"""What a user may set, an entry for each: by variable, by option of `interpose run`, or in pyproject.toml.

A new setting is an entry of `Settings`. Of it are made the variable, the option, the key of the file, the table of
docs/settings.md and that of README.md; what the recorder is given of it is a
line of cext/core/settings.h with its name.
This is imported inside the traced program when it starts, so it imports next to nothing.
"""

from interpose import quantities
from interpose.config import values
from interpose.config.levels import parse_arguments, parse_budget, parse_kinds, parse_levels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    Value = TypeVar("Value")

CLOCKS = ("auto", "rseq", "perf", "syscall")
STACKS = ("own", "none")
LAYERS = ("raw", "buffered")
ROWS = ("each", "cursor", "auto")
WAYS = ("place", "wrapt")
WHEN_FULL = ("drop", "wait")
ARCHIVES_OF_SOURCES = ("on", "src", "usedsrc", "all")
ARCHIVES_OF_OBJECTS = ("ldobjects", "usedldobjects", "all")
ARCHIVES = ("off", *ARCHIVES_OF_SOURCES, "ldobjects", "usedldobjects")
# What descendants are told (cext/core/child_variables.h), and the build.
OTHER_VARIABLES = ("INTERPOSE_LINEAGE", "INTERPOSE_ADDED", "INTERPOSE_WITHIN", "INTERPOSE_BUILD_WERROR")
LIBRARIES = ("G", "P", "S")  # how many are searched: from the group's on, from the account's on, ours alone


class Setting:
    """One thing that can be set: its names, its default as one would write it, and what it means. `excludes` is the key
    of another that cannot be set with it, and why."""

    __slots__ = ("default", "excludes", "form", "key", "letter", "meaning", "name", "parse", "variable")

    def __init__(
        self,
        parse: "Callable[[str], object]",
        *,
        form: str,
        default: str,
        meaning: str,
        key: str = "",
        variable: str = "",
        letter: str = "",
        excludes: tuple[str, str] | None = None,
    ) -> None:
        self.parse = parse
        self.form = form
        self.default = default
        self.meaning = meaning
        self.key = key
        self.variable = variable
        self.letter = letter
        self.excludes = excludes

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.key = self.key or name.replace("_", "-")
        self.variable = self.variable or f"INTERPOSE_{self.key.upper().replace('-', '_')}"

    @property
    def option(self) -> str:
        """The option of `interpose run`."""
        return f"--{self.key}"

    @property
    def options(self) -> tuple[str, ...]:
        """Every way to write the option: with one letter, where it has one, and with its name."""
        return (f"-{self.letter}", self.option) if self.letter else (self.option,)


if TYPE_CHECKING:

    def setting(
        parse: Callable[[str], Value],
        *,
        form: str,
        default: str,
        meaning: str,
        key: str = "",
        variable: str = "",
        letter: str = "",
        excludes: tuple[str, str] | None = None,
    ) -> Value:
        """An entry; in the settings that are in force its value is there instead."""

else:
    setting = Setting


class Settings:
    """The settings in force, each by its name; by variable, their texts and where these came from."""

    record = setting(
        values.parse_record,
        variable="INTERPOSE",
        form="WHAT",
        default="0",
        meaning="what to record: 1, yes, true or on (that is calls), or a list of what is known (calls, lines,"
        " coverage, profile); 0, no, false, off or empty: nothing. `interpose run` takes 1 where nothing else is said",
    )
    dir = setting(
        values.parse_directory,
        form="DIRECTORY",
        default=".",
        letter="d",
        meaning="where experiments are made; in a file, from the file's own directory on",
    )
    name = setting(
        values.parse_name,
        form="NAME",
        default="test",
        meaning="name of the experiment: test makes test.1.er, test.2.er and so on; NAME.er is taken as it is",
    )
    clock = setting(
        values.one_of(CLOCKS),
        form="|".join(CLOCKS),
        default="auto",
        meaning="how a thread's CPU time is read; auto takes the cheapest that passes its test",
    )
    stack = setting(
        values.one_of(STACKS),
        form="|".join(STACKS),
        default="own",
        meaning="where a call came from: own is the innermost frames up to the first of one's own code",
    )
    stack_above_ns = setting(
        values.parse_duration_ns,
        key="stack-above",
        form="DURATION",
        default="10ms",
        meaning="a call at least this long (10ms, 500us, 2s, or off) keeps the whole stack",
    )
    wait_above_ns = setting(
        values.parse_waits,
        key="sync",
        form="auto|all|DURATION",
        default="auto",
        meaning="a wait for a lock, the interpreter's too, or its like is recorded from this time on, shorter ones are"
        " counted; auto measures what free locks take, all records free locks too",
    )
    sample_every_ns = setting(
        values.parse_interval,
        key="sample",
        form="on|off|SECONDS",
        default="on",
        letter="S",
        meaning="how often it is noted what the process has used (CPU, memory, faults, switches), with the next call"
        " that ends; on is each second, off only at the beginning and the end; after each 16,384 samples half as often",
    )
    pool_bytes = setting(
        values.parse_size,
        key="pool",
        form="SIZE",
        default="2GiB",
        meaning="how much of the disk the events of an experiment may take at a time (512MiB, 2GiB, off: without"
        " limit)",
    )
    when_full = setting(
        values.one_of(WHEN_FULL),
        key="when-full",
        form="|".join(WHEN_FULL),
        default="drop",
        meaning="when the pool is full: drop events, counted, or let the program wait for the monitor that makes room",
    )
    reserve_bytes = setting(
        values.parse_reserve,
        key="reserve",
        form="SIZE|auto|off",
        default="auto",
        meaning="how much of the disk is left free: below it recording stops, and says so; auto is the larger of 5 % of"
        " the file system and 256MiB, so on one that is smaller than that nothing is recorded",
    )
    limit_bytes = setting(
        values.parse_size,
        key="limit",
        form="SIZE",
        default="off",
        letter="L",
        meaning="how many events are recorded at most, by their size before compression; afterwards they are dropped,"
        " counted",
    )
    ring_bytes = setting(
        values.parse_ring,
        key="ring",
        form="SIZE",
        default="off",
        meaning="keep only the newest events of each process, so many (64MiB, 1GiB, off: all are kept); `interpose"
        " save` keeps what is there",
    )
    consolidate = setting(
        values.parse_switch,
        form="0|1",
        default="0",
        meaning="1: like calls are put together as they are recorded, and no events are kept: the experiment grows"
        " with what is different, not with what is called",
    )
    slowest = setting(
        values.parse_count,
        form="N",
        default="100",
        meaning="how many of the slowest calls of a process are kept whole where calls are put together",
    )
    trigger = setting(
        values.parse_trigger,
        form="WHEN",
        default="off",
        meaning="when to take note: call > 2s, error, error = sqlite3.OperationalError, exit != 0, or several with"
        " commas. It is counted, and `interpose run` keeps a copy of the experiment as it is then",
    )
    saves = setting(
        values.parse_count,
        form="N",
        default="3",
        meaning="how many copies `interpose run` keeps because a trigger fired, at most",
    )
    paused = setting(
        values.parse_switch,
        form="0|1",
        default="0",
        meaning="1: nothing is recorded until somebody outside says so, as `interpose run --at` does",
    )
    control = setting(
        values.parse_file,
        form="FILE",
        default="off",
        meaning="a control file with keywords as the Natural Profiler has them (FUNCTION=INIT, FILTER=EVENT, ..."
        " END-PROFILER; docs/control.md): what it says goes before the other settings",
    )
    filter = setting(
        values.parse_text,
        form="off|WORD=VALUE;...",
        default="off",
        meaning="only calls for which it holds are recorded (`kind=db; module=shop.*,-shop.cache; skip=100;"
        " keep=500`): docs/control.md has the words. What is no filter is told in the report, and all is"
        " recorded",
    )
    interval_ns = setting(
        values.parse_sampling,
        key="interval",
        form="off|DURATION",
        default="off",
        meaning="sample calls: of each thread only those are recorded that run as so much of its CPU time (4800us)"
        " has passed again. Reports then have CPU times, which are estimates, and no others; `interpose"
        " control suggest` tells an interval",
    )
    one_in = setting(
        values.parse_one_in,
        key="transactions",
        form="all|1/N",
        default="all",
        meaning="sample transactions: one in so many (1/10) is recorded whole, of the others no more than when they"
        " were; what is outside of any is recorded always. Reports estimate counts and times, with the margin"
        " of error",
        excludes=("interval", "calls are sampled already (INTERPOSE_INTERVAL)"),
    )
    seed = setting(
        values.parse_seed,
        form="random|N",
        default="random",
        meaning="which transactions are chosen: with the same number, and transactions in the same order, the same"
        " ones; the number that was drawn stands in the experiment",
    )
    kinds: dict[str, str] | None = setting(
        parse_kinds,
        form="all|KIND[=LEVEL],...",
        default="all",
        meaning="which kinds of calls are recorded (db, screen, file, net, process, sync, gil, sleep,"
        " logic, import), and how: time, count (counted, not timed) or off. all is every kind but import, and others"
        " may follow it (all,import). What starts processes always is recorded, for descendants are followed by it",
    )
    levels: dict[str, str] = setting(
        parse_levels,
        form="NAME=LEVEL,...",
        default="time",
        meaning="the same for single intrinsics, by the name that reports show or its beginning (os.stat=count,"
        " sqlite3=off), or for a library; it goes before the kind's",
    )
    budget_ppm: int = setting(
        parse_budget,
        key="budget",
        form="off|SHARE",
        default="off",
        meaning="how much of the program's CPU time recording may take (2%): when it is more, what costs most is"
        " counted instead of timed, then not even that, for the rest of the run",
    )
    files = setting(
        values.one_of(LAYERS),
        form="|".join(LAYERS),
        default="raw",
        meaning="where files are interposed: raw is what reaches the outside, buffered the buffers above it as well",
    )
    rows = setting(
        values.one_of(ROWS),
        form="|".join(ROWS),
        default="auto",
        meaning="how fetches of rows are recorded: each as a call of its own, those of a cursor from one line put"
        " together in one with the count of rows, or auto: put together where a cursor gives more than 1,000 a"
        " second",
    )
    by = setting(
        values.one_of(WAYS),
        form="|".join(WAYS),
        default="place",
        meaning="how calls are interposed: in place (all of them), or with wrapt those that wrappers can reach",
    )
    lib = setting(
        values.one_of(LIBRARIES),
        form="|".join(LIBRARIES),
        default="G",
        meaning="which libraries are searched: G the group's, the account's, those of packages, ours; P all but the"
        " group's; S ours alone",
    )
    xl = setting(
        values.parse_names,
        form="LIBRARY,...",
        default="off",
        meaning="these libraries in this order, and ours last unless it is named (`system`): names as `interpose map`"
        " shows them, `group`, `account`, or paths of files; then `lib` does not matter",
    )
    collectors = setting(
        values.parse_collectors,
        form="auto|off|NAME,...",
        default="auto",
        meaning="which data collectors name what is going on (docs/collectors.md), in this order: auto those that are"
        " found for the program (`interpose_<prefix>.py` in an `interpose.d`, entry points), or names or paths"
        " of files",
    )
    unsat = setting(
        str,
        form="off|skip|FUNCTION",
        default="off",
        meaning="what becomes of a name that a library declares and its module has not: off is an error of `interpose"
        " run` and `map`; skip leaves it out; a function of a library is called with library and target, and"
        " may give another target",
    )
    group = setting(
        values.parse_directory,
        form="auto|DIRECTORY",
        default="auto",
        meaning="the directory whose `interpose.d`, or `libraries` in `pyproject.toml`, are the group's; auto finds"
        " it from the main script's directory upward. Descendants have their founder's",
    )
    archive = setting(
        values.one_of(ARCHIVES),
        form="|".join(ARCHIVES),
        default="usedsrc",
        letter="a",
        meaning="what is copied into the experiment after the program's end: usedsrc (also on, src) the sources that"
        " calls were made from, usedldobjects (also ldobjects) the programs and libraries that were mapped,"
        " all both, off nothing",
    )
    follow = setting(
        values.parse_follow,
        form="off|on|=REGEX",
        default="on",
        letter="F",
        meaning="which descendants are recorded: all, none, or those whose command line or"
        " lineage the expression (extended, of POSIX) matches; of what `interpose run` starts that is no"
        " Python itself, the first Python program that matches is the founder",
    )
    lines = setting(
        values.parse_choices,
        form="own|MODULE[:FUNCTION],...",
        default="own",
        meaning="of which functions each line is counted and timed, where lines are recorded: those of modules and by"
        " qualified names, both with `*` and `?` (shop, shop.orders:Client.*, *:main); own is the program's"
        " own code. A module stands for those below it, too. All other functions run as without",
    )
    lines_depth = setting(
        values.parse_depth,
        key="lines-depth",
        form="N",
        default="1024",
        meaning="of calls inside each other so many are recorded by line, deeper ones are not, which the result says",
    )
    lines_system = setting(
        values.parse_switch,
        key="lines-system",
        form="0|1",
        default="0",
        meaning="1: user and system time of each line apart, for the price of a system call at each line",
    )
    statements = setting(
        values.parse_switch,
        form="0|1",
        default="0",
        meaning="1: each line that is come to is an event among the calls, an instant without a duration, where calls"
        " are recorded and only while lines are (`INTERPOSE=calls,lines`; with calls alone the report tells"
        " that), of 88 bytes",
    )
    profile_hz = setting(
        quantities.rate_hz,
        key="profile",
        form="auto|off|HZ",
        default="auto",
        meaning="how many times a second the Python code of each thread is sampled, from outside of the program; auto"
        " is 100, under `interpose run` and where the profile is recorded (`INTERPOSE=calls,profile`)",
    )
    coverage = setting(
        values.parse_choices,
        form="own|MODULE[:FUNCTION],...",
        default="own",
        meaning="of which functions is recorded which statements were executed, where coverage is recorded; as with"
        " `INTERPOSE_LINES`",
    )
    branches = setting(
        values.parse_switch,
        form="0|1",
        default="0",
        meaning="1: coverage records which way each condition went as well; code that goes one way only stays slower",
    )
    contexts = setting(
        values.parse_switch,
        form="0|1",
        default="0",
        meaning="1: coverage is recorded for each transaction by itself, by name",
    )
    probes = setting(
        values.parse_switch,
        form="0|1",
        default="1",
        meaning="0: on Python 3.11 coverage is recorded by a trace function, which makes the program several times"
        " slower, and not by probes in the bytecode; later versions need neither",
    )
    dialogue_bytes = setting(
        values.parse_dialogue,
        key="dialogue",
        form="0|1|SIZE",
        default="0",
        meaning="1: what terminals showed and what was typed there is kept, with times, up to 64MiB a process or the"
        " size that is said (`interpose dialogue`); what is typed while the terminal's echo is off never is",
    )
    arguments: dict[str, int] = setting(
        parse_arguments,
        form="usual|KIND=HOW,...",
        default="usual",
        meaning="how much is kept of what calls of a kind were about (statement, path, address, command;"
        " db=whole,file=shape): nothing; shape (`SELECT`, `/*/*.csv`, `*:443`); normalised (literals `?`,"
        " numbers `*`, of a command the program); whole, values and arguments with it; usual: of db and"
        " process as normalised, of others whole. process=whole keeps the program's own command line too",
    )
    redact = setting(
        values.parse_redact,
        form="off|REGEX",
        default="off",
        meaning="what matches the expression (extended, of POSIX; several with `|`) becomes `?` before anything is"
        " written: details of calls, names, the command line, the dialogue. Sources are then archived only by"
        " `interpose archive`",
    )
    group_reads = setting(
        values.parse_switch,
        key="group-reads",
        form="0|1",
        default="0",
        meaning="1: the group of the directory where experiments are made may read them, where the user is of that"
        " group",
    )

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


SETTINGS = tuple([each for each in vars(Settings).values() if type(each) is Setting])
BY_KEY = {each.key: each for each in SETTINGS}
