"""What programs allocate, by line: beside tracemalloc, and beside what the programs know themselves."""

import json
import math
import random
import re
import struct
import subprocess
import sys
from types import SimpleNamespace

import pytest
from tracing import environment

from interpose.analysis.heap import MORE_SITES, Allocated, Heap, heap_of, heaps, when_last
from interpose.cli.main import main
from interpose.reports.tables.heap import heap_rows, summary

KIB = 1024
ALL = {"INTERPOSE": "heap", "INTERPOSE_HEAP": "all"}
SAMPLED = {"INTERPOSE": "heap"}
# What is still in use at the end stands in `kept`; the functions' names and sizes are what the tests ask for.
PROGRAM = """
import sys
kept = []

def small():
    kept.append([str(number) * 5 for number in range(60_000)])

def large():
    kept.extend(bytearray(3_000_000 + number) for number in range(20))

def passing():
    for length in [100, 120, 140, 160] * 50_000:  # small numbers are there already
        text = "x" * length

def peaking():
    there = [bytes(70_000) for _ in range(300)]
    return len(there)

def given_back():
    kept.append(bytearray(8_000_000))
    del kept[-1]

small()
large()
passing()
peaking()
given_back()
"""


def by_function(heap):
    """What each function of the program's own code allocated, with its comprehensions."""
    found = {}
    for site, figures in heap.rows.items():
        name = site.function.partition(".<locals>.")[0]
        found.setdefault(name, Allocated()).add(figures)
    return found


def heap_of_founder(done):
    heap = heap_of(done.experiment.founder)
    assert heap
    return heap


def in_use_by_tracemalloc(directory):
    """Bytes that are in use at the end, by line of the program, and how many objects."""
    (directory / "traced.py").write_text(PROGRAM)
    text = """
import json, tracemalloc
code = compile(open("traced.py").read(), "traced.py", "exec")
names = {"__name__": "__main__"}
tracemalloc.start()
exec(code, names)
found = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "traced.py")]).statistics("lineno")
print(json.dumps({each.traceback[0].lineno: [each.size, each.count] for each in found}))
"""
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=directory, env=environment(), capture_output=True, text=True, check=True
    )
    return {int(line): figures for line, figures in json.loads(done.stdout).items()}


@pytest.mark.long
def test_lines_have_what_tracemalloc_says_is_in_use(traced, tmp_path):
    expected = in_use_by_tracemalloc(tmp_path)

    heap = heap_of_founder(traced(PROGRAM, **ALL))

    found = {site.line: figures for site, figures in heap.rows.items() if site.own}
    large = {line: figures for line, figures in expected.items() if figures[0] > 100 * KIB}
    assert len(large) == 2
    for line, (size_bytes, count) in large.items():
        figures = found[line]
        assert figures.end_bytes == pytest.approx(size_bytes, rel=0.002)
        assert figures.allocations - figures.frees == pytest.approx(count, abs=100)
    assert heap.lost == 0
    assert sum(figures.end_bytes for line, figures in found.items() if line not in large) < 200 * KIB


def test_all_allocations_are_counted_where_all_are_recorded(traced):
    found = by_function(heap_of_founder(traced(PROGRAM, **ALL)))

    assert found["passing"].allocations == pytest.approx(200_000, abs=50)
    assert found["passing"].frees == pytest.approx(200_000, abs=50)
    list_bytes = sys.getsizeof([0] * 200_000)
    assert found["passing"].bytes == pytest.approx(list_bytes + 200_000 * sys.getsizeof("x" * 130), rel=0.001)
    assert found["large"].allocations == pytest.approx(3 * 20, abs=15)  # the object, its bytes, the number
    assert found["given_back"].bytes == pytest.approx(8_000_000, rel=0.01)
    assert found["given_back"].end_bytes < 10 * KIB


def test_the_peak_has_what_was_in_use_then_and_nothing_else(traced):
    heap = heap_of_founder(traced(PROGRAM, **ALL))

    found = by_function(heap)
    assert found["peaking"].peak_bytes == pytest.approx(300 * 70_033, rel=0.01)
    assert found["peaking"].end_bytes < 10 * KIB
    assert found["given_back"].peak_bytes == 0
    assert found["passing"].peak_bytes < KIB
    assert found["large"].peak_bytes == found["large"].end_bytes
    total = heap.total
    assert sum(figures.peak_bytes for figures in heap.rows.values()) == total.peak_bytes
    assert total.peak_bytes > total.end_bytes > 60_000_000


