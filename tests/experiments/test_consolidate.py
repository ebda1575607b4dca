"""The two consolidators: the same records from the same bytes, whatever the bytes are."""

import json
import os
import random
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.analysis.consolidation import consolidate as consolidate_module
from interpose.analysis.consolidation.consolidate import consolidated
from interpose.analysis.consolidation.plain_consolidator import PlainConsolidator
from interpose.analysis.consolidation.records import Records, grouped
from interpose.analysis.consolidation.sums import (
    DETAILS_AT_MOST,
    FIGURES,
    KEYS_AT_MOST,
    MOST,
    Sums,
)
from interpose.analysis.transactions.tracking import (
    AFRESH,
    ASKS,
    BEGINS,
    BUSY,
    BY_DETAIL,
    DROPS,
    ENDS,
    IDLE,
    KEYS,
    MARKED,
    NAMES,
    READS,
    RELEASES,
    SPAN,
    Life,
    Tracker,
)
from interpose.experiments.format.consolidated import OTHER
from interpose.experiments.format.layout import TYPES, Field, Layout
from interpose.experiments.format.possible import LONGEST_NS, MOST_BYTES, PlainJudge
from interpose.experiments.model.experiment import Experiment
from tests.build import Build, event, fields, pack

compiled = pytest.importorskip("interpose.analysis.consolidation.consolidator")

FIELDS = ["thread", "intrinsic", "stack", "detail", "error", "call"]


def event_layout():
    described, end = [], 0
    for name, kind in fields("EVENT"):
        described.append(Field(name, kind, end))
        end = described[-1].end
    return Layout(described, end)


def canonical(found):
    """Records by the keys and names of those around them, in any order."""
    paths, made = [], {}
    for each in found:
        path = (*(paths[each.outer] if each.outer >= 0 else ()), (each.key, each.name))
        paths.append(path)
        assert path not in made
        made[path] = (tuple(each.figures), each.walls, each.cpus)
    return made


