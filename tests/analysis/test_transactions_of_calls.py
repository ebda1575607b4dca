"""Which transaction a call belongs to: by its thread, or by the task that made it."""

from __future__ import annotations

import pytest
from shops import BY_NUMBER, MS

from interpose.analysis.calls.trace import trace
from interpose.analysis.expressions.filters import Filter
from interpose.analysis.expressions.tokens import TOKENS
from interpose.cli.main import main
from interpose.experiments.model.experiment import Experiment
from tests.build import event

pytestmark = pytest.mark.every_python


def kept(shop, text):
    """The details of the calls for which the expression holds."""
    experiment = Experiment(str(shop.directory))
    chosen = Filter(text, experiment)
    rows = [row for row in trace(experiment) if chosen.keeps(row.process, row.event, row.depth, row.state)]
    return [row.process.string(row.event.detail) for row in rows]


def test_calls_of_one_request_are_told_from_those_of_another(shop):
    shop.ask("SELECT 0")
    shop.request("GET /a", lambda inside: shop.ask("SELECT 1", inside=inside))
    shop.request("GET /b", lambda inside: shop.ask("SELECT 2", inside=inside))
    shop.ask("SELECT 3", thread=2)
    shop.survey()

    assert kept(shop, "TRANSACTION == 'GET /a' && KIND == 'db'") == ["SELECT 1"]
    assert sorted(kept(shop, "TRANSACTION =~ '^GET'")) == ["GET /a", "GET /b", "SELECT 1", "SELECT 2"]
    assert kept(shop, "!(TRANSACTION =~ '^GET')") == ["SELECT 0", "SELECT 3"]


def test_where_requests_of_tasks_overlap_each_call_is_of_its_tasks_request(shop):
    served, asked = shop.number_of("wsgi.request", "logic"), shop.number_of("sqlite3.Cursor.execute", "db")
    stack = shop.stack_of(88)

    def put(number, at, wall, intrinsic, detail, task):
        values = {"intrinsic": intrinsic, "detail": shop.string(detail), "call": number, "task": task, "stack": stack}
        shop.rows.append(event(at * MS, wall * MS, thread=1, **values))

    put(2, 1, 1, asked, "SELECT 1", 7)
    put(4, 3, 1, asked, "SELECT 2", 8)
    put(5, 5, 1, asked, "SELECT 3", 7)
    put(6, 7, 1, asked, "SELECT 4", 9)
    put(3, 2, 8, served, "GET /b", 8)
    put(1, 0, 12, served, "GET /a", 7)
    shop.now[1] = 12 * MS
    shop.survey()

    assert kept(shop, "TRANSACTION == 'GET /a'") == ["GET /a", "SELECT 1", "SELECT 3"]
    assert kept(shop, "TRANSACTION == 'GET /b'") == ["GET /b", "SELECT 2"]
    assert kept(shop, "TRANSACTION == ''") == ["SELECT 4"]


@pytest.mark.parametrize("is_serving", [False, True])
def test_a_call_of_a_task_is_of_the_transaction_that_the_task_commits(shop, is_serving):
    asked, commit = shop.number_of("sqlite3.Cursor.execute", "db"), "sqlite3.Connection.commit"
    shop.numbers[commit] = shop.intrinsic(commit, "db", transaction="ends")
    served = shop.number_of("wsgi.request", "logic")

    def put(number, at, wall, intrinsic, detail, task, line=88):
        values = {"intrinsic": intrinsic, "detail": shop.string(detail), "call": number, "task": task}
        shop.rows.append(event(at * MS, wall * MS, thread=1, stack=shop.stack_of(line), **values))

    put(1, 1, 1, asked, "SELECT 1", 7)
    put(2, 2, 2, asked, "SELECT 2", 8)
    put(3, 5, 1, shop.numbers[commit], "commit 7", 7, line=99)
    put(4, 6, 1, asked, "SELECT 3", 7)
    put(5, 7, 1, shop.numbers[commit], "commit 8", 8, line=77)
    if is_serving:
        put(6, 7, 2, served, "GET /a", 9)
    shop.now[1] = 12 * MS
    shop.survey()

    assert kept(shop, "TRANSACTION == 'line_99'") == ["SELECT 1", "commit 7"]
    assert kept(shop, "TRANSACTION == 'line_77'") == ([] if is_serving else ["SELECT 2", "commit 8"])


@pytest.mark.parametrize("token", sorted(TOKENS.keys() - {"LABEL"}))  # LABEL needs one in the experiment
def test_every_token_that_help_lists_can_be_used(shop, token):
    shop.ask(BY_NUMBER)
    shop.survey()

    kept(shop, "'f' IN STACK" if token == "STACK" else f"{token} == {token}")


MARKED = """
    import interpose, sqlite3
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for name in "pay", "ship":
        with interpose.transaction(name):
            connection.execute("select 'x'")
    connection.execute("select 1 + 1")
"""


def test_interpose_events_lists_the_calls_of_one_transaction(traced, capsys):
    done = traced(MARKED)

    assert main(["events", done.path, "--filter", "TRANSACTION == 'ship'", "--format", "csv"]) == 0
    listed = capsys.readouterr().out
    assert listed.count("sqlite3.Connection.execute") == 1
    assert "1 + 1" not in listed
