"""Partial results: merged in any order and grouping, they say what reading all experiments at once says."""

import json
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.groupings import GROUPINGS
from interpose.analysis.calls.profile import finished
from interpose.analysis.calls.profile import reduced as rows_of
from interpose.analysis.calls.rows import CODE
from interpose.analysis.coverage.coverage import Asked, coverage
from interpose.analysis.coverage.coverage import finished as finished_coverage
from interpose.analysis.partial.coding import NotThis, packed, unpacked
from interpose.analysis.partial.partial import Head, Partial, Question, merged, reduced
from interpose.analysis.partial.reductions import COVERAGE, REDUCTIONS, ROWS, RUNS, TRANSACTIONS
from interpose.analysis.profile.rows import WITH_CODE, finished_with_code, reduced_with_code
from interpose.analysis.transactions import response_times
from interpose.experiments.model.collection import Collection
from interpose.experiments.model.experiment import Experiment
from tests.build import START_NS, TIME_NS, Build, event
from tests.schedules import MS, Schedule, put_thread

NAMES = ("sqlite3.Cursor.execute", "os.write", "threading.Lock.acquire", "interpose.transaction")
KINDS = ("db", "file", "sync", "logic")
SAMPLED = {"INTERPOSE_TRANSACTIONS": "1/3", "INTERPOSE_SEED": "7"}


