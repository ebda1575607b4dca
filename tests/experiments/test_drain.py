"""Draining: blocks go from one file to the other, whatever happens in between, while others read."""

import os
import shutil
import signal
import time

import pytest

from interpose.experiments.format.blocks import EventFile
from interpose.experiments.maintenance import drain as drain_module
from interpose.experiments.maintenance.drain import Drain
from interpose.experiments.maintenance.space import give_back
from interpose.experiments.metadata.control import Control
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import OpenFile
from interpose.monitor import Monitor
from tests.build import BLOCK_BYTES, Build, event
from tests.experiments.test_compressed import calls_in_order, recorded


def drain_of(path):
    log = Experiment(str(path)).founder.log
    return Drain(str(path), path.name, log.data["events"], log.data["events.zst"])


def test_full_blocks_are_moved_and_their_space_given_back(tmp_path):
    path = recorded(tmp_path / "t.1.er")
    before, size = calls_in_order(path), (path / "events").stat().st_size
    drain = drain_of(path)

    with drain:
        for waiting in drain.full():
            drain.move(waiting)

    assert calls_in_order(path) == before
    left = (path / "events").stat()
    assert (left.st_size, left.st_blocks * 512) == (size, 2 * BLOCK_BYTES)
    assert (path / "events.zst").stat().st_mode & 0o777 == 0o600
    assert not drain.has_grown()


def test_the_rest_is_moved_when_the_process_has_ended_and_nothing_is_left(tmp_path):
    path = recorded(tmp_path / "t.1.er")
    before, drain = calls_in_order(path), drain_of(path)

    with drain:
        for waiting in [*drain.full(), *drain.rest()]:
            drain.move(waiting, give=False)
        drain.empty()

    assert calls_in_order(path) == before
    assert (path / "events").stat().st_size == 0


