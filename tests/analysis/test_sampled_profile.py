"""The sampled profile: shares are true within their margins, without bias, and rows always add up."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.profile.profiled import function_of, innermost, profiled
from interpose.analysis.profile.rows import with_code
from interpose.experiments.format.children import EXEC
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.sampled import NOT_READ
from interpose.experiments.model.stacks import Site
from interpose.reports.formats.units import margin_of_samples
from tests.build import START_NS, Build, event
from tests.schedules import KINDS, MS, READY, RECORDS, RUNS, WAITS, Schedule, put_thread

PROGRAMS = 25  # of each kind


def built(directory, *schedules, seed=0, **how):
    build = Build(directory, call_ns=0, inside_ns=0)
    random = Random(seed)
    for thread, schedule in enumerate(schedules, 1):
        put_thread(build, schedule, random, thread=thread, **how)
    build.ended(max(each.wall_ns for each in schedules), sum(each.of("run", "call").total() for each in schedules))
    return build


def analysis_of(build):
    return Analysis(Experiment(str(build.write())))


def by_function(analysis):
    rows = with_code(profile(analysis, "function"), "function").rows
    return {row.labels["function"]: row for row in rows if row.code}


@pytest.mark.long
@pytest.mark.parametrize(
    "how",
    [
        pytest.param({}, id="all"),
        pytest.param({"lost": 0.4}, id="some lost", marks=pytest.mark.slow),
        pytest.param({"tick_ns": 4 * MS}, id="counted at ticks", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_shares_are_within_their_margins_19_times_of_20_and_have_no_bias(kind, how, tmp_path):
    within, errors = [], []
    for seed in range(PROGRAMS):
        schedule = KINDS[kind](Random(seed))
        true = schedule.of("run")
        found = by_function(analysis_of(built(tmp_path / f"t{seed}.1.er", schedule, seed=seed, **how)))
        for function, cpu_ns in true.items():
            code = found[function].code if function in found else None
            margin_ns = code.margin_ns if code else true.total()
            off_ns = (code.cpu_ns if code else 0) - cpu_ns
            within.append(abs(off_ns) <= margin_ns)
            if function == "f0":
                errors.append(off_ns / true.total())
        assert sum(row.code.cpu_ns for row in found.values()) == true.total()

    assert sum(within) >= 0.94 * len(within)
    spread = (sum(error**2 for error in errors) / len(errors)) ** 0.5
    assert abs(sum(errors) / len(errors)) < 3 * spread / len(errors) ** 0.5 + 0.001


def share_of(found, function):
    return found[function].code.cpu_ns / sum(row.code.cpu_ns for row in found.values())


def test_a_function_whose_samples_are_lost_keeps_its_share(tmp_path):
    schedule = Schedule([("run", name, 2000 * MS) for _ in range(3) for name in ("f0", "f1")])

    found = by_function(analysis_of(built(tmp_path / "t.1.er", schedule, lost={"f0": 0.7})))

    assert share_of(found, "f0") == pytest.approx(0.5, abs=0.02)


@pytest.mark.long
def test_margins_hold_the_truth_where_half_of_the_stacks_of_one_function_could_not_be_read(tmp_path):
    within = []
    for seed in range(PROGRAMS):
        schedule = KINDS["turns"](Random(seed))
        true = schedule.of("run")
        found = by_function(analysis_of(built(tmp_path / f"t{seed}.1.er", schedule, seed=seed, unread={"f0": 0.5})))
        within += [abs(found[name].code.cpu_ns - true[name]) <= found[name].code.margin_ns for name in true]

    assert sum(within) >= 0.95 * len(within)


def own_functions(analysis):
    return {each.site.function: each.code for each in profiled(analysis).by_application_function()}


def loop_of_library(directory, seed, unread):
    """A program that loops over functions of a library for some seconds, then computes itself, and what each used."""
    random = Random(seed)
    build = Build(directory, call_ns=0, inside_ns=0)
    main, loop = ("app.py", 1, "main"), ("app.py", 2, "loop")
    stacks = {
        "read": build.sampled_stack(main, loop, ("/v/lib/python3/site-packages/p.py", 3, "read")),
        "short": build.sampled_stack(main, loop, ("/v/lib/python3/site-packages/p.py", 4, "short")),
        "plain": build.sampled_stack(main, ("app.py", 5, "plain")),
    }
    now, used = 0, {"loop": 0, "plain": 0}
    while now < 4_000 * MS:
        taken = random.randint(5 * MS, 15 * MS)
        now += taken
        what = "plain" if now > 3_000 * MS else random.choice(("read", "short"))
        used["plain" if what == "plain" else "loop"] += taken
        is_unread = what == "short" and random.random() < unread
        stack = NOT_READ if is_unread else stacks[what]
        build.thread_sample(START_NS + now, cpu_ns=now, stack=stack)
    build.thread(end_ns=START_NS + now, end_cpu_ns=now, tid=1, main=1)
    build.ended(now, now)
    return analysis_of(build), used


def test_a_function_has_the_time_of_unreadable_stacks_between_its_samples(tmp_path):
    analysis, used = loop_of_library(tmp_path / "t.1.er", 3, unread=0.6)
    found, sampling = own_functions(analysis), profiled(analysis).sampling

    assert found["loop"].cpu_ns == pytest.approx(used["loop"], rel=0.03)
    assert found["plain"].cpu_ns == pytest.approx(used["plain"], rel=0.01)
    assert found["plain"].unread_ns < 0.03 * used["plain"]
    assert sampling.torn >= sampling.estimated >= 0.9 * sampling.torn > 50


def test_what_an_unreadable_stack_executed_is_not_guessed(tmp_path):
    analysis, _ = loop_of_library(tmp_path / "t.1.er", 3, unread=0.6)
    found = by_function(analysis)

    assert found["stack not readable"].code.samples == profiled(analysis).sampling.torn
    assert found["read"].code.unread_ns > found["stack not readable"].code.cpu_ns * 0.9
    assert found["plain"].code.unread_ns < found["stack not readable"].code.cpu_ns * 0.1
    (parts,) = [{each.what for each in profiled(analysis).parts_of(("loop", "app.py"))}]
    assert parts == {"library code"}


def test_functions_that_take_turns_get_nothing_of_each_others_unreadable_stacks(tmp_path):
    schedule = KINDS["turns"](Random(5))
    read = own_functions(analysis_of(built(tmp_path / "read.1.er", schedule, seed=5, unread={"f0": 0.0})))
    unread = own_functions(analysis_of(built(tmp_path / "unread.1.er", schedule, seed=5, unread={"f0": 1.0})))

    others = [name for name in read if name not in ("f0", "main")]
    assert [unread[name].samples for name in others] == [read[name].samples for name in others]
    assert unread["main"].cpu_ns == pytest.approx(read["f0"].cpu_ns, rel=0.05)


def test_an_unreadable_stack_far_from_others_has_no_estimate(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    stack = build.sampled_stack(("app.py", 1, "main"))
    times = [*range(10, 110, 10), 5000, *range(9000, 9100, 10)]
    for at in times:
        build.thread_sample(START_NS + at * MS, cpu_ns=at * MS, stack=NOT_READ if at == 5000 else stack)
    build.thread(end_ns=START_NS + 9100 * MS, end_cpu_ns=9100 * MS, tid=1, main=1)
    build.ended(9100 * MS, 9100 * MS)

    sampling = profiled(analysis_of(build)).sampling

    assert (sampling.torn, sampling.estimated) == (1, 0)


def test_all_below_the_line_that_pickles_for_another_process_counts_for_it(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    feeds, dumps = ("/usr/lib/multiprocessing/queues.py", 264, "Queue._feed"), "ForkingPickler.dumps"
    pickles = feeds, ("/usr/lib/multiprocessing/reduction.py", 51, dumps)
    stacks = [build.sampled_stack(*pickles, ("/usr/lib/_pickle.so", 0, name)) for name in ("save", "memo", "clear")]
    for number in range(1, 301):
        build.thread_sample(START_NS + number * 10 * MS, cpu_ns=number * 10 * MS, stack=stacks[number % 3])
    build.thread(end_ns=START_NS + 3000 * MS, end_cpu_ns=3000 * MS, tid=1, main=1)
    build.ended(3000 * MS, 3000 * MS)

    assert {name: code.cpu_ns for name, code in own_functions(analysis_of(build)).items()} == {dumps: 3000 * MS}


def test_after_a_gap_the_function_that_is_met_may_have_used_none_of_its_cpu_time(tmp_path):
    """Of many short functions, the sampler always meets one."""
    short = [("run", f"short{number % 40}", MS) for number in range(170)]
    schedule = Schedule([("run", "long", 100 * MS), *short, ("run", "met", 20 * MS), ("run", "long", 130 * MS)])
    lost = {f"short{number}": 1.0 for number in range(40)}
    unseen = built(tmp_path / "t.1.er", schedule, lost=lost)

    found = by_function(analysis_of(unseen))

    assert found["met"].code.cpu_ns > 150 * MS
    assert found["met"].code.margin_ns >= found["met"].code.cpu_ns - 1
    assert margin_of_samples(found["met"].code.margin_ns, found["met"].code.cpu_ns) == "few samples"
    assert found["long"].code.margin_ns < found["long"].code.cpu_ns


def test_a_function_that_computes_for_a_millisecond_in_ten_has_as_much_as_one_that_always_computes(tmp_path):
    random = Random(3)
    now_and_then = [("run", "f0", MS), ("wait", "f0", random.randint(5 * MS, 13 * MS))] * 1000
    schedule = Schedule([*now_and_then, ("run", "f1", 1000 * MS)] * 6)

    found = by_function(analysis_of(built(tmp_path / "t.1.er", schedule)))

    assert share_of(found, "f0") == pytest.approx(0.5, abs=0.03)


def test_threads_are_divided_each_by_its_own_samples(tmp_path):
    busy = Schedule([("run", "parse", 400 * MS), ("wait", "parse", 600 * MS)])
    other = Schedule([("run", "save", 100 * MS), ("wait", "save", 900 * MS)])

    found = by_function(analysis_of(built(tmp_path / "t.1.er", busy, other)))

    assert {name: (row.code.cpu_ns, row.code.wall_ns) for name, row in found.items()} == {
        "parse": (400 * MS, 1000 * MS),
        "save": (100 * MS, 1000 * MS),
    }


def test_time_after_the_last_sample_is_of_no_function(tmp_path):
    early = [("run", "early", 300 * MS), ("call", "early", 100 * MS), ("wait", "early", 200 * MS)]
    late = [("run", "late", 1500 * MS), ("ready", "late", 400 * MS), ("wait", "late", 300 * MS)]

    found = by_function(analysis_of(built(tmp_path / "t.1.er", Schedule([*early, *late]), sampled_ns=600 * MS)))

    assert set(found) == {"early", "not sampled"}
    assert found["early"].code.cpu_ns == pytest.approx(300 * MS, abs=20 * MS)
    assert found["not sampled"].code.cpu_ns == 1800 * MS - found["early"].code.cpu_ns
    assert found["early"].code.unexplained_ns == pytest.approx(200 * MS, abs=30 * MS)
    assert found["not sampled"].code.processor_ns == pytest.approx(400 * MS, abs=30 * MS)


def test_calls_after_the_last_sample_are_not_time_of_the_code(tmp_path):
    turn = [("run", "parse", 40 * MS), ("call", "query", 50 * MS), ("wait in call", "query", 10 * MS)]

    found = by_function(analysis_of(built(tmp_path / "t.1.er", Schedule(turn * 20), sampled_ns=1000 * MS)))

    assert found["parse"].code.cpu_ns == pytest.approx(400 * MS, abs=60 * MS)
    assert found["not sampled"].code.cpu_ns == 800 * MS - found["parse"].code.cpu_ns
    assert sum(row.code.wall_ns for row in found.values()) == 800 * MS


def test_only_the_thread_whose_samples_stopped_has_time_that_is_not_sampled(tmp_path):
    build = built(tmp_path / "t.1.er", Schedule([("run", "parse", 2000 * MS)]))
    put_thread(build, Schedule([("run", "save", 1000 * MS)]), Random(0), thread=2, sampled_ns=400 * MS)

    found = by_function(analysis_of(build))

    assert found["parse"].code.cpu_ns == 2000 * MS
    assert found["not sampled"].code.cpu_ns == pytest.approx(600 * MS, abs=20 * MS)


def test_a_thread_whose_last_samples_are_lost_has_no_time_that_is_not_sampled(tmp_path):
    schedule = Schedule([("run", "parse", 1000 * MS)])

    found = by_function(analysis_of(built(tmp_path / "t.1.er", schedule, sampled_ns=950 * MS)))

    assert set(found) == {"parse"}


def test_waits_are_for_a_processor_or_unexplained(tmp_path):
    schedule = Schedule([("run", "parse", 500 * MS), ("ready", "parse", 200 * MS), ("wait", "parse", 300 * MS)])

    code = by_function(analysis_of(built(tmp_path / "t.1.er", schedule)))["parse"].code

    assert (code.cpu_ns, code.processor_ns, code.unexplained_ns) == (500 * MS, 200 * MS, 300 * MS)


def test_the_wait_for_a_processor_is_where_the_thread_was_found_ready(tmp_path):
    turn = [("run", "parse", 20 * MS), ("call", "query", 20 * MS), ("ready", "save", 20 * MS), ("run", "save", 20 * MS)]

    found = by_function(analysis_of(built(tmp_path / "t.1.er", Schedule(turn * 30))))

    assert found["save"].code.processor_ns == pytest.approx(600 * MS, rel=0.02)
    assert found["parse"].code.processor_ns == 0


def test_what_samples_tell_of_the_wait_for_a_processor_counts_where_nobody_looked_at_the_thread_later(tmp_path):
    build = built(tmp_path / "t.1.er", Schedule([("run", "parse", 50 * MS), ("ready", "parse", 50 * MS)] * 10))
    build.threads[0][0]["run_delay_ns"] = 0

    code = by_function(analysis_of(build))["parse"].code

    assert code.cpu_ns == 500 * MS
    assert code.processor_ns == pytest.approx(500 * MS, rel=0.1)


def test_a_thread_without_samples_waited_for_a_processor_as_long_as_the_kernel_says(tmp_path):
    sampled = Schedule([("run", "f0", 500 * MS)])
    short = Schedule(
        [("run", "f1", MS), ("ready", "f1", 5 * MS), ("call", "f1", 5 * MS), ("wait in call", "f1", 9 * MS)]
    )
    build = built(tmp_path / "t.1.er", sampled)
    put_thread(build, short, Random(0), thread=2, lost=1.0)

    row = by_function(analysis_of(build))["not sampled"]

    assert (row.code.processor_ns, row.code.unexplained_ns) == (5 * MS, 0)


def test_cpu_time_is_divided_by_samples_that_were_ready_if_none_ran(tmp_path):
    turn = [(what, name, ns * MS) for name, ns in (("parse", 30), ("save", 10)) for what in ("run", "ready")]
    build = built(tmp_path / "t.1.er", Schedule(turn * 40), only=READY)

    found = by_function(analysis_of(build))

    assert sum(row.code.cpu_ns for row in found.values()) == 1600 * MS
    assert share_of(found, "parse") == pytest.approx(0.75, abs=0.06)
    assert 0 < found["parse"].code.margin_ns < 0.2 * found["parse"].code.cpu_ns


def test_where_a_thread_loses_its_processor_it_has_used_no_time(tmp_path):
    """Two functions run for 20 ms each; the thread always loses its processor in a third one, which takes no time."""
    turn = [(what, name, 10 * MS) for name in ("parse", "save") for what in ("run", "run", "ready")]
    turn = [(what, "clock" if what == "ready" else name, ns) for what, name, ns in turn]

    found = by_function(analysis_of(built(tmp_path / "t.1.er", Schedule(turn * 40))))

    assert found["clock"].code.cpu_ns == 0
    assert found["clock"].code.processor_ns == pytest.approx(800 * MS, rel=0.05)
    assert share_of(found, "parse") == pytest.approx(0.5, abs=0.04)


def test_a_thread_that_the_sampler_takes_the_processor_of_is_divided_by_all_its_samples(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    stacks = {name: build.sampled_stack(("app.py", 2, name)) for name in ("parse", "save", "rare")}
    for number in range(1, 201):
        name = "rare" if number % 50 == 0 else "parse" if number % 10 < 7 else "save"
        state = RUNS if name == "rare" else READY
        build.thread_sample(START_NS + number * 10 * MS, cpu_ns=number * 10 * MS, state=state, stack=stacks[name])
    build.thread(end_ns=START_NS + 2000 * MS, end_cpu_ns=2000 * MS, tid=1, main=1)
    build.ended(2000 * MS, 2000 * MS)

    found = by_function(analysis_of(build))

    assert {name: round(share_of(found, name), 2) for name in found} == {"parse": 0.68, "save": 0.30, "rare": 0.02}
    assert found["parse"].code.margin_ns < 0.15 * found["parse"].code.cpu_ns


def of_samples(path, samples):
    """The experiment of a thread with such samples, one in 10 ms: the function and the state of each. In all but
    waits it has computed since the one before."""
    build = Build(path, call_ns=0, inside_ns=0)
    stacks = {name: build.sampled_stack(("app.py", 2, name)) for name, _ in samples}
    cpu_ns = 0
    for number, (name, state) in enumerate(samples, 1):
        cpu_ns += 10 * MS if state != WAITS else 0
        build.thread_sample(START_NS + number * 10 * MS, cpu_ns=cpu_ns, state=state, stack=stacks[name])
    build.thread(end_ns=START_NS + len(samples) * 10 * MS, end_cpu_ns=cpu_ns, tid=1, main=1)
    build.ended(len(samples) * 10 * MS, cpu_ns)
    return build


NAPS = [("naps", WAITS)] * 16


@pytest.mark.parametrize(
    "samples",
    [
        [("hash", RUNS)] * 12 + NAPS + [("pure", READY)] * 20,
        [("hash", READY)] * 12 + NAPS + [("pure", RUNS)] * 20,
        [("hash", RUNS)] * 3 + [("hash", READY)] * 9 + NAPS + [("pure", READY)] * 17 + [("pure", RUNS)] * 3,
        [("hash", RUNS)] * 12 + [("pure", READY)] * 20,
        [("hash", READY)] * 12 + [("pure", READY)] * 20,
    ],
    ids=["then ready", "then runs", "some ran", "ready to the end", "none ran"],
)
def test_a_function_that_was_found_ready_alone_has_its_own_cpu_time(samples, tmp_path):
    found = by_function(analysis_of(of_samples(tmp_path / "t.1.er", samples)))

    truth_ns = {"hash": 120 * MS, "pure": 200 * MS}
    off_ns = {name: abs(found[name].code.cpu_ns - ns) for name, ns in truth_ns.items()}
    assert max(off_ns.values()) <= 50 * MS
    assert [name for name, ns in off_ns.items() if ns >= found[name].code.margin_ns] == []


def test_a_function_that_was_found_ready_alone_has_a_margin_though_its_cpu_time_is_elsewhere(tmp_path):
    samples = ([("parse", RUNS)] * 3 + [("clock", READY)]) * 20

    found = by_function(analysis_of(of_samples(tmp_path / "t.1.er", samples)))

    assert found["clock"].code.cpu_ns == 0
    assert 0 < found["clock"].code.margin_ns < 0.2 * found["parse"].code.cpu_ns


def test_a_sample_in_the_recorders_own_code_leaves_its_cpu_time_to_the_next_one(tmp_path):
    """Each of two functions runs for 20 ms; as the call in between begins, the thread loses its processor."""
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    stacks = {name: build.sampled_stack(("app.py", 2, name)) for name in ("parse", "save", "loop")}
    for number in range(1, 241):
        name = ("parse", "loop", "save", "loop")[number % 4]
        state = RECORDS if name == "loop" else RUNS
        delay_ns, cpu_ns = (number + 1) // 2 * 10 * MS, number * 10 * MS
        now_ns = START_NS + delay_ns + cpu_ns
        build.thread_sample(now_ns, cpu_ns=cpu_ns, run_delay_ns=delay_ns, state=state, stack=stacks[name])
    build.thread(end_ns=START_NS + 3600 * MS, end_cpu_ns=2400 * MS, tid=1, main=1)
    build.ended(3600 * MS, 2400 * MS)

    found = by_function(analysis_of(build))

    assert {name: round(share_of(found, name), 1) for name in ("parse", "save")} == {"parse": 0.5, "save": 0.5}
    assert sum(row.code.processor_ns for row in found.values()) == pytest.approx(1200 * MS, rel=0.02)


def test_a_thread_woken_in_a_lock_that_has_no_processor_yet_takes_no_cpu_time_from_code(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    lock = build.intrinsic("threading.Lock.acquire", "sync")
    stacks = {name: build.sampled_stack(("app.py", 2, name)) for name in ("parse", "save", "wait")}
    for number in range(1, 201):  # `save` is always woken late, `parse` never
        name = "parse" if number % 4 == 1 else "save" if number % 4 == 3 else "wait"
        how = {"state": RUNS}
        if name == "wait":
            how = {"state": READY if number % 4 == 2 else WAITS, "call": number, "intrinsic": lock}
        cpu_ns = (number + (name == "wait")) // 2 * 10 * MS
        build.thread_sample(START_NS + number * 10 * MS, cpu_ns=cpu_ns, stack=stacks[name], **how)
    build.thread(end_ns=START_NS + 2000 * MS, end_cpu_ns=1000 * MS, tid=1, main=1)
    build.ended(2000 * MS, 1000 * MS)

    found = by_function(analysis_of(build))

    assert {name: round(share_of(found, name), 1) for name in ("parse", "save")} == {"parse": 0.5, "save": 0.5}


SEGMENTS = st.lists(
    st.tuples(
        st.sampled_from(["run", "wait", "call", "wait in call", "ready"]),
        st.sampled_from(["parse", "save", "main"]),
        st.integers(1, 80 * MS),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(SEGMENTS, min_size=1, max_size=3), st.sampled_from(["function", "site"]), st.integers(0, 9))
def test_rows_always_add_up_to_the_thread_time(tmp_path_factory, threads, by, seed):
    schedules = [Schedule(segments) for segments in threads]
    build = built(tmp_path_factory.mktemp("t") / "t.1.er", *schedules, seed=seed, lost=seed / 10)
    analysis = analysis_of(build)

    rows = with_code(profile(analysis, by), by).rows

    assert sum(row.sums.self_wall_ns for row in rows) == analysis.total.wall_ns
    assert sum(row.sums.self_cpu_ns for row in rows) == analysis.total.cpu_ns
    assert all(row.code.wall_ns == row.sums.self_wall_ns for row in rows if row.code)
    assert all(min(row.code.cpu_ns, row.code.processor_ns, row.code.unexplained_ns) >= 0 for row in rows if row.code)
    if build.sampled:
        assert all(row.code for row in rows if row.kind == "code")


def served(directory):
    """A request in which a function computes and queries, and waits for the interpreter lock; then the same outside."""
    build = Build(directory, call_ns=0, inside_ns=0)
    request, query = build.intrinsic("flask.Flask.wsgi_app", "logic"), build.intrinsic("sqlite3.Cursor.execute", "db")
    lock = build.intrinsic("interpreter lock", "gil")
    view = build.stack(build.site("app.py", 7, "view"))
    batch = build.stack(build.site("app.py", 20, "batch"))
    build.events(
        [
            event(100 * MS, 50 * MS, 0, call=3, parent=1, intrinsic=query, stack=view),
            event(210 * MS, 30 * MS, 0, call=4, parent=1, intrinsic=lock, stack=view),
            event(0, 400 * MS, 320 * MS, call=1, intrinsic=request, stack=0, inner_wall_ns=80 * MS),
            event(500 * MS, 40 * MS, 0, call=5, intrinsic=lock, stack=batch),
            event(610 * MS, 20 * MS, 0, call=7, parent=6, intrinsic=lock, stack=batch),
            event(600 * MS, 60 * MS, 10 * MS, call=6, intrinsic=query, stack=batch, inner_wall_ns=20 * MS),
        ]
    )
    within, outside = (build.sampled_stack(("app.py", line, name)) for line, name in ((7, "view"), (20, "batch")))
    for place in range(1, 40):
        build.thread_sample(START_NS + place * 10 * MS, cpu_ns=place * 8 * MS, stack=within, call=1, intrinsic=request)
    for place in range(1, 60):
        build.thread_sample(START_NS + (400 + place * 10) * MS, cpu_ns=(320 + place * 8) * MS, stack=outside)
    build.thread(end_ns=START_NS + 1000 * MS, end_cpu_ns=800 * MS, tid=1, main=1, recorded=6, made=6)
    build.ended(1000 * MS, 800 * MS)
    return build


def test_code_within_a_request_and_waits_for_the_lock_are_of_their_functions(tmp_path):
    analysis = analysis_of(served(tmp_path / "t.1.er"))

    rows = with_code(profile(analysis, "function"), "function").rows
    code = {row.labels["function"]: row.code for row in rows if row.code}
    calls = {(row.kind, row.labels["function"]): row.sums.self_wall_ns for row in rows if row.is_of_calls}

    assert (code["view"].cpu_ns, code["view"].lock_ns, code["view"].unexplained_ns) == (320 * MS, 30 * MS, 0)
    assert (code["batch"].cpu_ns, code["batch"].lock_ns) == (470 * MS, 40 * MS)
    assert calls["gil", "batch"] == 20 * MS
    assert calls["logic", "?"] == 0
    assert sum(row.sums.self_wall_ns for row in rows) == 1000 * MS


@pytest.mark.parametrize("by", ["function", "site"])
def test_waits_for_the_lock_have_their_calls_wherever_their_time_is(by, tmp_path):
    analysis = analysis_of(served(tmp_path / "t.1.er"))

    rows = with_code(profile(analysis, by), by).rows

    waits = {row.labels["function"]: (row.sums.calls, row.sums.self_wall_ns) for row in rows if row.kind == "gil"}
    assert waits == {"view": (1, 0), "batch": (2, 20 * MS)}
    assert sum(row.sums.calls for row in rows) == sum(row.sums.calls for row in profile(analysis, "intrinsic").rows)


def test_what_cannot_be_read_and_what_was_not_sampled_are_rows_of_their_own(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    build.thread(end_ns=START_NS + 100 * MS, end_cpu_ns=80 * MS, tid=1, main=1)
    build.thread(end_ns=START_NS + 100 * MS, end_cpu_ns=60 * MS, tid=2)
    build.thread_sample(START_NS + 10 * MS, cpu_ns=10 * MS, stack=NOT_READ)
    build.thread_sample(START_NS + 20 * MS, cpu_ns=20 * MS)
    build.thread_sample(START_NS + 20 * MS, cpu_ns=20 * MS, thread=0, tid=9)
    build.ended(100 * MS, 140 * MS)

    analysis = analysis_of(build)
    found = {name: row.code.cpu_ns for name, row in by_function(analysis).items()}

    assert found == {"stack not readable": 40 * MS, "no Python code": 40 * MS, "not sampled": 60 * MS}
    sampling = profiled(analysis).sampling
    assert (sampling.samples, sampling.torn, sampling.unplaced, sampling.threads) == (2, 1, 1, 1)


def test_without_samples_the_program_stays_one_row(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.thread(end_ns=START_NS + 100 * MS, end_cpu_ns=80 * MS, tid=1, main=1)
    build.ended(100 * MS, 80 * MS)

    made = with_code(profile(analysis_of(build), "function"), "function")

    assert [row.kind for row in made.rows] == ["code", "overhead"]


def test_a_child_that_was_not_sampled_keeps_its_row(tmp_path):
    founder = built(tmp_path / "t.1.er", Schedule([("run", "parse", 200 * MS)]))
    founder.write()
    child = Build(tmp_path / "t.1.er" / "_f1.er", pid=900, call_ns=0, inside_ns=0)
    child.thread(end_ns=START_NS + 50 * MS, end_cpu_ns=30 * MS, tid=900)
    child.write()

    rows = with_code(profile(analysis_of(founder), "function"), "function").rows

    assert {(row.kind, row.is_of_code): row.sums.self_wall_ns for row in rows if row.sums.self_wall_ns} == {
        ("code", True): 200 * MS,
        ("code", False): 50 * MS,
    }


def test_hostile_samples_do_no_harm(tmp_path):
    build = built(tmp_path / "t.1.er", Schedule([("run", "parse", 300 * MS)]))
    for values in (
        {"cpu_ns": 2**64 - 1},
        {"cpu_ns": 0, "samples": 0},
        {"cpu_ns": 5, "stack": 2**32 - 1, "thread": 7},
        {"cpu_ns": 2**63, "stack": 9999, "samples": 2**32 - 1, "state": 77},
        {"cpu_ns": 1, "intrinsic": 2**32 - 1, "call": 1},
    ):
        build.thread_sample(START_NS + 310 * MS, **values)

    analysis = analysis_of(build)
    rows = with_code(profile(analysis, "function"), "function").rows

    assert sum(row.sums.self_cpu_ns for row in rows) == analysis.total.cpu_ns == 300 * MS


def test_the_margin_is_known_where_all_samples_are_of_one_function(tmp_path):
    code = by_function(analysis_of(built(tmp_path / "t.1.er", Schedule([("run", "parse", 300 * MS)]))))["parse"].code

    assert code.cpu_ns == 300 * MS
    assert 0 < code.margin_ns < 60 * MS


def became_after(directory, noted_ns):
    """A process that used 10 of 20 ms, and was then sampled as the next program. It noted the exec, or not (0)."""
    build = Build(directory, call_ns=0, inside_ns=0)
    build.thread(main=1, seen_ns=START_NS + 20 * MS)
    build.thread_sample(START_NS + 5 * MS, cpu_ns=2 * MS)
    build.thread_sample(START_NS + 20 * MS, cpu_ns=10 * MS)
    build.thread_sample(START_NS + 50 * MS, cpu_ns=40 * MS)
    if noted_ns:
        build.child(how=EXEC, start_ns=noted_ns)
    return analysis_of(build)


@pytest.mark.parametrize(("noted_ns", "cpu_ns"), [(START_NS + 20 * MS, 10 * MS), (0, 20 * MS)])
def test_what_the_next_program_used_is_not_the_programs_that_became_it(noted_ns, cpu_ns, tmp_path):
    analysis = became_after(tmp_path / "t.1.er", noted_ns)

    found = [row.sums for row in profile(analysis, "intrinsic").rows]
    assert sum(each.self_wall_ns for each in found) == 20 * MS
    assert sum(each.self_cpu_ns for each in found) == cpu_ns


def test_what_the_import_system_does_is_the_importing_line():
    system = Site("<frozen importlib._bootstrap>", 491, "_call_with_frames_removed", False)
    loads = Site("<frozen importlib._bootstrap_external>", 1200, "create_module", False)
    imports = Site("/usr/lib/python3.14/json/scanner.py", 5, "<module>", False)

    assert innermost((system, loads, imports)) == imports
    assert function_of((system, loads, imports)) == ("<module>", imports.file)
    assert innermost((system, loads)) == system
