"""Where transactions begin and end, from the outermost calls of a thread alone."""

from types import SimpleNamespace

import pytest

from interpose.analysis.calls.paused import PausedPart, PausedTimes
from interpose.analysis.transactions.tracking import (
    AFRESH,
    ASKS,
    BEGINS,
    BY_DETAIL,
    BY_STACK,
    DROPS,
    ECHO,
    ECHO_WITHIN_NS,
    ENDS,
    EXIT,
    IDLE,
    INIT,
    KEYS,
    MARKED,
    NAMES,
    OTHER,
    READS,
    RELEASES,
    SPAN,
    Details,
    Life,
    Outermost,
    Tracker,
    name_of,
)
from interpose.experiments.model.experiment import Experiment
from tests.build import Build

THREAD = 7
FORM = BY_STACK | 5


def tracker(end_ns=10_000, end_cpu_ns=1000):
    return Tracker({THREAD: Life(1000, 0, end_ns, end_cpu_ns)})


def call(start_ns, wall_ns, bits, start_cpu_ns=0, cpu_ns=0, think_wall_ns=None, stack=5, name=0):
    """A call; the whole of a read is think time unless said otherwise."""
    think_ns = wall_ns if think_wall_ns is None else think_wall_ns
    thought = (think_ns, cpu_ns) if bits & READS else (0, 0)
    return Outermost(start_ns, wall_ns, start_cpu_ns, cpu_ns, bits, *thought, stack, name)


def told(closing):
    """Name, begin, response and think time."""
    return closing.name, closing.start_ns, closing.wall_ns - closing.think_wall_ns, closing.think_wall_ns


def last(tracking):
    ((thread, closing),) = tracking.finish()
    assert thread == THREAD
    return told(closing)


def test_a_transaction_runs_from_the_end_of_a_read_to_the_next_one():
    tracking = tracker()

    first = tracking.step(THREAD, call(2000, 500, READS, start_cpu_ns=100, cpu_ns=10), False)
    second = tracking.step(THREAD, call(4000, 300, READS, start_cpu_ns=700), False)

    assert told(first.before) == (INIT, 1000, 1000, 0)
    assert told(second.before) == (FORM, 2000, 1500, 500)
    assert (second.before.cpu_ns, second.before.think_cpu_ns) == (600, 10)
    assert last(tracking) == (EXIT, 4000, 5700, 300)


def test_a_call_around_a_read_begins_the_transaction_and_its_own_time_is_no_thinking():
    tracking = tracker()

    tracking.step(THREAD, call(2000, 500, READS, think_wall_ns=400), False)

    assert last(tracking) == (EXIT, 2000, 7600, 400)


def test_keys_that_are_only_echoed_are_one_thought():
    tracking = tracker(end_ns=20_000)

    tracking.step(THREAD, call(2000, 500, READS | KEYS), False)
    echo = tracking.step(THREAD, call(2600, 400, READS | KEYS), False)
    after = tracking.step(THREAD, call(9000, 100, READS), True)

    assert told(echo.before) == (ECHO, 2500, 100, 0)
    assert told(after.before) == (FORM, 2000, 6000, 900)


def test_after_a_key_a_program_that_does_more_or_takes_long_answers():
    for is_busy, start_ns in ((True, 2600), (False, 2500 + ECHO_WITHIN_NS)):
        tracking = tracker(end_ns=10**9)
        tracking.step(THREAD, call(2000, 500, READS | KEYS), False)

        step = tracking.step(THREAD, call(start_ns, 400, READS | KEYS), is_busy)

        assert told(step.before) == (FORM, 2000, start_ns - 2500, 500)


def test_a_request_is_its_own_and_between_requests_is_idle():
    tracking = tracker()

    first = tracking.step(THREAD, call(2000, 500, SPAN, name=BY_DETAIL | 1), False)
    second = tracking.step(THREAD, call(4000, 500, SPAN, name=BY_DETAIL | 2), False)

    assert first.is_its_own and second.is_its_own
    assert told(first.before) == (INIT, 1000, 1000, 0)
    assert told(second.before) == (IDLE, 2500, 1500, 0)
    assert last(tracking) == (EXIT, 4500, 5500, 0)


def test_what_is_marked_within_an_answer_names_it():
    tracking = tracker()
    tracking.step(THREAD, call(2000, 500, READS), False)

    step = tracking.step(THREAD, call(3000, 500, SPAN | MARKED, name=BY_DETAIL | 3), False)
    after = tracking.step(THREAD, call(5000, 100, READS), False)

    assert not step.is_its_own and step.before is None
    assert told(after.before) == (BY_DETAIL | 3, 2000, 2500, 500)


def test_a_commit_ends_a_transaction_that_began_with_the_one_before():
    tracking = tracker()

    first = tracking.step(THREAD, call(2000, 500, ENDS), False)
    second = tracking.step(THREAD, call(4000, 500, ENDS), False)

    assert told(first.after) == (FORM, 1000, 1500, 0)
    assert told(second.after) == (FORM, 2500, 2000, 0)
    assert last(tracking) == (EXIT, 4500, 5500, 0)


