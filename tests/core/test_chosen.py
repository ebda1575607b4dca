"""Sampling by transaction, as it is recorded: each is kept or passed over whole, all are counted, and nothing outside
of them is lost."""

import pytest
from chosen import Chosen

from interpose.config import precedence
from interpose.errors import SettingError

COMMON = """
    import asyncio, os, sqlite3, subprocess, sys, threading
    import interpose
    from interpose import transaction
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    def ask(what):
        connection.execute(f"select 1 as {what}")
"""
ONE_IN_FOUR = {"INTERPOSE_TRANSACTIONS": "1/4", "INTERPOSE_SEED": "7"}


MARKED = COMMON + """
    ask("at_first")
    for number in range(200):
        with transaction("outer"):
            ask("first")
            with transaction("inner"):
                ask("second")
            with transaction("outer"):
                ask("third")
            ask("fourth")
        ask("afterwards")
"""


def test_transactions_are_kept_whole_or_passed_over_whole_and_all_are_counted(traced):
    done = traced(MARKED, **ONE_IN_FOUR).ended_well()
    chosen = Chosen(done)
    kept, seen = chosen.counts("outer")

    assert seen == len(chosen.fates) == 200
    assert 30 <= kept <= 70
    inside = {(f"{what}", "outer", True): kept for what in ("first", "second", "third", "fourth")}
    assert chosen.calls == {**inside, ("at_first", "", True): 1, ("afterwards", "", True): 200}
    assert all(thread.adds_up for thread in chosen.process.threads)


def test_the_same_seed_chooses_the_same_and_another_others(traced):
    runs = [traced(MARKED, INTERPOSE_TRANSACTIONS="4", INTERPOSE_SEED=seed) for seed in ("7", "7", "8")]
    fates = [Chosen(done).fates for done in runs]

    assert fates[0] == fates[1] != fates[2]


def test_the_seed_that_was_drawn_is_written_down_and_chooses_the_same_again(traced):
    first = traced(MARKED, INTERPOSE_TRANSACTIONS="1/4")
    seed = first.experiment.founder.log.settings["INTERPOSE_SEED"]
    again = traced(MARKED, INTERPOSE_TRANSACTIONS="1/4", INTERPOSE_SEED=seed)

    assert first.experiment.founder.log.one_in == 4
    assert Chosen(first).fates == Chosen(again).fates


def test_one_in_one_is_all(traced):
    whole, sampled = traced(MARKED), traced(MARKED, INTERPOSE_TRANSACTIONS="1/1")

    assert Chosen(whole).calls == Chosen(sampled).calls
    assert Chosen(whole).fates == Chosen(sampled).fates == [("outer", True)] * 200
    assert sampled.experiment.founder.log.one_in == 0


def test_a_thread_that_is_outside_of_any_loses_nothing_while_others_are_passed_over(traced):
    done = traced(COMMON + """
    inside, done = threading.Event(), threading.Event()
    def other():
        for _ in range(40):
            with transaction("other"):
                ask("in_other")
        inside.wait()
        for _ in range(100):
            ask("outside")
        done.set()
    thread = threading.Thread(target=other)
    thread.start()
    for number in range(40):
        with transaction("main"):
            ask("in_main")
            if number == 39:
                inside.set()
                done.wait()
    thread.join()
    """, INTERPOSE_TRANSACTIONS="1/1000000", INTERPOSE_SEED="1").ended_well()
    chosen = Chosen(done)

    assert chosen.counts("main") == chosen.counts("other") == (0, 40)
    assert chosen.calls == {("outside", "", True): 100}


@pytest.mark.interpreter_lock
def test_a_task_that_is_outside_of_any_loses_nothing_while_others_are_passed_over(traced):
    done = traced(COMMON + """
    @transaction("awaited")
    async def awaited():
        ask("first")
        await asyncio.sleep(0.0001)
        ask("second")
    async def marked():
        with transaction("marked"):
            ask("first")
            await asyncio.sleep(0.0001)
            ask("second")
    async def outside():
        for _ in range(50):
            ask("outside")
            await asyncio.sleep(0)
    async def main():
        await asyncio.gather(outside(), *[each() for _ in range(40) for each in (marked, awaited)], outside())
    asyncio.run(main())
    """, **ONE_IN_FOUR).ended_well()
    chosen = Chosen(done)
    kept, awaited_kept = chosen.counts("marked")[0], chosen.counts("awaited")[0]

    assert chosen.counts("marked")[1] == chosen.counts("awaited")[1] == 40
    assert kept and awaited_kept
    assert chosen.calls == {
        ("outside", "", True): 100,
        **{(what, "marked", True): kept for what in ("first", "second")},
        **{(what, "awaited", True): awaited_kept for what in ("first", "second")},
    }