def test_a_block_that_is_just_being_written_is_waited_for(tmp_path, monkeypatch):
    path = recorded(tmp_path / "t.1.er")
    before, whole = calls_in_order(path), (path / "events").read_bytes()
    monkeypatch.setattr(time, "sleep", lambda seconds: seconds and (path / "events").write_bytes(whole))

    for missing in (1, BLOCK_BYTES // 2, BLOCK_BYTES - 64):
        os.truncate(path / "events", len(whole) - missing)
        assert calls_in_order(path) == before


def test_a_block_that_is_only_there_in_part_is_left_until_it_is_whole(tmp_path):
    path = recorded(tmp_path / "t.1.er")
    whole = (path / "events").read_bytes()
    os.truncate(path / "events", 2 * BLOCK_BYTES + 64)
    drain = drain_of(path)
    with drain:
        assert [waiting.offset for waiting in drain.full()] == [0, BLOCK_BYTES]

        (path / "events").write_bytes(whole)
        assert [waiting.offset // BLOCK_BYTES for waiting in drain.full()] == [2, 3, 4, 5]


def test_one_that_was_killed_is_gone_on_with_at_every_byte_that_it_may_have_written(tmp_path):
    path = recorded(tmp_path / "t.1.er")
    before, raw = calls_in_order(path), (path / "events").read_bytes()
    drain = drain_of(path)
    with drain:
        for waiting in drain.full():
            drain.move(waiting)
    written = (path / "events.zst").read_bytes()

    for size in range(0, len(written), 7):
        (path / "events").write_bytes(raw)
        (path / "events.zst").write_bytes(written[:size])
        assert calls_in_order(path) == before
        drain = drain_of(path)
        with drain:
            for waiting in drain.full():
                drain.move(waiting)
        assert calls_in_order(path) == before
        assert (path / "events.zst").read_bytes() == written


@pytest.mark.parametrize("steps", range(9))
def test_nothing_is_missed_or_read_twice_while_blocks_are_moved(tmp_path, steps):
    path = recorded(tmp_path / "t.1.er")
    before, _ = calls_in_order(path)
    drain, experiment, found = drain_of(path), Experiment(str(path)), {}
    events = experiment.founder.events

    for number, block in enumerate(events.blocks()):
        for each in events.events(block):
            found.setdefault(each.thread, []).append(each.call)
        if number == steps:
            with drain:
                for waiting in [*drain.full(), *drain.rest()]:
                    drain.move(waiting)
                drain.empty()

    assert found == before
    assert experiment.damages.found == []


def test_the_end_of_the_moving_is_no_damage_to_who_has_read_until_then(tmp_path, monkeypatch):
    path = recorded(tmp_path / "t.1.er")
    (before, _), drain, experiment = calls_in_order(path), drain_of(path), Experiment(str(path))
    note = EventFile._note_what_is_torn

    def finished_meanwhile(self, moved, file):
        with drain:
            for waiting in [*drain.full(), *drain.rest()]:
                drain.move(waiting)
            drain.empty()
        note(self, moved, file)

    monkeypatch.setattr(EventFile, "_note_what_is_torn", finished_meanwhile)
    events = experiment.founder.events
    found = sum(block.head.used for block in events.blocks())

    assert found == sum(len(calls) for calls in before.values())
    assert experiment.damages.found == []


def one_thread(path, blocks, writing=2):
    """An experiment with a thread whose block in front is being written, and the full ones behind it."""
    build = Build(path)
    build.block([event(10 * blocks + n, 1, call=100 * blocks + n) for n in range(writing)], sequence=blocks, state=1)
    for number in range(1, blocks):
        build.block([event(10 * number + n, 1, call=100 * number + n) for n in range(5)], sequence=number)
    build.thread()
    build.write()
    return path


def calls_of(events, blocks):
    return [each.call for block in blocks for each in events.events(block)]


def test_what_was_moved_while_a_hole_was_passed_over_comes_in_its_place(tmp_path, monkeypatch):
    path = one_thread(tmp_path / "t.1.er", 8)
    events, drain = Experiment(str(path)).founder.events, drain_of(path)
    before = calls_of(events, events.blocks())
    next_data = OpenFile.next_data

    def move(count):
        with drain:
            for waiting, _ in zip(drain.full(), range(count), strict=False):
                drain.move(waiting)

    def moved_meanwhile(file, offset):
        move(2)
        return next_data(file, offset)

    blocks = events.blocks()
    found = calls_of(events, [next(blocks)])
    move(3)
    monkeypatch.setattr(OpenFile, "next_data", moved_meanwhile)
    found += calls_of(events, blocks)

    assert found == before == sorted(before)


def grown(path, blocks, used=5):
    """The thread has filled the block that it was writing, and others, since; gives what `events` holds then."""
    written = one_thread(path, blocks, used)
    return (written / "events").read_bytes()


@pytest.mark.parametrize("moved", [False, True])
def test_what_a_block_has_got_since_it_was_read_follows(tmp_path, monkeypatch, moved):
    path, later = one_thread(tmp_path / "t.1.er", 3), grown(tmp_path / "later.1.er", 6)
    events, drain = Experiment(str(path)).founder.events, drain_of(path)
    is_still = EventFile._is_still

    def grows(self, head, data, file, offset):
        answer = is_still(self, head, data, file, offset)
        if offset == 0:
            monkeypatch.setattr(EventFile, "_is_still", is_still)
            (path / "events").write_bytes(later)
            if moved:
                with drain:
                    for waiting in drain.full():
                        drain.move(waiting)
        return answer

    monkeypatch.setattr(EventFile, "_is_still", grows)
    found = calls_of(events, events.blocks())

    assert found == [100 * block + n for block in range(1, 6) for n in range(5)]


def test_a_block_that_is_emptied_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    path, later = one_thread(tmp_path / "t.1.er", 3), grown(tmp_path / "later.1.er", 4)
    events = Experiment(str(path)).founder.events
    is_still = EventFile._is_still

    def emptied(self, head, data, file, offset):
        monkeypatch.setattr(EventFile, "_is_still", is_still)
        (path / "events").write_bytes(later)
        return is_still(self, head, data, file, offset)

    monkeypatch.setattr(EventFile, "_is_still", emptied)

    assert calls_of(events, events.blocks()) == [100 * block + n for block in range(1, 5) for n in range(5)]


def test_a_writer_killed_between_emptying_a_block_and_its_new_number_loses_nothing(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.block([], sequence=2, state=1, thread=1)
    for number in (1, 2):
        build.block([event(10 * number + n, 1, call=10 * number + n) for n in range(5)], sequence=number)
    build.thread()
    events = Experiment(str(build.write())).founder.events

    assert calls_of(events, events.blocks()) == [*range(10, 15), *range(20, 25)]
    assert calls_of(events, [events.block(place) for place, _ in events.heads()]) == [*range(10, 15), *range(20, 25)]


def test_heads_are_all_there_while_blocks_are_moved(tmp_path):
    path = recorded(tmp_path / "t.1.er")
    drain, events = drain_of(path), Experiment(str(path)).founder.events

    heads = events.heads()
    found = [next(heads), next(heads)]
    with drain:
        for waiting in drain.full():
            drain.move(waiting)
    found += heads

    assert sorted(place.sequence for place, _ in found) == list(range(1, 9))
    assert all(len(events.block(place).events) == head.used * 88 for place, head in found)


def test_who_has_a_file_open_for_writing_is_seen(tmp_path):
    path = recorded(tmp_path / "t.1.er")
    drain = drain_of(path)

    with (path / "events").open("rb+"):
        written = drain.is_written()

    assert (written, drain.is_written()) == (True, False)
    assert signal.getsignal(signal.SIGIO) == signal.SIG_DFL


def test_a_hole_is_made_or_the_error_told(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 8192)
    with path.open("rb+") as file:
        give_back(file.fileno(), 4096, 4096)

    assert path.read_bytes() == b"x" * 4096 + bytes(4096)
    with path.open("rb") as file, pytest.raises(OSError):
        give_back(file.fileno(), 0, 4096)


# --- the monitor, over experiments that were built


def ended(tmp_path, name="t.1.er", **options):
    path = tmp_path / name
    build = Build(path, **options)
    for number in range(3):
        build.block([event(number, 5, call=number + 1)])
    build.thread(recorded=3)
    build.ended(10**9, 5)
    build.write()
    return path


def test_the_monitor_compresses_what_ended_processes_left_and_ends(tmp_path):
    founder = ended(tmp_path)
    child = ended(founder, "_f1.er")
    before = [calls_in_order(path) for path in (founder, child)]

    monitor = Monitor(str(founder))
    monitor.look()
    monitor.close()

    assert monitor.is_done
    assert [(path / "events").stat().st_size for path in (founder, child)] == [0, 0]
    assert [calls_in_order(path) for path in (founder, child)] == before


@pytest.mark.parametrize(("since_s", "is_done"), [(0, False), (30, True)])
def test_the_monitor_stays_for_what_the_program_has_just_become(tmp_path, since_s, is_done):
    start_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - since_s * 10**9
    build = Build(tmp_path / "t.1.er", start_ns=start_ns - 1, pid=os.getpid())
    build.child(how=2, pid=os.getpid(), start_ns=start_ns)
    build.ended(1, 1)

    monitor = Monitor(str(build.write()))
    monitor.look()
    found = monitor.is_done
    monitor.close()

    assert found == is_done


def taken(path, blocks, **options):
    """An experiment with blocks that wait for a monitor, which its process counted as it took them."""
    build = Build(path, **options)
    build.heads["threads"] = {"taken_bytes": blocks * BLOCK_BYTES}
    for number in range(blocks):
        build.block([event(number, 5, call=number + 1)])
    build.thread(recorded=blocks)
    build.write()
    return path


def page_of(founder):
    return Control(Experiment(str(founder)).founder)


def test_what_a_process_born_between_two_looks_took_is_given_back_once(tmp_path):
    founder = taken(tmp_path / "t.1.er", 3, pid=os.getpid())
    page_of(founder).write(taken_bytes=3 * BLOCK_BYTES)
    monitor = Monitor(str(founder))
    find, drained = monitor._find, []

    def born():  # after the monitor looked for processes, and before it tells what was given back
        find()
        if not (founder / "_f1.er").exists():
            taken(founder / "_f1.er", 5)
            page_of(founder).write(taken_bytes=8 * BLOCK_BYTES)

    monitor._find = born
    for _ in range(2):
        monitor.look()
        drained.append(page_of(founder).read().drained_bytes)
    monitor.close()

    assert drained == [3 * BLOCK_BYTES, 8 * BLOCK_BYTES]


def test_what_an_earlier_monitor_gave_back_and_did_not_tell_is_counted_once(tmp_path):
    path = recorded(tmp_path / "t.1.er")
    first, second = drain_of(path), None
    with first:
        for waiting in first.full():
            first.move(waiting)
            break

    second = drain_of(path)
    with second:
        given = [second.given_bytes for waiting in second.full() if second.move(waiting) is None]

    assert first.given_bytes == BLOCK_BYTES
    assert given == [BLOCK_BYTES * each for each in range(2, len(given) + 2)]


def test_more_given_back_than_was_taken_is_reported(tmp_path, interpose_here):
    founder = ended(tmp_path)
    page_of(founder).write(taken_bytes=BLOCK_BYTES, drained_bytes=2 * BLOCK_BYTES)

    shown = interpose_here("report", str(founder))

    assert "the pool's figures disagree: 128 KiB returned of 64.0 KiB taken" in shown.stdout


def test_one_monitor_watches_an_experiment(tmp_path):
    founder = ended(tmp_path)
    monitor = Monitor(str(founder))

    with pytest.raises(BlockingIOError):
        Monitor(str(founder))
    monitor.close()
    Monitor(str(founder)).close()


def test_another_experiment_at_the_path_of_a_removed_one_is_left_alone(tmp_path):
    founder = ended(tmp_path)
    monitor = Monitor(str(founder))
    shutil.rmtree(founder)
    before = calls_in_order(ended(tmp_path))
    events = (founder / "events").read_bytes()

    monitor.look()
    monitor.close()

    assert monitor.is_done
    assert (founder / "events").read_bytes() == events
    assert not (founder / "events.zst").exists()
    assert calls_in_order(founder) == before


def test_an_earlier_version_is_left_as_it_is(tmp_path):
    founder = ended(tmp_path, version=2)

    monitor = Monitor(str(founder))
    monitor.look()
    monitor.close()

    assert monitor.is_done
    assert not (founder / "events.zst").exists()


def test_of_a_process_that_nobody_saw_only_what_is_full_is_moved_where_the_kernel_does_not_tell(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(drain_module, "is_local", lambda descriptor: False)
    path = recorded(tmp_path / "t.1.er")
    before, monitor = calls_in_order(path), Monitor(str(path))

    looks = 0
    while not monitor.is_done:
        monitor.look()
        looks += 1
    monitor.close()

    assert looks < 10
    assert (path / "events").stat().st_blocks * 512 == 2 * BLOCK_BYTES
    assert calls_in_order(path) == before


def test_an_experiment_that_is_removed_ends_the_monitor(tmp_path):
    path = recorded(tmp_path / "t.1.er")
    monitor = Monitor(str(path))
    monitor.look()
    for name in os.listdir(path):
        os.unlink(path / name)
    os.rmdir(path)

    monitor.look()
    monitor.close()

    assert monitor.is_done


def drain_all(path):
    """Move everything, in a forked child that is to be killed; gives its number."""
    pid = os.fork()
    if pid == 0:
        try:
            drain = drain_of(path)
            with drain:
                for waiting in [*drain.full(), *drain.rest()]:
                    drain.move(waiting)
        finally:
            os._exit(0)
    return pid


def test_a_process_that_ended_is_known_by_what_it_has_mapped_no_more(tmp_path):
    path = recorded(tmp_path / "t.1.er")
    before, monitor = calls_in_order(path), Monitor(str(path))

    with (path / "events").open("rb+"):
        monitor.look()
        held = (path / "events").stat().st_size
    monitor.look()
    monitor.close()

    assert held == 8 * BLOCK_BYTES
    assert monitor.is_done
    assert (path / "events").stat().st_size == 0
    assert calls_in_order(path) == before


@pytest.mark.slow
def test_killed_at_any_instant_it_leaves_every_event_once(tmp_path):
    for number in range(200):
        path = recorded(tmp_path / f"t{number}.1.er", blocks=40)
        before = calls_in_order(path)
        pid = drain_all(path)
        time.sleep(0.0001 * number)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

        assert calls_in_order(path) == before, number
        again = drain_of(path)
        with again:
            for waiting in [*again.full(), *again.rest()]:
                again.move(waiting)
            again.empty()
        assert calls_in_order(path) == before, number