def both(layout, by, pieces, tracked=None, **options):
    """What each consolidator found of the possible events, and whether there was too much."""
    results, judge, size = [], PlainJudge(layout), layout.record_bytes
    for consolidator in (PlainConsolidator, compiled.CompiledConsolidator):
        tracking = {"tracker": Tracker(LIVES, details=STATEMENTS), "roles": tracked} if tracked is not None else {}
        made = consolidator(layout, by, **tracking, **options)
        for piece in pieces:
            impossible = judge.impossible(piece)
            places = [place for place in range(len(piece) // size) if place not in impossible]
            made.add(b"".join(piece[place * size : (place + 1) * size] for place in places))
        results.append((made.records(), made.is_full))
    return results


def sums_of(by, found):
    return Records(by, found).sums()


def same(results):
    """Whether both found the same."""
    (plain, *left), (fast, *others) = results
    return left == others and canonical(plain) == canonical(fast)


OF_STATEMENTS = {1: RELEASES, 2: AFRESH, 3: ENDS, 4: DROPS, 5: AFRESH | ENDS}
STATEMENTS = SimpleNamespace(role_of=lambda detail: OF_STATEMENTS.get(detail, 0))
LIVES = {1: Life(0, 0, 5000, 900), 2: Life(100, 0, 0, 0)}
few = st.integers(0, 3)
times = st.one_of(st.integers(0, 1000), st.integers(0, 2**64 - 1))
events = st.lists(
    st.fixed_dictionaries(
        {name: times if kind == "u64" else few for name, kind in fields("EVENT")},
    ),
    max_size=40,
)
keys = st.lists(st.sampled_from(FIELDS), unique=True, max_size=KEYS_AT_MOST).map(tuple)
of_drivers = [BUSY | ASKS, BUSY | ASKS | ENDS, BUSY | ASKS | DROPS]
roles = st.sampled_from(
    [0, BUSY, READS, READS | KEYS, SPAN, SPAN | MARKED, BEGINS, ENDS | BUSY, NAMES, *of_drivers, BUSY | ASKS]
)


def packed(rows):
    return b"".join(pack("EVENT", **row) for row in rows)


@pytest.mark.long
@given(events, keys, st.booleans())
def test_both_give_the_same_records(rows, by, histograms):
    records = packed(rows)
    cut = len(records) // 2 // event_layout().record_bytes * event_layout().record_bytes

    assert same(both(event_layout(), by, [records[:cut], records[cut:]], histograms=histograms))


def test_what_the_recorder_writes_is_what_is_read_fastest():
    described = event_layout().fields.values()

    assert [(each.name, each.offset, each.size_bytes) for each in described] == compiled.USUAL


@pytest.mark.long
@given(events, keys, st.integers(0, 3), st.integers(0, 5), st.integers(0, 3))
def test_both_give_up_what_waits_and_what_is_too_much_at_the_same_event(rows, by, waiting, most, details):
    limits = {"waiting_at_most": waiting, "records_at_most": most, "details_at_most": details}

    assert same(both(event_layout(), by, [packed(rows)], histograms=True, **limits))


@pytest.mark.long
@given(events, st.dictionaries(few, roles), st.integers(0, 4), st.integers(1, 9), st.integers(0, 5))
def test_both_put_calls_under_the_same_transactions(rows, tracked, waiting, most, details):
    by = ("thread", "intrinsic", "detail")
    limits = {"waiting_at_most": waiting, "records_at_most": most, "details_at_most": details}

    assert same(both(event_layout(), by, [packed(rows)], tracked, histograms=True, **limits))


MEANING = {1: SPAN, 2: SPAN | MARKED, 3: BUSY, 4: NAMES, 5: READS, 6: ENDS | BUSY}
long_or_short = st.one_of(st.integers(0, 9), st.sampled_from([LONGEST_NS, 2**62]))


@st.composite
def one_after_the_other(draw):
    """Calls of two threads that are mostly transactions, each with a call inside or not, and where to cut them."""
    rows, now_ns = [], {1: 10, 2: 100}
    for number in range(draw(st.integers(0, 20))):
        thread, intrinsic = draw(st.sampled_from([1, 1, 1, 2])), draw(st.sampled_from([1, 1, 1, 2, 2, 3, 4, 5, 6]))
        start_ns = now_ns[thread] + draw(st.integers(-3, 9))
        wall_ns, call, start_cpu_ns = draw(st.integers(0, 9)), 2 * number + 1, draw(long_or_short)
        alike = {"thread": thread, "start_ns": start_ns, "start_cpu_ns": start_cpu_ns, "detail": draw(few)}
        if draw(st.booleans()):
            rows.append({**alike, "intrinsic": draw(st.sampled_from([3, 3, 4, 5])), "parent": call, "call": call + 1})
        cpu_ns = draw(st.integers(0, wall_ns))
        rows.append({**alike, "intrinsic": intrinsic, "wall_ns": wall_ns, "cpu_ns": cpu_ns, "call": call})
        now_ns[thread] = start_ns + wall_ns
    return rows, sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))


@pytest.mark.long
@given(one_after_the_other(), st.booleans())
def test_both_end_what_is_between_transactions_in_the_same_way(made, has_names):
    rows, cuts = made
    roles = {number: role for number, role in MEANING.items() if has_names or role != NAMES}
    pieces = [packed(rows[begin:end]) for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]

    assert same(both(event_layout(), ("thread", "intrinsic"), pieces, roles, histograms=True))


calls_of_drivers = st.lists(
    st.tuples(st.integers(1, 2), st.integers(1, 5), st.integers(0, 5), st.booleans(), st.sampled_from([0, 0, 1, 2])),
    min_size=3,
    max_size=30,
)