def test_estimates_are_as_near_as_they_say(traced):
    truth = by_function(heap_of_founder(traced(PROGRAM, **ALL)))

    heap = heap_of_founder(traced(PROGRAM, **SAMPLED))

    found = by_function(heap)
    assert heap.every_bytes == 64 * KIB and heap.samples > 100
    for name in ("small", "large", "peaking"):
        assert abs(found[name].peak_bytes - truth[name].peak_bytes) <= 3 * found[name].peak_margin_bytes + 5000
    assert found["large"].peak_margin_bytes < 0.001 * found["large"].peak_bytes  # each is nearly always sampled
    assert found["passing"].allocations == pytest.approx(200_000, rel=0.25)  # 360 samples
    assert found["small"].end_margin_bytes > 0


def test_margins_hold_nineteen_times_of_twenty(traced):
    """Each thread draws for itself: it is a try of its own. Of 60 tries 3 are outside on average, and more than 12 once
    in 100,000 times."""
    done = traced(
        """
        import threading
        kept = []
        def try_once(number):
            exec(f"def try_{number}():\\n return [bytes(1000) for _ in range(4000)]", names := {})
            kept.append(names[f"try_{number}"]())
        for number in range(60):
            thread = threading.Thread(target=try_once, args=(number,))
            thread.start()
            thread.join()
        """,
        **SAMPLED,
    )
    found = {name: each for name, each in by_function(heap_of_founder(done)).items() if re.fullmatch(r"try_\d+", name)}
    truth_bytes = 4000 * sys.getsizeof(bytes(1000)) + sys.getsizeof([None] * 4000)
    off_bytes = [each.end_bytes - truth_bytes for each in found.values()]
    outside = [each for each, off in zip(found.values(), off_bytes, strict=True) if abs(off) > each.end_margin_bytes]
    assert len(found) == 60
    assert len(outside) <= 12
    assert abs(sum(off_bytes)) < 3 * sum(each.end_variance for each in found.values()) ** 0.5


@pytest.mark.parametrize("length", [65_000, 74_000, 130_000])
def test_allocations_about_as_large_as_the_sampling_are_counted_without_bias(length, traced):
    """A sample stands for 1.59, 1.48 and 1.16 of them. They are off by more than six standard deviations once in 500
    million times."""
    times = 8000
    done = traced(f"def passing():\n    for _ in [None] * {times}: bytes({length})\npassing()", **SAMPLED)

    found = by_function(heap_of_founder(done))["passing"]
    size_bytes = sys.getsizeof(bytes(length))
    chance = -math.expm1(-size_bytes / (64 * KIB))
    more = 1 / chance % 1
    deviation = math.sqrt(times * ((1 - chance) / chance + chance * more * (1 - more)))
    assert abs(found.allocations - times) <= 6 * deviation + 5
    deviation_bytes = math.sqrt(times * (1 - chance) / chance) * size_bytes
    assert abs(found.bytes - times * size_bytes) <= 6 * deviation_bytes + 500 * KIB
    assert found.frees in (found.allocations, found.allocations - 1, found.allocations - 2)


def test_a_thread_frees_what_another_allocated(traced):
    done = traced(
        """
        import threading
        kept = []
        def allocate():
            kept.extend(bytearray(100_000) for _ in range(200))
        def free():
            kept.clear()
        for target in (allocate, free):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
        """,
        **ALL,
    )

    found = by_function(heap_of_founder(done))["allocate"]
    assert found.bytes == pytest.approx(200 * 100_001, rel=0.01)
    assert found.end_bytes < 20 * KIB


@pytest.mark.long
def test_many_threads_at_once_are_counted(traced):
    done = traced(
        """
        import threading, zlib
        def work():
            kept = []
            for number in range(3000):
                kept.append(bytes(2000))
                zlib.compress(kept[-1])  # allocates without the interpreter's lock
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """,
        **ALL,
    )

    found = by_function(heap_of_founder(done))["work"]
    assert found.bytes > 8 * 3000 * 2033
    assert found.end_bytes < 300 * KIB


