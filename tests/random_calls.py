"""Experiments made at random, with what is called from where known beforehand."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from interpose.experiments.model.sampled import NOT_READ
from tests.build import START_NS, Build

INTRINSICS = [("sqlite3.Cursor.execute", "db"), ("os.write", "file"), ("time.sleep", "sleep"), ("requests.get", "net")]
FUNCTIONS = [
    ("main", "/home/u/shop/orders.py", 1),
    ("save", "/home/u/shop/orders.py", 1),
    ("get", "/usr/lib/requests/api.py", 0),
    ("send", "/usr/lib/requests/adapters.py", 0),
    ("<module>", "/home/u/shop/orders.py", 1),
]
UNKNOWN, TRUNCATED = "<Unknown>", "<Truncated-stack>"


@dataclass
class Call:
    """A call: what was called, its times, and the path to it: (file, line, function), from the outermost on."""

    intrinsic: int
    frames: list[tuple[int, int]]  # function and line, from the innermost on
    wall_ns: int = 0
    cpu_ns: int = 0
    start_ns: int = 0
    moved: int = 0
    failed: bool = False
    thread: int = 1
    inner: list[Call] = field(default_factory=list)
    outer: Call | None = None
    is_whole: bool = False

    @property
    def self_wall_ns(self) -> int:
        return self.wall_ns - sum(each.wall_ns for each in self.inner)

    @property
    def self_cpu_ns(self) -> int:
        return self.cpu_ns - sum(each.cpu_ns for each in self.inner)

    @property
    def lines(self) -> list[tuple[str, int]]:
        """Function and line from the outermost on, the call itself last."""
        inside = [(FUNCTIONS[function][0], line) for function, line in reversed(self.frames)]
        if self.outer:
            around = self.outer.lines
        elif not self.frames:
            around = [(UNKNOWN, 0)]
        else:
            function, _ = self.frames[-1]
            around = [(TRUNCATED, 0)] if FUNCTIONS[function][2] and FUNCTIONS[function][0] != "<module>" else []
        return [*around, *inside, (INTRINSICS[self.intrinsic][0], 0)]

    @property
    def path(self) -> list[str]:
        return [function for function, _ in self.lines]

    def recorded(self) -> list[tuple[int, int]]:
        """The frames of its stack: its own, and where it is whole those of the calls around it."""
        return [*self.frames, *(self.outer.recorded() if self.outer and self.is_whole else [])]

    def begun(self):
        """Itself, then the calls inside: in the order of their beginnings."""
        yield self
        for each in self.inner:
            yield from each.begun()

    def walk(self):
        """The calls inside, then itself: in the order of their ends."""
        for each in self.inner:
            yield from each.walk()
        yield self


@st.composite
def calls(draw, depth=0, start_ns=100, outer=None, thread=1):
    """Some calls one after the other, each with others inside; and when the last one ended."""
    made, now_ns = [], start_ns
    for number in range(draw(st.integers(0, 3 if depth else 4))):
        now_ns += draw(st.integers(0, 5))
        lines = [10 * depth + place for place in range(draw(st.integers(1 if outer else 0, 3)))]
        frames = [(draw(st.integers(0, len(FUNCTIONS) - 1)), line + 1) for line in lines]
        call = Call(draw(st.integers(0, len(INTRINSICS) - 1)), frames, start_ns=now_ns, outer=outer, thread=thread)
        call.is_whole, call.failed = draw(st.booleans()), draw(st.booleans()) and number == 0
        call.moved = draw(st.sampled_from([0, 1, 1023, 1024, 100_000]))
        end_ns = now_ns
        if depth < 3:
            call.inner, end_ns = draw(calls(depth + 1, now_ns, call, thread))
        self_ns = draw(st.integers(0, 50))
        call.wall_ns = end_ns - now_ns + self_ns
        call.cpu_ns = sum(each.cpu_ns for each in call.inner) + draw(st.integers(0, self_ns))
        now_ns += call.wall_ns
        made.append(call)
    return made, now_ns


@st.composite
def processes(draw):
    """The calls of the threads of one process or two."""
    made = []
    for _ in range(draw(st.integers(1, 2))):
        threads = draw(st.integers(1, 2))
        made.append([draw(calls(thread=thread + 1)) for thread in range(threads)])
    return made


def write(directory, made, sampled=()):
    """An experiment of what `processes` gave; gives its directory and all calls. Of the processes whose numbers are
    `sampled`, the threads were sampled, too: at work, ready, waiting, with unreadable stacks, in no Python code."""
    found = []
    for number, threads in enumerate(made):
        place = directory / "_f1.er" if number else directory
        build = Build(place, pid=900 + number)
        of_intrinsic = [build.intrinsic(*each) for each in INTRINSICS]
        sites, stacks = {}, {}
        longest_ns = 0
        for thread, (roots, end_ns) in enumerate(threads, 1):
            events = []
            for root in roots:
                events += _events(build, root, of_intrinsic, sites, stacks, len(found) + 1)
                found += root.walk()
            if events:
                build.block(events)
            cpu_ns = sum(root.cpu_ns for root in roots) + 3
            build.thread(end_ns=START_NS + end_ns + 7, end_cpu_ns=cpu_ns, tid=900 + thread, recorded=len(events))
            if number in sampled:
                _sample(build, thread, end_ns + 7, cpu_ns)
            longest_ns = max(longest_ns, end_ns + 7)
        build.ended(longest_ns, longest_ns)
        build.write()
    return directory, found


def _sample(build, thread, end_ns, cpu_ns):
    """Samples of a thread at equal intervals."""
    main = build.sampled_stack(("/home/u/shop/orders.py", 1, "<module>"))
    save = build.sampled_stack(("/home/u/shop/orders.py", 1, "<module>"), ("/home/u/shop/orders.py", 9, "save"))
    seen = [(save, 1), (NOT_READ, 1), (main, 2), (0, 1), (save, 3), (save, 2), (main, 1)]
    for number, (stack, state) in enumerate(seen, 1):
        instant = {"cpu_ns": cpu_ns * number // len(seen), "stack": stack, "state": state}
        build.thread_sample(START_NS + end_ns * number // len(seen), thread=thread, tid=900 + thread, **instant)


def _events(build, root, of_intrinsic, sites, stacks, first):
    numbers = {id(call): first + place for place, call in enumerate(root.begun())}
    for call in root.walk():
        yield {
            "start_ns": START_NS + call.start_ns,
            "wall_ns": call.wall_ns,
            "cpu_ns": call.cpu_ns,
            "inner_wall_ns": call.wall_ns - call.self_wall_ns,
            "inner_cpu_ns": call.cpu_ns - call.self_cpu_ns,
            "bytes": call.moved,
            "thread": call.thread,
            "call": numbers[id(call)],
            "parent": numbers[id(call.outer)] if call.outer else 0,
            "intrinsic": of_intrinsic[call.intrinsic],
            "stack": _stack(build, call.recorded(), sites, stacks),
            "detail": build.string("/data/orders.txt"),
            "error": build.string("OSError") if call.failed else 0,
        }


def _stack(build, frames, sites, stacks):
    """The number of a stack, each site and stack made once."""
    outer = 0
    for function, line in reversed(frames):
        name, file, own = FUNCTIONS[function]
        if (function, line) not in sites:
            sites[function, line] = build.site(file, line, name, own)
        key = (sites[function, line], outer)
        if key not in stacks:
            stacks[key] = build.stack(*key)
        outer = stacks[key]
    return outer