@given(calls_of_drivers, st.integers(0, 30), st.integers(1, 9))
def test_both_begin_and_end_transactions_with_the_same_call_of_a_database(made, cut, waiting):
    rows = []
    for number, (thread, intrinsic, detail, is_inside, task) in enumerate(made, 1):
        alike = {"thread": thread, "detail": detail, "start_ns": 100 * number, "intrinsic": intrinsic, "task": task}
        alike["stack"] = number % 3
        if is_inside:
            rows.append({**alike, "wall_ns": 20, "call": 1000 + number, "parent": number})
        rows.append({**alike, "wall_ns": 50, "call": number, "intrinsic": 1 if is_inside else intrinsic})
    meaning = {1: BUSY, 2: BUSY | ASKS, 3: BUSY | ASKS | ENDS, 4: BUSY | ASKS | DROPS, 5: SPAN | BUSY}
    pieces = [packed(rows[:cut]), packed(rows[cut:])]
    results = both(
        event_layout(), ("thread", "intrinsic", "detail"), pieces, meaning, histograms=True, waiting_at_most=waiting
    )

    assert same(results)


def test_what_is_between_transactions_is_known_wherever_records_are_asked_for():
    rows = [{"thread": 1, "intrinsic": 1, "start_ns": 10 * n, "wall_ns": 5, "call": n} for n in range(1, 9)]
    made = compiled.CompiledConsolidator(event_layout(), ("intrinsic",), tracker=Tracker(LIVES), roles={1: SPAN})

    made.add(packed(rows[:5]))
    early = made.copied().records()
    made.add(packed(rows[5:]))

    for found, count in ((early, 5), (made.records(), 8)):
        calls = {each.name: (each.figures[0], each.figures[2]) for each in found}
        assert calls[IDLE] == (count - 1, 5 * (count - 1))


@st.composite
def nested_calls(draw, number, begins_ns, depth):
    """Calls one after the other from `begins_ns` on, each with calls inside; in the order of their ends."""
    rows, now_ns = [], begins_ns
    for _ in range(draw(st.integers(0, 3 if depth else 1))):
        parent, mine = number[0], number[1]
        number[1] += 1
        inside = []
        if depth < 4:
            number[0] = mine
            inside, now_ns = draw(nested_calls(number, now_ns + draw(few), depth + 1))
            number[0] = parent
        begin_ns = min((row["start_ns"] for row in inside), default=now_ns)
        now_ns += draw(few)
        values = {"start_ns": begin_ns, "wall_ns": now_ns - begin_ns, "call": mine, "parent": parent}
        rows += [*inside, values | {"intrinsic": draw(st.integers(1, 4)), "thread": 1}]
    return rows, now_ns


def spans(rows):
    """The instants in which one of the calls was open."""
    return {ns for row in rows for ns in range(row["start_ns"], row["start_ns"] + row["wall_ns"])}


@pytest.mark.long
@given(st.data())
def test_the_inclusive_time_of_a_group_is_that_in_which_one_of_its_calls_was_open(data):
    rows, _ = data.draw(nested_calls([0, 1], 100, 0))

    for found, *_ in both(event_layout(), ("intrinsic",), [packed(rows)]):
        times_ns = {0: 0, 1: 0}
        tree = Records(("intrinsic",), found)
        for record, group, is_first in grouped(tree.roots, lambda record: record.key[0] % 2):
            times_ns[group] += record.sums.wall_ns if is_first else 0
        for group, wall_ns in times_ns.items():
            assert wall_ns == len(spans([row for row in rows if row["intrinsic"] % 2 == group]))


@pytest.mark.long
@given(st.data())
def test_calls_are_inside_of_records_like_the_calls_around_them(data):
    rows, _ = data.draw(nested_calls([0, 1], 100, 0))
    by_call = {row["call"]: row for row in rows}

    def path(row):
        outer = path(by_call[row["parent"]]) if row["parent"] else ()
        return (*outer, ((row["intrinsic"],), 0))

    expected = {}
    for row in rows:
        expected.setdefault(path(row), []).append(row["wall_ns"])

    for found, *_ in both(event_layout(), ("intrinsic",), [packed(rows)]):
        made = {each: (figures[0], figures[2]) for each, (figures, *_) in canonical(found).items()}
        assert made == {each: (len(walls), sum(walls)) for each, walls in expected.items()}