def test_a_forked_child_has_what_it_allocates_itself(traced):
    done = traced(
        """
        import os
        kept = [bytearray(1_000_000) for _ in range(10)]
        def in_child():
            more.append(bytearray(5_000_000))
        more = []
        child = os.fork()
        if child == 0:
            kept.clear()  # its parent allocated that
            in_child()
            os._exit(0)
        os.waitpid(child, 0)
        print(len(kept))
        """,
        **ALL,
    )

    parent, child = heaps(done.experiment)
    assert done.stdout == "10\n"
    assert parent.process is done.experiment.founder
    assert parent.total.end_bytes > 10_000_000
    assert by_function(child)["in_child"].end_bytes == pytest.approx(5_000_000, rel=0.01)
    assert child.total.bytes < 6_000_000


def test_what_cannot_be_allocated_stays_as_it_was(traced):
    done = traced(
        """
        text = bytearray(1_000_000)
        try:
            text.extend(bytes(0)); text *= 1 << 40
        except MemoryError:
            print("no memory", len(text))
        """,
        **ALL,
    )

    assert done.stdout == "no memory 1000000\n"
    assert by_function(heap_of_founder(done))["<module>"].end_bytes == pytest.approx(1_000_000, rel=0.02)


@pytest.mark.parametrize("allocator", ["malloc", "pymalloc", "debug", "malloc_debug"])
def test_it_stands_before_each_allocator(traced, allocator):
    program = "def keep():\n    return [bytes(10_000) for _ in range(100)]\nkept = keep()"

    done = traced(program, PYTHONMALLOC=allocator, **ALL)

    assert by_function(heap_of_founder(done))["keep"].end_bytes == pytest.approx(100 * 10_033, rel=0.02)


def test_tracemalloc_works_at_the_same_time(traced):
    done = traced(
        """
        import tracemalloc
        tracemalloc.start()
        def keep():
            return [bytes(10_000) for _ in range(100)]
        kept = keep()
        print(tracemalloc.get_traced_memory()[0] > 1_000_000)
        tracemalloc.stop()
        more = keep()
        """,
        **ALL,
    )

    assert done.stdout == "True\n"
    assert by_function(heap_of_founder(done))["keep"].end_bytes > 200 * 10_033  # with what tracemalloc needed