def test_what_a_commit_ends_began_with_the_first_call_of_the_database_since_the_commit_before():
    tracking = tracker(end_ns=20_000)

    first = tracking.step(THREAD, call(3000, 500, ASKS), False)
    more = tracking.step(THREAD, call(4000, 500, ASKS), False)
    commit = tracking.step(THREAD, call(5000, 500, ASKS | ENDS), False)
    second = tracking.step(THREAD, call(9000, 500, ASKS), False)
    again = tracking.step(THREAD, call(9600, 400, ASKS | ENDS), False)

    assert told(first.before) == (INIT, 1000, 2000, 0)
    assert more == (None, False, None) and commit.before is None
    assert told(commit.after) == (FORM, 3000, 2500, 0)
    assert told(second.before) == (IDLE, 5500, 3500, 0)
    assert told(again.after) == (FORM, 9000, 1000, 0)
    assert last(tracking) == (EXIT, 10_000, 10_000, 0)


def test_a_statement_that_begins_a_transaction_leaves_those_before_it_outside():
    tracking = tracker()

    first = tracking.step(THREAD, call(2000, 500, ASKS), False)
    begin = tracking.step(THREAD, call(4000, 100, ASKS | AFRESH), False)
    commit = tracking.step(THREAD, call(5000, 500, ASKS | ENDS), False)

    assert told(first.before) == (INIT, 1000, 1000, 0)
    assert (told(begin.before), begin.before.times) == ((INIT, 2000, 2000, 0), 0)
    assert told(commit.after) == (FORM, 4000, 1500, 0)


@pytest.mark.parametrize(
    ("meaning", "statements"),
    [
        (AFRESH, ["BEGIN", "begin immediate", "START TRANSACTION READ ONLY", "BEGIN; COMMIT; SELECT 1"]),
        (AFRESH, ["BEGIN pay(1); END;", "BEGIN NOT ATOMIC SELECT 1; END", "BEGIN; SELECT CASE a WHEN 1 THEN 2 END"]),
        (AFRESH | ENDS, ["BEGIN; INSERT INTO t VALUES (1);\nCOMMIT;", "begin immediate; select 1; end;"]),
        (ENDS, ["COMMIT", " commit;", "COMMIT WORK AND CHAIN", "COMMIT /* x */"]),
        (ENDS, ["END", "end transaction;", "END WORK", "insert into t values (1); commit"]),
        (DROPS, ["ROLLBACK", "rollback;", "ROLLBACK WORK", "ABORT", "ROLLBACK AND NO CHAIN"]),
        (RELEASES, ["RELEASE SAVEPOINT", "release savepoint a"]),
        (0, ["", "SAVEPOINT a", "RELEASE a", "ROLLBACK TO a", "ROLLBACK TRANSACTION TO SAVEPOINT a"]),
        (0, ["COMMIT PREPARED 'a'", "ROLLBACK PREPARED 'a'", "PREPARE TRANSACTION 'a'", "SELECT 'COMMIT'"]),
        (0, ["END IF", "commit-topic", "commits"]),
        (0, ["CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; END"]),
    ],
)
def test_statements_that_begin_and_end_transactions_are_told_from_those_with_like_words(meaning, statements):
    details = Details(SimpleNamespace(string=statements.__getitem__))
    statements.insert(0, "COMMIT")  # no call has it: number 0 is no detail

    assert {each: details.role_of(number) for number, each in enumerate(statements) if number} == dict.fromkeys(
        statements[1:], meaning
    )
    assert details.role_of(0) == 0


def test_what_is_rolled_back_is_no_transaction_and_the_next_begins_after_it():
    tracking = tracker()

    tracking.step(THREAD, call(2000, 500, ASKS), False)
    rollback = tracking.step(THREAD, call(3000, 500, ASKS | DROPS), False)
    following = tracking.step(THREAD, call(6000, 100, ASKS), False)
    commit = tracking.step(THREAD, call(7000, 500, ASKS | ENDS), False)

    assert (told(rollback.after), rollback.after.times) == ((INIT, 2000, 1500, 0), 0)
    assert (told(following.before), following.before.times) == ((INIT, 3500, 2500, 0), 0)
    assert told(commit.after) == (FORM, 6000, 1500, 0)


def test_of_calls_of_a_database_that_no_commit_follows_nothing_is_implied():
    never, once = tracker(), tracker()
    never.step(THREAD, call(2000, 500, ASKS), False)
    once.step(THREAD, call(2000, 500, ASKS | ENDS), False)
    once.step(THREAD, call(4000, 500, ASKS), False)

    assert last(never) == (OTHER, 2000, 8000, 0)
    assert last(once) == (EXIT, 4000, 6000, 0)