@given(st.binary(max_size=4000), keys, st.data())
def test_both_give_the_same_records_from_any_bytes_in_any_layout(noise, by, data):
    names = data.draw(st.lists(st.sampled_from([name for name, _ in fields("EVENT")]), unique=True))
    described, end = [], 0
    for name in names:
        described.append(Field(name, data.draw(st.sampled_from(sorted(TYPES))), end + data.draw(few)))
        end = described[-1].end
    layout = Layout(described, end + data.draw(st.integers(1, 9)))
    whole = len(noise) // layout.record_bytes * layout.record_bytes

    assert same(both(layout, by, [noise[:whole]], histograms=True))


def test_both_hold_many_keys():
    numbers = random.Random(1).sample(range(2**32), 5000)
    records = packed({"stack": number, "wall_ns": number} for number in numbers)

    results = both(event_layout(), ("stack", "thread"), [records, records])

    assert same(results)
    assert {each.key[0]: each.figures[0] for each in results[1][0]} == dict.fromkeys(numbers, 2)


@pytest.mark.long
def test_calls_inside_of_each_other_without_end_are_held():
    depth = 20_000
    rows = [{"call": depth - number, "parent": depth - number - 1, "wall_ns": number} for number in range(depth)]
    records = packed(rows)

    for found, *_ in both(event_layout(), ("intrinsic",), [records, records]):
        assert len(found) == depth
        assert {each.figures[0] for each in found} == {2}
        assert sum(sums.calls for sums in sums_of(("intrinsic",), found).values()) == 2 * depth


def test_figures_have_one_order():
    assert tuple(Sums.__slots__[: len(FIGURES)]) == FIGURES


def test_sums_stop_at_the_most_and_do_not_wrap():
    results = both(event_layout(), (), [pack("EVENT", bytes=MOST_BYTES) * 3])

    assert same(results)
    assert sums_of((), results[1][0])[()].bytes == MOST


def test_self_times_leave_out_what_was_inside():
    records = pack("EVENT", wall_ns=30, cpu_ns=20, parent=1, call=2)
    records += pack("EVENT", wall_ns=100, cpu_ns=50, inner_wall_ns=30, inner_cpu_ns=20, call=1)
    records += pack("EVENT", wall_ns=1, inner_wall_ns=9, call=3)

    for found, *_ in both(event_layout(), ("thread",), [records]):
        sums = Records(("thread",), found).by_thread()[0]
        assert (sums.self_wall_ns, sums.self_cpu_ns, sums.top_cpu_ns) == (70 + 30, 30 + 20, 50)
        assert (sums.wall_ns, sums.wall_least_ns, sums.wall_most_ns) == (101, 1, 100)