def test_a_process_that_is_killed_has_its_figures(traced):
    done = traced(
        """
        import os, signal
        def keep():
            return [bytes(10_000) for _ in range(500)]
        kept = keep()
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        **ALL,
    )

    heap = heap_of_founder(done)
    assert by_function(heap)["keep"].end_bytes == pytest.approx(500 * 10_033, rel=0.02)
    assert not heap.has_ended and when_last(heap) == "when last seen"


# --- more stacks than there is room for

# Each `walk` of another number allocates from 2 ** (depth + 1) other stacks of a library's code.
LIBRARY = """
import ctypes, os, pathlib
import interpose.cext

SOURCE = '''
def left(depth):
    return (left(depth - 1), right(depth - 1)) if depth else bytes(1000)
def right(depth):
    return (left(depth - 1), right(depth - 1)) if depth else bytes(1000)
'''

def walk(depth, number=0):
    names = {}
    exec(compile(SOURCE, os.path.join(os.path.dirname(os.__file__), f"walking{number}.py"), "exec"), names)
    return names["left"](depth)

def room_for(sites):
    library = ctypes.CDLL(str(pathlib.Path(next(iter(interpose.cext.__path__)), "libinterpose.so")))
    ctypes.c_uint32.in_dll(library, "interpose_heap_sites_most").value = sites

kept = []
def late():
    kept.append(bytearray(5_000_000))
"""


@pytest.mark.long
def test_lines_are_known_however_many_stacks_there_are(traced):
    heap = heap_of_founder(traced(LIBRARY + "kept.append(walk(17))\nlate()\n", **ALL))

    found = by_function(heap)
    assert found["late"].end_bytes == pytest.approx(5_000_000, rel=0.01)
    leaf_bytes, pair_bytes = sys.getsizeof(bytes(1000)), sys.getsizeof((1, 2))
    assert found["walk"].end_bytes == pytest.approx(2**17 * (leaf_bytes + pair_bytes), rel=0.01)
    assert found["no Python code"].bytes < 1_000_000
    assert heap.is_whole


def test_stacks_that_have_nothing_left_give_way(traced, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    done = traced(LIBRARY + "room_for(8000)\nfor number in range(50):\n    walk(8, number)\nlate()\n", **ALL)

    heap = heap_of_founder(done)
    found = by_function(heap)
    assert found["late"].end_bytes == found["late"].peak_bytes == pytest.approx(5_000_000, rel=0.01)
    leaves = 50 * 2**8
    assert heap.rows[MORE_SITES].end_bytes == heap.rows[MORE_SITES].peak_bytes == 0
    allocated_bytes = heap.rows[MORE_SITES].bytes + found["walk"].bytes
    assert allocated_bytes >= leaves * sys.getsizeof(bytes(1000))
    assert heap.rows[MORE_SITES].allocations + found["walk"].allocations >= leaves
    _, out, told = shown(capsys, str(done.directory / done.experiment.name), "--limit", "100", "--sort", "allocated")
    assert "more places than fit" in out
    assert "all recorded)" not in told and "not all recorded by line; " in told and " in more places than fit" in told


@pytest.mark.long
def test_what_is_in_use_and_has_no_room_is_a_row_of_its_own(traced, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    done = traced(LIBRARY + "room_for(8000)\nkept.append([walk(8, number) for number in range(50)])\nlate()\n", **ALL)

    heap = heap_of_founder(done)
    found, place = by_function(heap), str(done.directory / done.experiment.name)
    more = heap.rows[MORE_SITES]
    assert found["no Python code"].bytes < 1_000_000
    walked_bytes = 50 * 2**8 * sys.getsizeof(bytes(1000))
    assert more.end_bytes > walked_bytes / 2
    assert heap.total.end_bytes > walked_bytes + 5_000_000
    _, out, _ = shown(capsys, place, "--format", "json")
    rows = {row["function"]: row for row in json.loads(out)}
    assert rows["more places than fit"]["end_bytes"] == more.end_bytes
    assert main(["report", place]) == 0
    assert re.search(r"^ +[\d.]+ MiB  in more places than fit: ", capsys.readouterr().out, re.MULTILINE)
    assert main(["display", place, "-heap"]) == 0
    assert "more places than fit" in capsys.readouterr().out


# Of stacks that the program makes up, only the first is freed; when there is no room it gives way, and another one has
# its record when it turns out that it was not freed.
PUT_BACK = """
import ctypes, pathlib
import interpose.cext

class Weight(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint64), ("allocations", ctypes.c_uint32)]

class Freed(ctypes.Structure):
    _fields_ = [("whatever", ctypes.c_uint64 * 8)]

library = ctypes.CDLL(str(pathlib.Path(next(iter(interpose.cext.__path__)), "libinterpose.so")))
room = ctypes.c_uint32.in_dll(library, "interpose_heap_sites_most")
add, take, put_back = (getattr(library, f"interpose_heap_{name}") for name in ("add", "take", "put_back"))
add.argtypes, add.restype = [ctypes.c_void_p, Weight, ctypes.c_uint32], None
take.argtypes, take.restype = [ctypes.c_void_p], Freed
put_back.argtypes, put_back.restype = [ctypes.c_void_p], None
kept = bytearray(100_000_000)
address, stack = 1 << 50, 1 << 30
add(address, Weight(7, 1), stack)
freed = take(address)
kept = [kept, bytearray(100_000_000)]
room.value = 20_000
for number in range(1, 40_000):
    add(address + 64 * number, Weight(1000, 1), stack + number)
