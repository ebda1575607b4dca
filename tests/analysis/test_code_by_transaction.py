"""CPU time by function within transactions: samples are of the transaction that their thread was in at that time."""

import json

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.profile.by_transaction import code_by_transaction
from interpose.analysis.transactions.response_times import transactions
from interpose.cli.main import main
from interpose.experiments.model.experiment import Experiment
from tests.build import START_NS, Build, event
from tests.schedules import MS


def served(directory, requests=((0, "GET /slow"), (400, "GET /fast"), (600, "GET /slow")), wall=200, sampled_ms=1000):
    """Requests that compute for all of their time, those of /slow in `render`, those of /fast in `query` for half of
    it; and what lies between them, in `accept`. Samples end after `sampled_ms`."""
    build = Build(directory, call_ns=0, inside_ns=0)
    request = build.intrinsic("flask.Flask.wsgi_app", "logic", transaction="is")
    names = ("render", "query", "accept")
    stacks = {name: build.sampled_stack(("app.py", line, name)) for line, name in enumerate(names, 3)}
    events = []
    for call, (start, name) in enumerate(requests, 1):
        more = {"detail": build.string(name), "start_cpu_ns": start * MS}
        events.append(event(start * MS, wall * MS, wall * MS, call=call, intrinsic=request, **more))
    build.block(sorted(events, key=lambda each: each["start_ns"] + each["wall_ns"]))
    for now in range(5, sampled_ms, 10):
        within = [name for start, name in requests if start <= now < start + wall]
        name = "accept" if not within else "render" if within[0] == "GET /slow" or now % 20 == 5 else "query"
        inside = {"call": 1, "intrinsic": request} if within else {}
        build.thread_sample(START_NS + now * MS, cpu_ns=now * MS, stack=stacks[name], **inside)
    calls = {"recorded": len(requests), "made": len(requests)}
    build.thread(end_ns=START_NS + 1000 * MS, end_cpu_ns=1000 * MS, tid=1, main=1, **calls)
    build.ended(1000 * MS, 1000 * MS)
    return build


def found_in(build):
    analysis = Analysis(Experiment(str(build.write())))
    made = transactions(analysis)
    rows = code_by_transaction(analysis, made)
    return made, {(row.transaction, row.function.site.function): row.function.code.cpu_ns // MS for row in rows}


def test_the_functions_of_each_transaction_have_its_cpu_time(tmp_path):
    made, found = found_in(served(tmp_path / "t.1.er"))

    of_name = {row.name: row.split["logic"].cpu_ns // MS for row in made.rows}
    assert found["GET /slow", "render"] == of_name["GET /slow"] == 400
    assert of_name["GET /fast"] == 200
    assert found["GET /fast", "render"] + found["GET /fast", "query"] in (199, 200)
    assert found["GET /fast", "query"] == pytest.approx(100, abs=1)
    assert not any(function == "accept" for name, function in found if name.startswith("GET"))


def test_what_is_between_transactions_is_a_row_too(tmp_path):
    _, found = found_in(served(tmp_path / "t.1.er"))

    assert sum(ms for (name, function), ms in found.items() if function == "accept") in (399, 400)


def test_a_transaction_after_the_last_sample_has_no_function(tmp_path):
    _, found = found_in(served(tmp_path / "t.1.er", sampled_ms=500))

    assert found["GET /slow", "render"] == pytest.approx(200, abs=10)
    assert found["GET /slow", "not sampled"] == pytest.approx(200, abs=10)
    assert found["GET /fast", "not sampled"] == pytest.approx(100, abs=10)


def test_samples_in_transactions_that_overlap_are_of_none(tmp_path):
    made, found = found_in(served(tmp_path / "t.1.er", requests=((0, "GET /slow"), (100, "GET /fast")), wall=300))

    assert set(found) >= {("GET /slow", "render")}
    for row in made.rows:
        in_functions = sum(ms for (name, _), ms in found.items() if name == row.name)
        assert in_functions in (0, *(row.split["logic"].cpu_ns // MS - less for less in range(3)))


def test_samples_in_overlapping_transactions_of_tasks_are_of_the_task_whose_call_was_in_progress(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    mark = build.intrinsic("interpose.transaction", "logic", transaction="is")
    stacks = {name: build.sampled_stack(("app.py", line, name)) for line, name in enumerate(("pay", "ship"), 3)}
    jobs = {1: ("pay", 300), 2: ("ship", 700)}
    build.block(
        [
            event(
                0, 1000 * MS, cpu_ns * MS, inner_wall_ns=(1000 - cpu_ns) * MS, call=task, task=task,
                intrinsic=mark, detail=build.string(name),
            )
            for task, (name, cpu_ns) in jobs.items()
        ]
    )  # fmt: skip
    for number, now in enumerate(range(5, 1000, 10)):
        task = 1 if number % 10 < 3 else 2
        inside = {"call": task, "intrinsic": mark, "stack": stacks[jobs[task][0]]}
        build.thread_sample(START_NS + now * MS, cpu_ns=now * MS, **inside)
    build.thread(end_ns=START_NS + 1000 * MS, end_cpu_ns=1000 * MS, tid=1, main=1, recorded=2, made=2)
    build.ended(1000 * MS, 1000 * MS)

    _, found = found_in(build)

    assert found == {("pay", "pay"): 300, ("ship", "ship"): 700}


def test_the_command_lists_them(tmp_path, capsys):
    path = str(served(tmp_path / "t.1.er").write())

    assert main(["transactions", path, "--by", "function", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert main(["transactions", path, "--by", "function"]) == 0
    text = capsys.readouterr().out

    assert list(rows[0]) == ["transaction", "function", "file", "line", "samples", "self_cpu_ns", "margin_ns"]
    assert (rows[0]["transaction"], rows[0]["function"], rows[0]["line"]) == ("GET /slow", "render", 3)
    assert "app.py:3" in text


def test_without_samples_the_command_says_what_to_do(tmp_path, capsys):
    build = served(tmp_path / "t.1.er")
    build.sampled = []

    assert main(["transactions", str(build.write()), "--by", "function"]) == 2
    assert "no Python code was sampled" in capsys.readouterr().err