def test_a_call_inside_another_of_its_group_adds_nothing_to_the_inclusive_time():
    # 1 is around 2, 2 around 3, 3 around 4; the first and the third are of one intrinsic, the second is another.
    rows = [
        {"call": call, "parent": call - 1, "intrinsic": intrinsic, "wall_ns": wall_ns, "cpu_ns": wall_ns // 10}
        for call, intrinsic, wall_ns in [(4, 9, 10), (3, 7, 20), (2, 8, 30), (1, 7, 40)]
    ]

    for found, *_ in both(event_layout(), ("intrinsic",), [packed(rows[:2]), packed(rows[2:])]):
        sums = {key[0]: (each.wall_ns, each.cpu_ns) for key, each in sums_of(("intrinsic",), found).items()}
        assert sums == {9: (10, 1), 8: (30, 3), 7: (40, 4)}


def test_calls_whose_outer_call_never_came_are_outermost():
    rows = [{"call": 3, "parent": 2, "wall_ns": 5}, {"call": 2, "parent": 1, "wall_ns": 9}]
    rows += [{"call": 5, "parent": 4, "wall_ns": 7}, {"call": 6, "parent": 6, "wall_ns": 1}]

    for found, *_ in both(event_layout(), (), [packed(rows)]):
        assert sums_of((), found)[()].wall_ns == 9 + 7 + 1


def test_too_many_records_are_put_into_one_and_nothing_is_lost():
    rows = [{"stack": number, "wall_ns": 10} for number in range(100)]

    for found, is_full in both(event_layout(), ("stack",), [packed(rows)], records_at_most=7):
        assert is_full
        assert len(found) <= 8
        assert sum(each.figures[2] for each in found) == 1000


def test_details_beyond_so_many_are_other_counted_and_timed_by_all_else():
    often = {"stack": 1, "detail": 1000, "wall_ns": 5}
    slow = {"stack": 0, "detail": 1001, "wall_ns": 5000}
    rows = [{"stack": number % 2, "detail": 1 + number // 2, "wall_ns": 10} for number in range(100)]
    rows = [*rows[:50], *[often] * 30, slow, *rows[50:], often, slow, {"stack": 1, "wall_ns": 7}]

    for found, is_full in both(event_layout(), ("stack", "detail"), [packed(rows)], details_at_most=8):
        sums = {key: (each.calls, each.wall_ns) for key, each in sums_of(("stack", "detail"), found).items()}
        others = [each for (_, detail), each in sums.items() if detail not in (0, 1000, 1001)]
        assert not is_full
        assert sums[1, 1000] == (31, 155)
        assert sums[0, 1001] == (2, 10_000)
        assert sums[1, 0] == (1, 7)
        assert sum(calls for calls, _ in others) == 100 and sum(wall_ns for _, wall_ns in others) == 1000
        assert sums[0, OTHER][0] > 30 and sums[1, OTHER][0] > 30
        assert len(sums) <= 8 + 2 + 1


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_whatever_has_more_than_its_part_is_kept_however_late_it_comes_and_lacks_no_more_than_that(seed):
    chance, most, calls = random.Random(seed), 200, 30_000
    # Ever new ones, those that come now and then from the beginning on, and from the middle on.
    weights = [(0, 0, calls)] + [(1 + n, (n % 2) * calls // 2, calls // (50 * (n + 1))) for n in range(20)]
    rows = [
        {"detail": detail or 1000 + number, "wall_ns": chance.choice((1, 10, 1000)), "start_ns": begins + number}
        for detail, begins, count in weights
        for number in (chance.randrange(calls) for _ in range(count))
    ]
    rows.sort(key=lambda row: row["start_ns"])
    true = {n: [row["wall_ns"] for row in rows if row["detail"] == n] for n in range(1, 21)}

    (plain, *_), (fast, *_) = both(event_layout(), ("detail",), [packed(rows)], details_at_most=most)

    assert canonical(plain) == canonical(fast)
    sums = sums_of(("detail",), fast)
    lacking = len(rows) * 4 // most, sum(row["wall_ns"] for row in rows) * 4 // most
    assert sum(each.calls for each in sums.values()) == len(rows)
    assert len(sums) <= most + 1
    for number, walls in true.items():
        found = sums.get((number,), Sums())
        assert len(walls) - lacking[0] <= found.calls <= len(walls)
        assert sum(walls) - lacking[1] <= found.wall_ns <= sum(walls)
        assert found.calls or (len(walls) <= lacking[0] and sum(walls) <= lacking[1])


def test_a_report_by_details_tells_those_beyond_so_many_as_other(tmp_path, interpose_here):
    build, calls = Build(tmp_path / "t.1.er"), DETAILS_AT_MOST + 50
    stat = build.intrinsic("os.stat", "file")
    first = build.string("/0")
    build.strings += [f"/{number}".encode() for number in range(1, calls)]
    build.thread(recorded=calls, made=calls)
    build.events([event(n, 5 + n, call=n + 1, intrinsic=stat, detail=first + n) for n in range(calls)])
    build.ended(10**9, 10**8)

    shown = interpose_here("report", "--by", "detail", "--format", "json", str(build.write()))

    rows = {row["detail"]: row["calls"] for row in json.loads(shown.stdout) if row.get("kind") == "file"}
    assert (shown.returncode, shown.stderr) == (0, "")
    assert 50 <= rows["(other)"] < calls
    assert len(rows) <= DETAILS_AT_MOST + 1
    assert sum(rows.values()) == calls


def test_names_of_transactions_beyond_so_many_are_other():
    tracked, start = {1: SPAN}, 10_000
    rows = [
        {"thread": 1, "intrinsic": 1, "detail": number, "start_ns": start + 10 * number, "wall_ns": 5, "call": number}
        for number in range(1, 51)
    ]

    for found, *_ in both(event_layout(), ("thread",), [packed(rows)], tracked, details_at_most=3):
        names = {each.name: each.figures[0] for each in found if each.name & ~OTHER == BY_DETAIL}
        assert names[BY_DETAIL | OTHER] >= 47
        assert sum(names.values()) == 50


def test_histograms_count_every_call():
    rows = [{"wall_ns": wall_ns, "cpu_ns": wall_ns // 2} for wall_ns in (1, 50, 127, 128, 1_000_000, 3_000_000_000)]

    for found, *_ in both(event_layout(), (), [packed(rows)], histograms=True):
        (sums,) = sums_of((), found).values()
        assert sums.walls.total == sums.cpus.total == 6
        assert sums.walls.percentiles((1, 33, 50)) == [1, 50, 127]
        assert abs(sums.walls.percentile(100) - 3_000_000_000) < 0.01 * 3_000_000_000


def test_the_order_of_a_threads_blocks_is_that_of_writing(tmp_path):
    # As they lie in the file: the block being written, in which the outer call has ended, then the full ones.
    build = Build(tmp_path / "t.1.er")
    build.block([event(20, 5, call=4), event(0, 100, call=1)], sequence=4, state=1)
    build.block([event(1, 3, call=2, parent=1)], sequence=1)
    build.block([event(5, 3, call=1, thread=2)], sequence=2)
    build.block([event(6, 3, call=3, parent=1)], sequence=3)
    build.thread()
    process = Experiment(str(build.write())).founder

    for consolidator in (PlainConsolidator, compiled.CompiledConsolidator):
        sums = consolidated(process, ("thread",), consolidator).sums()
        assert (sums[(1,)].calls, sums[(1,)].wall_ns) == (4, 105)
        assert sums[(2,)].wall_ns == 3


def test_more_keys_than_there_is_room_for_are_refused():
    for consolidator in (PlainConsolidator, compiled.CompiledConsolidator):
        with pytest.raises(ValueError, match="at most 5 keys"):
            consolidator(event_layout(), tuple(FIELDS[:6]))


def test_the_plain_consolidator_is_taken_where_nothing_is_compiled(monkeypatch):
    monkeypatch.setitem(sys.modules, "interpose.analysis.consolidation.consolidator", None)

    assert consolidate_module.fastest_consolidator() is PlainConsolidator


def test_memory_is_bounded_by_the_keys_and_not_by_the_events(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.block([event(n, 5, call=n) for n in range(743)])
    path = build.write() / "events"
    block = path.read_bytes()
    with open(path, "ab") as file:
        for sequence in range(2, 502):
            file.write(block[:16] + sequence.to_bytes(8, "little") + block[24:])
    experiment = Experiment(str(tmp_path / "t.1.er"))

    before = resident_bytes()
    sums = consolidated(experiment.founder, ("intrinsic",), compiled.CompiledConsolidator).sums()

    assert sums[(1,)].calls == 501 * 743
    assert resident_bytes() - before < 4 << 20


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
