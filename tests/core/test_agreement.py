"""All reports agree: whatever was recorded, they are about the same calls and the same time."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.groupings import GROUPINGS
from interpose.analysis.calls.profile import profile
from interpose.analysis.calls.structure import structure
from interpose.analysis.consolidation.plain_consolidator import PlainConsolidator
from interpose.analysis.transactions.response_times import transactions
from interpose.experiments.model.experiment import Experiment
from tests.build import START_NS, Build, event

INTRINSICS = (
    ("sqlite3.Cursor.execute", "db", {}),
    ("os.write", "file", {}),
    ("input", "screen", {"terminal": "line"}),
    ("time.sleep", "sleep", {}),
    ("sqlite3.Connection.commit", "db", {"transaction": "ends"}),
    ("flask.Flask.wsgi_app", "logic", {"transaction": "is"}),
)


@st.composite
def calls(draw, begin_ns=0, depth=0, number=None, parent=0):
    """Calls one after the other with calls inside, in the order of their ends: begin, end, number, parent and what."""
    number = number or [0]
    made, now_ns = [], begin_ns
    for _ in range(draw(st.integers(0, 4 if depth == 0 else 2))):
        number[0] += 1
        mine = number[0]
        now_ns += draw(st.integers(0, 300))
        start_ns = now_ns
        inside = []
        if depth < 3:
            inside, now_ns = draw(calls(now_ns + draw(st.integers(0, 50)), depth + 1, number, mine))
        now_ns += draw(st.integers(1, 300))
        what = draw(st.integers(0, len(INTRINSICS) - 1))
        more = draw(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 1), st.integers(0, 5000)))
        made += [*inside, (start_ns, now_ns, mine, parent, what, more)]
    return made, now_ns


def written(directory, threads, per_call_ns):
    """An experiment of a process with these threads, and what a plain sum over its calls says by kind."""
    build = Build(directory, call_ns=per_call_ns, inside_ns=0)
    build.log_events.append('<user uid="1" terminal="/dev/pts/1" streams="0 1 2"/>')
    numbers = [build.intrinsic(name, kind, **more) for name, kind, more in INTRINSICS]
    stacks = [build.stack(build.site("/home/u/shop/orders.py", line, f"f{line}")) for line in (5, 7, 9)]
    details = [0, *(build.string(text) for text in ("GET /orders/7", "select ?", "/tmp/x"))]
    truth: Counter[str] = Counter()
    count = 0
    for thread, (made, end_ns) in enumerate(threads, 1):
        inner: Counter[int] = Counter()
        events = []
        for start_ns, stop_ns, call, parent, what, (detail, stack, failed, moved) in made:
            wall_ns = stop_ns - start_ns
            events.append(
                event(
                    start_ns,
                    wall_ns,
                    wall_ns // 3,
                    call=call,
                    parent=parent,
                    thread=thread,
                    intrinsic=numbers[what],
                    inner_wall_ns=inner[call],
                    detail=details[detail],
                    stack=stacks[stack],
                    error=failed,
                    bytes=moved,
                )
            )
            truth[INTRINSICS[what][1]] += wall_ns - inner[call]
            inner[parent] += wall_ns
        count += len(events)
        build.events(events)
        more = {"tid": thread, "main": thread == 1, "recorded": len(events)}
        build.thread(end_ns=START_NS + end_ns, end_cpu_ns=end_ns // 2, **more)
    build.string("OSError")
    build.ended(max((end_ns for _, end_ns in threads), default=0), 0)
    return Experiment(str(build.write())), truth, count


@pytest.mark.long
@given(st.lists(calls(), min_size=1, max_size=3), st.integers(0, 20))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)
def test_every_report_adds_up_and_they_are_about_the_same(tmp_path_factory, threads, per_call_ns):
    experiment, truth, count = written(tmp_path_factory.mktemp("a") / "t.1.er", threads, per_call_ns)
    whole_ns = sum(end_ns for _, end_ns in threads)

    for by in GROUPINGS:
        made = profile(Analysis(experiment), by)
        plain = profile(Analysis(experiment, consolidator=PlainConsolidator), by)
        assert [(row.labels, row.sums) for row in made.rows] == [(row.labels, row.sums) for row in plain.rows]
        assert sum(row.sums.self_wall_ns for row in made.rows) == made.total.wall_ns == whole_ns
        assert sum(row.sums.self_cpu_ns for row in made.rows) == made.total.cpu_ns
        assert sum(row.sums.calls for row in made.rows) == count
    kinds = {row.kind: row.sums.self_wall_ns for row in profile(Analysis(experiment), "kind").rows if row.is_of_calls}
    assert kinds == {kind: ns for kind, ns in truth.items() if kind in kinds} and set(kinds) == set(truth)
    closing_ns = sum(row.sums.self_wall_ns for row in profile(Analysis(experiment), "kind").rows if not row.is_of_calls)
    called = [each.record.sums for each in structure(Analysis(experiment)) if each.record.is_call]
    assert sum(sums.self_wall_ns for sums in called) + closing_ns == whole_ns
    assert sum(sums.calls for sums in called) == count
    found = transactions(Analysis(experiment)).rows
    assert sum(row.think_ns + row.response_ns for row in found) == whole_ns
    assert sum(row.think_ns + row.thread_ns for row in found) == whole_ns
    for row in found:
        assert sum(share.wall_ns for share in row.split.values()) == row.thread_ns + row.overlap_ns