put_back(ctypes.byref(freed))
"""


def test_what_was_not_freed_after_all_is_not_counted_to_another_stack(traced):
    done = traced(PUT_BACK, **ALL)

    records = (done.directory / done.experiment.name / "heap_sites").read_bytes()[64:]
    found = {each[7]: each for each in struct.iter_unpack("<7Q2I", records)}
    others = [each for stack, each in found.items() if stack > 1 << 30]
    assert done.stderr == "" and 1 << 30 not in found and len(others) > 1000
    assert {each[:4] for each in others} == {(1000, 0, 1, 0)}


def test_an_older_experiment_that_was_full_does_not_say_that_no_python_code_allocated(traced, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    done = traced(PROGRAM, **ALL)
    path = done.directory / done.experiment.name / "heap_sites"
    head, of_stack = path.read_bytes()[:64], struct.pack("<7Q2I", 10, 10, 1, 1, 0, 0, 1, 1, 1)
    without_stack = struct.pack("<7Q2I", 5_000_000, 0, 50, 0, 0, 0, 1, 0, 1)

    path.write_bytes(head + without_stack + of_stack * (1 << 16))

    _, out, told = shown(capsys, str(path.parent))
    assert "more places than fit" in out and "no Python code" not in out
    assert "not all recorded by line" in told


# --- the command


def shown(capsys, *words):
    code = main(["heap", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_shows_lines_by_what_they_had_at_the_peak(traced, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    done = traced(PROGRAM, **ALL)

    code, out, told = shown(capsys, str(done.directory / done.experiment.name))

    heads, first, *_ = out.splitlines()
    assert code == 0
    assert heads.split() == ["at", "peak", "margin", "at", "end", "allocated", "times", "function", "line"]
    assert first.split()[-1].endswith("program.py:9") and "large" in first
    when = "(after .*|within 20.0 ms of its start)"
    assert re.search(rf"process \d+: [\d.]+ MiB at its peak {when}, [\d.]+ MiB at the end, .* \(all recorded\)", told)


@pytest.mark.any_python
@pytest.mark.parametrize(
    ("after_ns", "told"),
    [
        (-3_000_000, "within 20.0 ms of its start"),
        (9_999_999, "within 20.0 ms of its start"),
        (2_000_000_000, "after 2.00 s"),
    ],
)
def test_a_peak_is_no_earlier_than_the_kernels_clock_can_tell(after_ns, told):
    log = SimpleNamespace(pid=7, start_ns=10**12)
    heap = Heap(SimpleNamespace(log=log), log.start_ns + after_ns, 0, 0, 0, True, {}, Allocated())

    assert f"at its peak {told}, " in summary(heap)


def test_hidden_rows_are_summed(traced, capsys):
    done = traced(PROGRAM, **ALL)

    code, out, _ = shown(capsys, str(done.directory / done.experiment.name), "--limit", "1", "--sort", "allocated")
    _, whole, _ = shown(capsys, str(done.directory / done.experiment.name), "--format", "json")

    assert code == 0 and len(out.splitlines()) == 3
    rows = json.loads(whole)
    others = sum(row["allocations"] for row in rows) - max(rows, key=lambda row: row["allocated_bytes"])["allocations"]
    assert others > 0
    assert "(other rows)" in out.splitlines()[-1]


def test_sorted_by_the_end_come_what_was_never_freed(traced, capsys):
    done = traced(
        """
        kept = []
        def leak():
            kept.append(bytearray(200_000))
        def cache():
            kept.append(bytearray(30_000_000))
            del kept[-1]
        for _ in range(20):
            leak()
        cache()
        """,
        **ALL,
    )

    path = str(done.directory / done.experiment.name)
    _, out, _ = shown(capsys, path, "--sort", "end", "--format", "json")
    _, text, _ = shown(capsys, path, "--sort", "end")

    first, *others = json.loads(out)
    assert (first["function"], first["line"]) == ("leak", 4)
    assert first["end_bytes"] == pytest.approx(20 * 200_000, rel=0.01)
    assert [row["end_bytes"] for row in others if row["function"] == "cache"] == [0]
    assert "leak" in text and "cache" not in text


FREED = """
def numbers():
    return {str(each): each for each in range(100_000)}
def passing():
    for _ in range(50):
        bytearray(5_000_000)
def kept_all():
    return [bytes(100_000) for _ in range(100)]