def test_commits_do_not_end_what_a_read_or_a_request_began():
    for bits in (READS, SPAN):
        tracking = tracker()
        tracking.step(THREAD, call(2000, 500, bits, name=BY_DETAIL | 1), False)

        step = tracking.step(THREAD, call(3000, 500, ENDS), False)

        assert step.after is None


def test_a_transaction_that_a_call_begins_lasts_until_one_that_ends_it():
    tracking = tracker()

    begun = tracking.step(THREAD, call(2000, 500, BEGINS, name=BY_DETAIL | 4), False)
    ended = tracking.step(THREAD, call(4000, 500, ENDS), False)

    assert told(begun.before) == (INIT, 1000, 1000, 0)
    assert told(ended.after) == (BY_DETAIL | 4, 2000, 2500, 0)
    assert last(tracking) == (EXIT, 4500, 5500, 0)


def test_a_thread_without_any_is_one():
    assert last(tracker()) == (OTHER, 1000, 9000, 0)


def test_pauses_are_left_out():
    paused = PausedTimes({THREAD: [PausedPart(3000, 4500, 300)]})
    tracking = Tracker({THREAD: Life(1000, 0, 10_000, 500), THREAD + 1: Life(1000, 0, 10_000, 500)}, paused)

    assert [(closing.wall_ns, closing.cpu_ns) for _, closing in tracking.finish()] == [(7500, 200), (9000, 500)]


PAY, BOOK = BY_DETAIL | 3, BY_DETAIL | 4


def test_what_was_named_lasts_until_another_name_and_until_it_is_cleared():
    tracking = tracker()

    steps = [
        tracking.step(THREAD, call(start_ns, 0, NAMES, name=name), False)
        for start_ns, name in ((2000, PAY), (3000, BOOK), (5000, IDLE), (5500, IDLE), (6000, PAY))
    ]

    assert [told(step.before) if step.before else None for step in steps] == [
        (INIT, 1000, 1000, 0),
        (PAY, 2000, 1000, 0),
        (BOOK, 3000, 2000, 0),
        None,
        (IDLE, 5000, 1000, 0),
    ]
    assert last(tracking) == (PAY, 6000, 4000, 0)


def test_a_commit_does_not_end_what_was_named_and_a_request_of_its_own_interrupts_it():
    tracking = tracker()

    tracking.step(THREAD, call(2000, 0, NAMES, name=PAY), False)
    committed = tracking.step(THREAD, call(2500, 100, ENDS), False)
    served = tracking.step(THREAD, call(3000, 500, SPAN, name=BOOK), False)

    assert (committed.before, committed.after) == (None, None)
    assert told(served.before) == (PAY, 2000, 1000, 0)
    assert last(tracking) == (PAY, 3500, 6500, 0)


def test_a_dialogue_has_the_name_that_was_given_last():
    tracking = tracker()

    tracking.step(THREAD, call(2000, 500, READS), False)
    named = tracking.step(THREAD, call(2500, 0, NAMES, name=PAY), False)
    second = tracking.step(THREAD, call(4000, 300, READS), False)
    third = tracking.step(THREAD, call(6000, 300, READS), False)

    assert named.before is None
    assert told(second.before) == (PAY, 2000, 1500, 500)
    assert told(third.before) == (PAY, 4000, 1700, 300)


def test_what_is_between_two_transactions_is_told_where_the_next_one_only_ends_it():
    tracking = tracker()

    before = tracking.between(THREAD)
    tracking.step(THREAD, call(2000, 500, SPAN, start_cpu_ns=100, cpu_ns=10), False)
    between = tracking.between(THREAD)
    tracking.go_on_between(THREAD, between._replace(start_ns=4000))

    assert before is None
    assert between == (2500, 110, 0)
    assert last(tracking) == (EXIT, 4000, 6000, 0)


@pytest.mark.parametrize("role", [NAMES, READS, BEGINS])
def test_nothing_is_told_of_what_is_between_transactions_in_one_that_is_no_call(role):
    tracking = tracker()

    tracking.step(THREAD, call(2000, 0, role, name=PAY), False)
    tracking.step(THREAD, call(3000, 500, SPAN, name=BOOK), False)

    assert tracking.between(THREAD) is None


@pytest.mark.parametrize(("own", "name"), [(0, "Session.commit"), (1, "pay")])
def test_what_a_task_commits_has_the_name_of_the_programs_function_or_else_of_its_coroutine(tmp_path, own, name):
    build, stack = Build(tmp_path / "t.1.er"), 0
    build.intrinsic("driver.commit", "db", transaction="ends")
    for file, function, is_own in (
        ("/app.py", "<module>", 1),
        ("/lib/asyncio/runners.py", "run", 0),
        ("/lib/asyncio/events.py", "Handle._run", 0),
        *[("/app.py", "pay", 1)] * own,
        ("/lib/orm.py", "Session.commit", 0),
        ("/lib/orm.py", "Engine.commit", 0),
    ):
        stack = build.stack(build.site(file, 1, function, own=is_own), stack)
    process = Experiment(str(build.write())).founder

    assert name_of(process, BY_STACK | stack) == name
