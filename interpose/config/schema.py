"""What a user may set, an entry for each: by variable, by option of `interpose run`, or in pyproject.toml.

A new setting is an entry of `Settings`. Of it are made the variable, the option, the key of the file, the table of
docs/settings.md and that of README.md; what the recorder is given of it is a
line of cext/core/settings.h with its name.
This is imported inside the traced program if settings are set, so it imports next to nothing.
"""

from interpose import quantities
from interpose.config import values
from interpose.config.in_force import GIVEN_TO_DESCENDANTS, InForce
from interpose.config.levels import parse_arguments, parse_budget, parse_kinds, parse_levels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Value = TypeVar("Value")

CLOCKS = ("auto", "tsc", "rseq", "perf", "syscall")
STACKS = ("own", "none")
LAYERS = ("raw", "buffered")
NATIVE_STACKS = ("library", "functions")
ROWS = ("each", "cursor", "auto")
WAYS = ("place", "wrapt")
WHEN_FULL = ("drop", "wait")
ARCHIVES_OF_SOURCES = ("on", "src", "usedsrc", "all")
ARCHIVES = ("off", *ARCHIVES_OF_SOURCES, "ldobjects", "usedldobjects")
OTHER_VARIABLES = (*GIVEN_TO_DESCENDANTS, "INTERPOSE_BUILD_WERROR")  # the last is the build's
LIBRARIES = ("G", "P", "S")  # how many are searched: from the group's on, from the account's on, ours alone


class Setting:
    """One setting: its names, its default as a user would write it, and its meaning. `excludes` is the key of another
    setting that cannot be combined with it, and why."""

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