def test_what_is_started_within_a_transaction_shares_its_fate_outside_of_its_own(traced):
    done = traced(COMMON + """
    CHILD = "import os, sqlite3; sqlite3.connect(':memory:').execute('select 1 as spawned'); assert not" \\
            " [name for name in os.environ if name == 'INTERPOSE_WITHIN']"
    for _ in range(8):
        with transaction("forks"):
            child = os.fork()
            if not child:
                ask("outside")
                for _ in range(20):
                    with transaction("own"):
                        ask("in_own")
                os._exit(0)
            os.waitpid(child, 0)
        with transaction("spawns"):
            subprocess.run([sys.executable, "-c", CHILD], check=True)
    """, INTERPOSE_TRANSACTIONS="1/2", INTERPOSE_SEED="3").ended_well()
    experiment = done.experiment
    founder = Chosen(done)
    children = [Chosen(done, process) for process in experiment.processes if process.lineage]
    forked = [each for each in children if each.process.lineage.startswith("_f")]
    spawned = [each for each in children if each.process.lineage.startswith("_c")]

    for name, found, what in (("forks", forked, "outside"), ("spawns", spawned, "spawned")):
        kept = [kept for each, kept in founder.fates if each == name]
        assert 0 < sum(kept) < len(kept) == len(found) == 8
        assert sum(each.process.log.within == "kept" for each in found) == sum(kept)
        assert sum(each.process.log.within == "passed over" for each in found) == 8 - sum(kept)
        for each in found:
            assert each.calls[what, "", True] == (each.process.log.within == "kept")
    assert all(each.counts("own")[1] == 20 for each in forked)
    assert all(each.calls["in_own", "own", True] == each.counts("own")[0] for each in forked)
    assert len({tuple(each.fates) for each in forked}) > 1  # each child chooses by itself


def test_a_shell_that_was_started_within_leaves_nothing_to_what_is_started_outside(traced):
    done = traced(COMMON + """
    CHILD = "import sqlite3; sqlite3.connect(':memory:').execute('select 1 as spawned')"
    with transaction("shell"):
        os.system("true")
        os.system(f'"{sys.executable}" -c "{CHILD}"')
    subprocess.run([sys.executable, "-c", CHILD], check=True)
    subprocess.run([sys.executable, "-c", CHILD], check=True, env=dict(os.environ))
    """, INTERPOSE_TRANSACTIONS="1/1000000", INTERPOSE_SEED="1").ended_well()
    children = [process for process in done.experiment.processes if process.lineage]

    assert [child.log.within for child in children] == ["passed over", "", ""]
    assert [Chosen(done, child).calls["spawned", "", True] for child in children] == [0, 1, 1]


def test_what_a_child_starts_outside_of_its_own_transactions_shares_the_fate_of_its_own_start(traced):
    done = traced(COMMON + """
    GRANDCHILD = "import sqlite3; sqlite3.connect(':memory:').execute('select 1 as spawned')"
    with transaction("forks"):
        child = os.fork()
        if not child:
            for environment in (None, dict(os.environ)):
                subprocess.run([sys.executable, "-c", GRANDCHILD], check=True, env=environment)
            os._exit(0)
        os.waitpid(child, 0)
    """, INTERPOSE_TRANSACTIONS="1/1000000", INTERPOSE_SEED="1").ended_well()
    processes = done.experiment.processes

    assert [process.log.within for process in processes] == ["", *["passed over"] * 3]
    assert sum(Chosen(done, process).calls.total() for process in processes) == 0


@pytest.mark.interpreter_lock
def test_an_awaited_transaction_inside_of_one_that_is_passed_over_leaves_nothing(traced):
    done = traced(COMMON + """
    @transaction("inner")
    async def inner():
        ask("first")
        await asyncio.sleep(0.0001)
        ask("second")
    @transaction("outer")
    async def outer():
        await inner()
        ask("third")
    async def main():
        await asyncio.gather(*[outer() for _ in range(20)])
        ask("outside")
    asyncio.run(main())
    """, INTERPOSE_TRANSACTIONS="1/1000000", INTERPOSE_SEED="1").ended_well()
    chosen = Chosen(done)

    assert chosen.fates == [("outer", False)] * 20
    assert chosen.calls == {("outside", "", True): 1}
    assert all(thread.adds_up for thread in chosen.process.threads)