def an_experiment(path, seed, given=None):
    """One with calls of two threads in four lines, of four kinds, some within transactions, some counted only."""
    random = Random(seed)
    build = Build(path, pid=100 + seed, time_ns=TIME_NS + seed, settings=given or {})
    intrinsics = [
        build.intrinsic(name, kind, **({"transaction": "is"} if kind == "logic" else {}))
        for name, kind in random.sample(list(zip(NAMES, KINDS, strict=True)), 4)
    ]
    stacks = [build.stack(build.site("/home/u/shop/a.py", line, f"f{line % 2}")) for line in (3, 4, 5, seed + 6)]
    details = [0, build.string("select ?"), build.string(f"/tmp/{seed}")]
    for thread in (1, 2):
        at_ns, rows = 0, []
        for call in range(1, random.randrange(2, 30)):
            wall_ns = random.randrange(1, 10**6)
            more = {"stack": random.choice(stacks), "detail": random.choice(details), "bytes": random.randrange(9)}
            outer = event(at_ns, wall_ns, wall_ns // 2, thread=thread, call=2 * call, **more)
            outer |= {"intrinsic": random.choice(intrinsics), "inner_wall_ns": wall_ns // 3}
            inner = event(at_ns, wall_ns // 3, 0, thread=thread, call=2 * call + 1, parent=2 * call, **more)
            rows += [inner | {"intrinsic": random.choice(intrinsics)}, outer]
            at_ns += wall_ns + random.randrange(1000)
        build.events(rows)
        passed = {"passed": seed * thread, "recorded": len(rows), "own_wall_ns": 500, "own_cpu_ns": 400}
        build.thread(end_ns=START_NS + at_ns + 10, end_cpu_ns=at_ns, tid=800 + thread, main=thread == 1, **passed)
    build.ended(10**8, 10**7)
    return build.write()


@pytest.fixture(scope="module")
def experiments(tmp_path_factory):
    """Some whose transactions were sampled, and some of which all was recorded."""
    place = tmp_path_factory.mktemp("many")
    return tuple(str(an_experiment(place / f"t{n}.1.er", n, SAMPLED if n % 3 == 2 else None)) for n in range(7))


@cache
def at_once(paths):
    return Analysis(Collection([Experiment(path) for path in paths]))


@cache
def answers(paths, question):
    return [reduced(Experiment(path), question, REDUCTIONS[question.reduction]) for path in paths]


def tree_of(partials, choose, reduction):
    """The partial results, merged in an order and with brackets that `choose` decides."""
    left = list(partials)
    while len(left) > 1:
        some = [left.pop(choose(len(left))) for _ in range(min(len(left), 2 + choose(2)))]
        left.append(merged(some, reduction))
    return left[0]


def figures(rows):
    """What rows say, without how far estimates may be off, which is no whole number."""
    return sorted(repr((row.likeness, row.sums, row.passed, row.counted, row.comment)) for row in rows)


@pytest.mark.parametrize("by", GROUPINGS)
@settings(max_examples=10)
@given(choices=st.randoms(use_true_random=False))
def test_rows_of_partial_results_are_those_of_all_at_once_whatever_is_merged_first(experiments, by, choices):
    question = Question(ROWS, by, several=True)

    whole = tree_of(answers(experiments, question), choices.randrange, REDUCTIONS[ROWS])

    wanted = finished(rows_of(at_once(experiments), by), by)
    made = finished(whole.value, by)
    assert figures(made.rows) == figures(wanted.rows)
    assert made.total == wanted.total
    assert made.estimate.population == wanted.estimate.population
    for what, margin in wanted.estimate.margins.items():
        assert made.estimate.margins[what].calls == pytest.approx(margin.calls)


@pytest.mark.parametrize("by", ["kind", "site", "thread"])
def test_self_times_of_all_rows_add_up_to_what_the_threads_of_all_experiments_lived(experiments, by):
    whole = merged(answers(experiments, Question(ROWS, by, several=True)), REDUCTIONS[ROWS])

    lived_ns = sum(
        thread.record.end_ns - thread.record.start_ns
        for path in experiments
        for process in Experiment(path).processes
        for thread in process.threads
    )
    assert sum(row.sums.self_wall_ns for row in finished(whole.value, by).rows) == lived_ns


@settings(max_examples=10)
@given(choices=st.randoms(use_true_random=False))
def test_transactions_of_partial_results_are_those_of_all_at_once(experiments, choices):
    question = Question(TRANSACTIONS)

    whole = tree_of(answers(experiments, question), choices.randrange, REDUCTIONS[TRANSACTIONS])

    wanted = response_times.transactions(at_once(experiments))
    made = response_times.finished(whole.value)
    assert made.rows == wanted.rows
    assert made.thread_ns == wanted.thread_ns
    assert made.estimate == wanted.estimate


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """Experiments whose code was sampled, and one whose was not."""
    place = tmp_path_factory.mktemp("sampled")
    made = []
    for seed in range(3):
        build = Build(place / f"s{seed}.1.er", call_ns=0, inside_ns=0, time_ns=TIME_NS + seed)
        schedule = Schedule([("run", f"f{each % (seed + 2)}", (each + 1) * 20 * MS) for each in range(9)])
        put_thread(build, schedule, Random(seed), thread=1)
        build.ended(schedule.wall_ns, schedule.of("run", "call").total())
        made.append(str(build.write()))
    return (*made, str(an_experiment(place / "plain.1.er", 3)))


@pytest.mark.parametrize("by", WITH_CODE)
def test_rows_of_sampled_code_are_those_of_all_at_once(sampled, by):
    question = Question(ROWS, by, with_code=True, several=True)

    whole = merged(reversed(answers(sampled, question)), REDUCTIONS[ROWS])

    analysis = at_once(sampled)
    wanted = finished_with_code(reduced_with_code(rows_of(analysis, by), analysis, by), by)
    made = finished_with_code(whole.value, by)
    assert any(row.kind == CODE and row.code for row in made.rows)
    assert figures(made.rows) == figures(wanted.rows)
    assert {row.site for row in made.rows if row.code} == {row.site for row in wanted.rows if row.code}


@pytest.fixture(scope="module")
def covered(tmp_path_factory):
    """Experiments of which each covered other places of two files."""
    place = tmp_path_factory.mktemp("covered")
    made = []
    for seed in range(6):
        random, build = Random(seed), Build(place / f"c{seed}.1.er", time_ns=TIME_NS + seed)
        for file in ("a.py", "b.py")[: 1 + seed % 2]:
            places = [(line, 1, random.randrange(2)) for line in range(1, 9)]
            build.covered_code(f"/home/u/shop/{file}", "f", places, [(1, 2, 3, random.randrange(2), 1)])
        build.thread(end_ns=START_NS + 10, main=1, tid=1)
        build.ended(10, 10)
        made.append(str(build.write()))
    return tuple(made)


@settings(max_examples=10)
@given(choices=st.randoms(use_true_random=False))
def test_coverage_of_partial_results_is_that_of_all_at_once(covered, choices):
    asked = Asked(place="/home/u/shop")
    partials = answers(covered, Question(COVERAGE, options=asked.packed()))

    whole = tree_of(partials, choices.randrange, REDUCTIONS[COVERAGE])

    wanted = coverage(Collection([Experiment(path) for path in covered]), asked)
    made = finished_coverage(whole.value, asked)
    assert [module.path for module in made.modules] == ["/home/u/shop/a.py", "/home/u/shop/b.py"]
    assert repr(sorted(map(told_of, made.modules))) == repr(sorted(map(told_of, wanted.modules)))
    assert (made.codes, made.with_branches, sorted(made.notes)) == (wanted.codes, True, sorted(wanted.notes))


def told_of(module):
    return module.path, sorted(module.lines_seen), sorted(map(str, module.jumps.items())), module.why


def test_runs_stay_themselves_in_the_order_given(experiments):
    whole = merged(answers(experiments, Question(RUNS, "intrinsic", with_calls=True)), REDUCTIONS[RUNS])

    assert [each.run.name for each in whole.value] == [f"t{seed}.1.er" for seed in range(7)]


@pytest.mark.parametrize(
    "question",
    [
        *(Question(ROWS, by, with_code=True) for by in GROUPINGS),
        Question(TRANSACTIONS),
        Question(RUNS, "site", with_calls=True),
    ],
    ids=str,
)
def test_what_is_packed_is_read_as_it_was(experiments, question):
    kind = tuple[Head, REDUCTIONS[question.reduction].kind]

    for each in answers(experiments, question):
        head, value = unpacked(packed((each.head, each.value), kind), kind)
        assert Partial(head, value) == each


def test_coverage_is_packed_and_read_as_it_was(covered):
    kind = tuple[Head, REDUCTIONS[COVERAGE].kind]

    for each in answers(covered, Question(COVERAGE, options=Asked(place="/").packed())):
        head, value = unpacked(packed((each.head, each.value), kind), kind)
        assert Partial(head, value) == each


@given(data=st.data())
def test_what_is_not_a_partial_result_is_refused_and_harms_nothing(experiments, data):
    kind = tuple[Head, REDUCTIONS[ROWS].kind]
    (whole,) = answers(experiments[2:3], Question(ROWS, "kind"))
    found = json.loads(packed((whole.head, whole.value), kind))
    at = found
    while isinstance(at, list) and at:
        place = data.draw(st.integers(0, len(at) - 1))
        if not isinstance(at[place], list) or not at[place] or data.draw(st.booleans()):
            break
        at = at[place]
    at[place] = data.draw(st.sampled_from([[], {}, "x", 2**200, -1, 1.5, [[1]], None, True]))

    try:
        head, value = unpacked(json.dumps(found).encode(), kind)
    except NotThis:
        return
    finished(value, "kind")
    assert isinstance(head, Head)


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b"\xff", b"[1,2]", b"9" * 5000, b"null"])
def test_other_texts_are_refused(text):
    with pytest.raises(NotThis):
        unpacked(text, tuple[Head, REDUCTIONS[ROWS].kind])