class Settings(InForce):
    """The settings in force, each by its name."""

    record = setting(
        values.parse_record,
        variable="INTERPOSE",
        form="WHAT",
        default="0",
        meaning="what to record: calls (also 1, yes, true, on), native (calls, and the calls that C"
        " code makes), lines, coverage, profile, heap, or several of them with commas; 0, no, false, off or empty"
        " records nothing. `interpose run` uses 1 by default",
    )
    dir = setting(
        values.parse_directory,
        form="DIRECTORY",
        default=".",
        letter="d",
        meaning="the directory for experiments; if it is not writable, they go to "
        "~/.local/state/interpose/experiments, but an option of `interpose run` that names it is refused; in a "
        "settings file, relative to that file",
    )
    name = setting(
        values.parse_name,
        form="NAME",
        default="test",
        meaning="the name of the experiment: test makes test.1.er, test.2.er and so on; NAME.er is used unchanged",
    )
    clock = setting(
        values.one_of(CLOCKS),
        form="|".join(CLOCKS),
        default="auto",
        meaning="how to read a thread's CPU time; auto uses the cheapest clock that passes its test",
    )
    stack = setting(
        values.one_of(STACKS),
        form="|".join(STACKS),
        default="own",
        meaning="what to keep of a call's stack: own keeps the innermost frames up to the first one of your own code",
    )
    stack_above_ns = setting(
        values.parse_duration_ns,
        key="stack-above",
        form="DURATION",
        default="10ms",
        meaning="calls that take at least this long (10ms, 500us, 2s, or off) keep their whole stack",
    )
    native_stack = setting(
        values.one_of(NATIVE_STACKS),
        form="|".join(NATIVE_STACKS),
        default="library",
        meaning="what to keep of the C code that makes a native call: the library, or the functions that led to it",
    )
    wait_above_ns = setting(
        values.parse_waits,
        key="sync",
        form="auto|all|DURATION",
        default="auto",
        meaning="record waits for locks, the interpreter lock and the like from this duration on, and count shorter"
        " ones; auto measures how long an uncontended lock takes; all records uncontended locks, too",
    )
    sample_every_ns = setting(
        values.parse_interval,
        key="sample",
        form="on|off|SECONDS",
        default="on",
        letter="S",
        meaning="how often to note what the process has used (CPU, memory, page faults, context switches), when the"
        " next call ends; on is once a second, off is at the start and the end only",
    )
    pool_bytes = setting(
        values.parse_size,
        key="pool",
        form="SIZE",
        default="2GiB",
        meaning="how much disk space the events of an experiment may use at a time (512MiB, 2GiB, or off: no limit)",
    )
    when_full = setting(
        values.one_of(WHEN_FULL),
        key="when-full",
        form="|".join(WHEN_FULL),
        default="drop",
        meaning="when the pool is full: drop events and count them, or let the program wait until the monitor has"
        " made room",
    )
    reserve_bytes = setting(
        values.parse_reserve,
        key="reserve",
        form="SIZE|auto|off",
        default="auto",
        meaning="how much disk space to leave free: below it recording stops, and the report says so; auto is the"
        " larger of 5 % of the file system and 256MiB. On a smaller file system than that, only the first calls of a"
        " process are recorded",
    )
    limit_bytes = setting(
        values.parse_size,
        key="limit",
        form="SIZE",
        default="off",
        letter="L",
        meaning="how many events to record, by their size before compression (at least 1MiB, or off: all); later ones"
        " are dropped and counted",
    )
    ring_bytes = setting(
        values.parse_ring,
        key="ring",
        form="SIZE",
        default="off",
        meaning="keep only the newest events of each process, up to this size (64MiB, 1GiB, or off: keep all);"
        " `interpose save` copies what is there",
    )
    consolidate = setting(
        values.parse_switch,
        form="0|1",
        default="0",
        meaning="1: combine like calls into one record while recording, and keep no events, so a long run stays small",
        excludes=("ring", "a ring keeps the newest events (INTERPOSE_RING); leave one of them out"),
    )
    slowest = setting(
        values.parse_count,
        form="N",
        default="100",
        meaning="how many of the slowest calls of a process to keep whole when calls are consolidated",
    )
    trigger = setting(
        values.parse_trigger,
        form="WHEN",
        default="off",
        meaning="when a trigger fires: call > 2s, error, error = sqlite3.OperationalError, exit != 0, or several"
        " with commas. The report counts triggers, and `interpose run` saves a copy of the experiment at that time",
    )
    saves = setting(
        values.parse_count,
        form="N",
        default="3",
        meaning="how many copies `interpose run` saves at most because a trigger fired",
    )
    paused = setting(
        values.parse_switch,
        form="0|1",
        default="0",
        meaning="1: start paused; recording starts when somebody resumes it, as `interpose run --at` does",
    )
    control = setting(
        values.parse_file,
        form="FILE",
        default="off",
        meaning="a control file with keywords of the Natural Profiler (FUNCTION=INIT, FILTER=EVENT, ..."
        " END-PROFILER; docs/control.md); it overrides the other settings",
    )
    filter = setting(
        values.parse_text,
        form="off|WORD=VALUE;...",
        default="off",
        meaning="record only calls that match (`kind=db; module=shop.*,-shop.cache; skip=100; keep=500`);"
        " docs/control.md lists the words. An invalid filter is a warning of the report, and everything is recorded",
    )
    interval_ns = setting(
        values.parse_sampling,
        key="interval",
        form="off|DURATION",
        default="off",
        meaning="sample calls: in each thread, record only the call that is running each time this much of its CPU"
        " time has passed (4800us). Reports then show estimated CPU times and no wall times; `interpose control"
        " suggest` proposes an interval",
    )
    one_in = setting(
        values.parse_one_in,
        key="transactions",
        form="all|1/N",
        default="all",
        meaning="sample transactions: one in N (1/10) is recorded whole, the others only with their times;"
        " everything outside transactions is recorded. Reports estimate counts and times, with a margin of error",
        excludes=("interval", "calls are sampled already (INTERPOSE_INTERVAL)"),
    )
    seed = setting(
        values.parse_seed,
        form="random|N",
        default="random",
        meaning="which transactions are sampled: the same number chooses the same ones if they come in the same"
        " order; the experiment keeps a number that was drawn",
    )
    kinds: dict[str, str] | None = setting(
        parse_kinds,
        form="all|KIND[=LEVEL],...",
        default="all",
        meaning="which kinds of calls to record (db, screen, file, net, process, sync, gil, sleep, logic, system,"
        " import), and how: time, count (count without timing) or off. all is every kind but import; others may follow"
        " (all,import). Calls that start processes are always recorded, because child processes are followed by them",
    )
    levels: dict[str, str] = setting(
        parse_levels,
        form="NAME=LEVEL,...",
        default="time",
        meaning="the same for single intrinsics, by their name in reports or its beginning (os.stat=count,"
        " sqlite3=off), or for a library; overrides the level of the kind",
    )
    budget_ppm: int = setting(
        parse_budget,
        key="budget",
        form="off|SHARE",
        default="off",
        meaning="how much of the program's CPU time recording may use (2%): above it, the most expensive calls are"
        " counted instead of timed, then not even counted, for the rest of the run",
    )
    files = setting(
        values.one_of(LAYERS),
        form="|".join(LAYERS),
        default="raw",
        meaning="where to record files: raw is what reaches the operating system; buffered adds the buffers above it"
        " and, where native calls are recorded, the streams of C (`fopen`, `fread` …)",
    )
    propagate = setting(
        values.parse_switch,
        form="0|1",
        default="0",
        meaning="1: outgoing HTTP requests get the headers `traceparent` and `tracestate`, so that whoever serves them"
        " continues the trace (docs/traces.md); this changes what the program sends",
    )
    rows = setting(
        values.one_of(ROWS),
        form="|".join(ROWS),
        default="auto",
        meaning="how to record fetches of rows: each as a call of its own; cursor as one call for a cursor and a"
        " line, with the number of rows; auto as cursor above 1,000 fetches a second",
    )
    by = setting(
        values.one_of(WAYS),
        form="|".join(WAYS),
        default="place",
        meaning="how to interpose calls: place exchanges them in place (all calls); wrapt wraps them (only those"
        " that a wrapper can reach)",
    )
    lib = setting(
        values.one_of(LIBRARIES),
        form="|".join(LIBRARIES),
        default="G",
        meaning="which libraries to search: G is the group's, your account's, those of packages, and the system"
        " library; P leaves out the group's; S is the system library alone",
    )
    xl = setting(
        values.parse_names,
        form="LIBRARY,...",
        default="off",
        meaning="search these libraries, in this order, and the system library last unless you name it (`system`):"
        " names as in `interpose map`, `group`, `account`, or paths of files; `lib` is then ignored",
    )
    collectors = setting(
        values.parse_collectors,
        form="auto|off|NAME,...",
        default="auto",
        meaning="which data collectors name the current activity (docs/collectors.md), in this order: auto uses"
        " those found for the program (`interpose_<prefix>.py` in an `interpose.d`, entry points); or names, or"
        " paths of files",
    )
    unsat = setting(
        str,
        form="off|skip|FUNCTION",
        default="off",
        meaning="what to do about a name that a library declares but its module does not have: off is an error of"
        " `interpose run` and `map`; skip leaves it out; FUNCTION, of a library, gets library and target and may"
        " return another target",
    )
    group = setting(
        values.parse_directory,
        form="auto|DIRECTORY",
        default="auto",
        meaning="the directory whose `interpose.d`, or `libraries` in `pyproject.toml`, belong to the group; auto"
        " searches from the main script's directory upward. Child processes use that of the main process",
    )
    archive = setting(
        values.one_of(ARCHIVES),
        form="|".join(ARCHIVES),
        default="usedsrc",
        letter="a",
        meaning="what to copy into the experiment after the program has ended: usedsrc (also on, src) the sources"
        " that made calls; usedldobjects (also ldobjects) the mapped programs and libraries; all both; off nothing",
    )
    follow = setting(
        values.parse_follow,
        form="off|on|=REGEX",
        default="on",
        letter="F",
        meaning="which child processes to record: all, none, or those whose command line or lineage matches REGEX"
        " (POSIX, extended). If `interpose run` starts a program that is not recorded itself, the first one that"
        " matches is the main process",
    )
    lines = setting(
        values.parse_choices,
        form="own|MODULE[:FUNCTION],...",
        default="own",
        meaning="the functions whose lines are counted and timed when lines are recorded: modules and qualified"
        " names, with `*` and `?` (shop, shop.orders:Client.*, *:main); own is your own code. A module includes"
        " those below it. Other functions run at full speed. `interpose run --lines` also records lines",
    )
    lines_depth = setting(
        values.parse_depth,
        key="lines-depth",
        form="N",
        default="1024",
        meaning="record lines of calls nested up to this depth; the result says if there were deeper ones",
    )
    lines_system = setting(
        values.parse_switch,
        key="lines-system",
        form="0|1",
        default="0",
        meaning="1: record user and system time of each line separately; costs a system call for each line. A line"
        " that takes less CPU time than its recording has only user time",
    )
    statements = setting(
        values.parse_switch,
        form="0|1",
        default="0",
        meaning="1: each executed line is an event of 88 bytes among the calls, an instant without a duration; needs"
        " `INTERPOSE=calls,lines`, and the report warns if lines are missing",
    )
    heap_bytes = setting(
        values.parse_heap,
        key="heap",
        form="SIZE|all",
        default="64KiB",
        meaning="when the heap is recorded (`INTERPOSE=calls,heap`): record one allocation for each SIZE that the"
        " program allocates, on average; all records every allocation, and costs more",
    )
    profile_hz = setting(
        quantities.rate_hz,
        key="profile",
        form="auto|off|HZ",
        default="auto",
        meaning="how many times a second to sample the Python code of each thread, from outside the program; auto is"
        " 100 under `interpose run` and when the profile is recorded (`INTERPOSE=calls,profile`)",
    )
    counters: tuple[str, ...] = setting(
        values.parse_counters,
        form="off|NAME,...",
        default="off",
        meaning="what to count of each thread with the samples of the profile, which it switches on: faults,"
        " minor_faults, major_faults, switches, voluntary_switches, involuntary_switches, migrations; where the"
        " processor can, cycles, instructions, cache_references, cache_misses, branches, branch_misses",
    )
    coverage = setting(
        values.parse_choices,
        form="own|MODULE[:FUNCTION],...",
        default="own",
        meaning="the functions for which coverage records executed statements; written as for `INTERPOSE_LINES`."
        " `interpose run --coverage` also records coverage",
    )
    branches = setting(
        values.parse_switch,
        form="0|1",
        default="0",
        meaning="1: coverage also records which way each condition went; code that always goes the same way stays"
        " slower",
    )
    contexts = setting(
        values.parse_switch,
        form="0|1",
        default="0",
        meaning="1: record coverage separately for each transaction, by name",
    )
    probes = setting(
        values.parse_switch,
        form="0|1",
        default="1",
        meaning="0: on Python 3.11, record coverage with a trace function instead of probes in the bytecode, which"
        " makes the program several times slower; later versions need neither",
    )
    dialogue_bytes = setting(
        values.parse_dialogue,
        key="dialogue",
        form="0|1|SIZE",
        default="0",
        meaning="1: keep what terminals showed and what was typed, with times, up to 64MiB a process or up to SIZE"
        " (`interpose dialogue`); what is typed while the terminal does not echo is never kept",
    )
    arguments: dict[str, int] = setting(
        parse_arguments,
        form="usual|KIND=HOW,...",
        default="usual",
        meaning="how much to keep of what calls of a kind were about (statement, path, address, command;"
        " db=whole,file=shape): nothing; shape (`SELECT`, `/*/*.csv`, `*:443`); normalised (literals become `?`,"
        " numbers `*`, of a command only the program is kept); whole (with values and arguments); usual is normalised"
        " for db and process, whole for others. process=whole also keeps the program's own command line",
    )
    redact = setting(
        values.parse_redact,
        form="off|REGEX",
        default="off",
        meaning="what matches REGEX (POSIX, extended; several with `|`) becomes `?` before it is written: details of"
        " calls, names, the command line, the dialogue. Sources are then archived only by `interpose archive`",
    )
    group_reads = setting(
        values.parse_switch,
        key="group-reads",
        form="0|1",
        default="0",
        meaning="1: the group of the directory for experiments may read them, if the user belongs to that group",
    )


SETTINGS = tuple([each for each in vars(Settings).values() if type(each) is Setting])
BY_KEY = {each.key: each for each in SETTINGS}