def test_requests_are_kept_or_passed_over_and_named_by_what_they_asked_for(traced):
    done = traced(COMMON + """
    import http.client
    from wsgiref.simple_server import WSGIRequestHandler, make_server
    class Quiet(WSGIRequestHandler):
        def log_message(self, *arguments):
            pass
    def application(environ, start_response):
        ask("served")
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"done"]
    server = make_server("127.0.0.1", 0, application, handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    for number in range(80):
        client = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
        client.request("GET", f"/orders/{number % 2}")
        assert client.getresponse().read() == b"done"
        client.close()
    server.shutdown()
    thread.join()
    """, **ONE_IN_FOUR).ended_well()
    chosen = Chosen(done)
    counts = {name: chosen.counts(name) for name in ("GET /orders/0", "GET /orders/1")}

    assert [seen for _, seen in counts.values()] == [40, 40]
    assert all(5 <= kept <= 18 for kept, _ in counts.values())
    assert chosen.calls == {("served", name, True): kept for name, (kept, _) in counts.items()}


def test_what_was_opened_within_a_transaction_that_is_passed_over_is_known_afterwards(traced):
    done = traced(COMMON + """
    import socket
    with transaction("opens"):
        listener = socket.create_server(("127.0.0.1", 0))
        client = socket.create_connection(listener.getsockname())
        there, _ = listener.accept()
    os.write(client.fileno(), b"sent")
    """, INTERPOSE_TRANSACTIONS="1/1000000", INTERPOSE_SEED="1").ended_well()
    founder = done.experiment.founder
    written = done.events("os.write")

    assert [founder.intrinsic(event.intrinsic).kind for event in written] == ["net"]
    assert founder.string(written[0].detail).startswith("127.0.0.1:")


def test_an_error_ends_a_transaction_that_is_passed_over_and_is_told(traced):
    done = traced(COMMON + """
    for _ in range(10):
        try:
            with transaction("fails"):
                with transaction("inner"):
                    raise KeyError("no")
        except KeyError:
            ask("caught")
    """, INTERPOSE_TRANSACTIONS="1/1000000", INTERPOSE_SEED="1")
    founder = done.experiment.founder
    errors = [founder.string(event.error) for event in done.events("interpose.transaction")]

    assert errors == ["KeyError"] * 10
    assert Chosen(done).calls == {("caught", "", True): 10}


def test_a_filter_leaves_transactions_to_choose_from(traced):
    chosen = Chosen(traced(MARKED, INTERPOSE_FILTER="kind=db", **ONE_IN_FOUR))
    kept, seen = chosen.counts("outer")

    assert 30 <= kept <= 70 < seen == 200
    assert chosen.calls["first", "outer", True] == kept


@pytest.mark.parametrize("text", ["0", "1/0", "10%", "1/2/3", "often", "-1", "1/-5"])
def test_what_is_not_one_in_so_many_is_refused(text):
    with pytest.raises(SettingError, match=f"INTERPOSE_TRANSACTIONS={text}: not all or a fraction such as 1/10"):
        precedence.resolve({}, {"INTERPOSE_TRANSACTIONS": text}, {})


@pytest.mark.parametrize("text", ["-1", "seven", "1e3", "18446744073709551616"])
def test_what_is_no_seed_is_refused(text):
    with pytest.raises(SettingError, match=f"INTERPOSE_SEED={text}: not a number"):
        precedence.resolve({}, {"INTERPOSE_SEED": text}, {})


def test_calls_are_sampled_by_time_or_by_transaction():
    both = {"INTERPOSE_TRANSACTIONS": "1/10", "INTERPOSE_INTERVAL": "100us"}

    with pytest.raises(SettingError, match="INTERPOSE_TRANSACTIONS=1/10: calls are sampled already"):
        precedence.resolve({}, both, {})


def test_a_ring_keeps_events_and_consolidation_does_not():
    both = {"INTERPOSE_CONSOLIDATE": "1", "INTERPOSE_RING": "1MiB"}

    with pytest.raises(SettingError, match="INTERPOSE_CONSOLIDATE=1: a ring keeps the newest events"):
        precedence.resolve({}, both, {})
    assert precedence.resolve({}, {"INTERPOSE_CONSOLIDATE": "1", "INTERPOSE_RING": "off"}, {}).consolidate
    assert precedence.resolve({}, {"INTERPOSE_CONSOLIDATE": "0", "INTERPOSE_RING": "1MiB"}, {}).ring_bytes