kept = kept_all()
there = numbers()
passing()
del there
"""


def test_a_line_with_nothing_in_the_sorted_column_has_its_row(traced, capsys):
    done = traced(FREED, **ALL)
    path = str(done.directory / done.experiment.name)

    rows = {
        sort: json.loads(shown(capsys, path, "--sort", sort, "--format", "json")[1])
        for sort in ("peak", "end", "allocated")
    }

    of_passing = [row for row in rows["peak"] if row["function"] == "passing"]
    passing = max(of_passing, key=lambda row: row["allocated_bytes"])
    assert passing["end_bytes"] == 0
    assert passing["allocated_bytes"] == pytest.approx(50 * 5_000_000, rel=0.01)
    by_line = [sorted(rows[sort], key=lambda row: (row["file"], row["line"] or 0, row["function"])) for sort in rows]
    assert by_line[0] == by_line[1] == by_line[2]


@pytest.mark.parametrize("sort", ["peak", "end", "allocated"])
def test_rows_add_up_to_the_total(traced, sort):
    heap = heap_of_founder(traced(FREED, **ALL))
    total = heap.total

    for limit in (None, 1, 20):
        figures = [row.figures for row in heap_rows([heap], sort, limit)]
        for each in ("peak_bytes", "end_bytes", "bytes", "allocations", "frees"):
            assert sum(getattr(one, each) for one in figures) == getattr(total, each)


def test_the_first_screen_names_the_lines_with_most_at_the_peak(traced, capsys):
    done = traced(PROGRAM, **{**ALL, "INTERPOSE": "calls,heap"})

    code = main(["report", str(done.directory / done.experiment.name)])

    out = capsys.readouterr().out
    assert code == 0
    assert re.search(r"^ heap +8\d\.\d MiB  at its peak, 6\d\.\d MiB in use at the end$", out, re.MULTILINE)
    assert re.search(r"^ +57\.\d MiB  allocated at program.py:9 large", out, re.MULTILINE)


@pytest.mark.parametrize(("command", "first"), [("-heap", "large"), ("-leaks", "large")])
def test_er_print_has_heap_and_leaks(command, first, traced, capsys):
    done = traced(PROGRAM, **ALL)

    code = main(["display", str(done.directory / done.experiment.name), "-limit", "2", command])

    out = capsys.readouterr().out
    assert code == 0
    assert first in out and "(other rows)" in out and "in use at the end" not in out
    assert re.search(r"process \d+: .* at its peak", out)
    assert ("peaking" in out) == (command == "-heap")


def test_without_a_heap_it_says_what_records_one(traced, capsys):
    done = traced("print(1)", INTERPOSE="1")

    code, out, told = shown(capsys, str(done.directory / done.experiment.name))

    assert code == 1 and not out
    assert "the heap was not recorded; INTERPOSE=calls,heap records it" in told


def test_a_damaged_file_is_told_and_the_rest_is_shown(traced, capsys):
    done = traced(PROGRAM, **ALL)
    path = done.directory / done.experiment.name / "heap_sites"
    path.write_bytes(path.read_bytes()[: 64 * 3 + 17])

    code, out, told = shown(capsys, str(path.parent))

    assert code == 3
    assert "heap_sites" in told and "Traceback" not in told
    assert out


@pytest.mark.long
def test_whatever_the_files_hold_no_command_fails(traced, capsys):
    done = traced(PROGRAM, **ALL)
    directory = done.directory / done.experiment.name
    whole = {name: (directory / name).read_bytes() for name in ("heap", "heap_sites")}
    draw = random.Random(7)
    codes = set()
    for _ in range(150):
        for name, data in whole.items():
            damaged = bytearray(data[: draw.choice((len(data), draw.randrange(len(data))))])
            for _ in range(draw.choice((1, 8, 200)) if damaged else 0):
                damaged[draw.randrange(len(damaged))] = draw.choice((0, 1, 0x7F, 0x80, 0xFF))
            (directory / name).write_bytes(damaged)
        codes |= {shown(capsys, str(directory), *words)[0] for words in ((), ("--sort", "end", "--format", "json"))}
        codes.add(main(["display", str(directory), "-heap"]))

    assert codes <= {0, 1, 3} and 0 in codes
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("size", ["", "x", "0", "-1", "64MB", "0.5KiB", "999999GiB"])
def test_sizes_that_are_none_are_refused(size, capsys):
    code = main(["run", "--heap", size, sys.executable, "-c", "pass"])

    assert code == 2
    assert "heap" in capsys.readouterr().err
