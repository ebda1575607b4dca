"""Compressed events: read as one with the others, wherever a block lies, and whatever bytes are in its place."""

import os
import random
import sys

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from interpose.analysis.calls.trace import last, trace
from interpose.analysis.consolidation.consolidate import consolidated
from interpose.analysis.consolidation.plain_consolidator import PlainConsolidator
from interpose.errors import ExperimentError
from interpose.experiments.model.experiment import Experiment
from tests.build import BLOCK_BYTES, START_NS, Build, compressed, event, pack

ROOM = 743


def recorded(directory, moved=(), blocks=6, threads=2):
    """Full blocks of threads that took turns, those of the numbers `moved` in events.zst, and one not full of each."""
    build = Build(directory)
    for number in range(blocks):
        thread = 1 + number % threads
        rows = [
            event(1000 * number + n, 1, thread=thread, call=1 + number // threads * ROOM + n) for n in range(3)
        ]
        build.block(rows)
    for thread in range(1, threads + 1):
        build.block([event(10**6, 5, thread=thread, call=10**6)], state=1)
    build.moved = list(moved)
    build.write()
    return directory


def calls_in_order(path):
    """The calls of each thread in the order in which its events are given; and what was damaged."""
    experiment = Experiment(str(path))
    found = {}
    events = experiment.founder.events
    for block in events.blocks():
        for each in events.events(block):
            found.setdefault(each.thread, []).append(each.call)
    return found, [str(damage) for damage in experiment.damages.found]


@given(st.data())
def test_blocks_are_read_alike_whichever_of_them_are_compressed(tmp_path_factory, data):
    moved = data.draw(st.integers(0, 8))
    plain = recorded(tmp_path_factory.mktemp("a") / "t.1.er")
    mixed = recorded(tmp_path_factory.mktemp("b") / "t.1.er", range(moved))

    assert calls_in_order(mixed) == calls_in_order(plain)
    experiments = [Experiment(str(path)) for path in (plain, mixed)]
    sums, traces, latest = zip(
        *(
            (
                consolidated(each.founder, ("thread", "call"), PlainConsolidator).sums(),
                [row.event for row in trace(each)],
                [row.event for row in last(each, 4)],
            )
            for each in experiments
        ),
        strict=True,
    )
    assert sums[0] == sums[1]
    assert traces[0] == traces[1]
    assert latest[0] == latest[1]


def test_a_block_that_is_in_both_files_is_read_once(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.block([event(0, 5, call=1)])
    build.block([event(10, 5, call=2)])
    build.write()
    (build.directory / "events.zst").write_bytes(compressed(*build.blocks[0]))

    assert calls_in_order(build.directory) == ({1: [1, 2]}, [])
    places = [place for place, _ in Experiment(str(build.directory)).founder.events.heads()]
    assert [(place.sequence, place.compressed) for place in places] == [(1, True), (2, False)]


def test_a_block_is_found_where_it_has_moved_to_since(tmp_path):
    process = Experiment(str(recorded(tmp_path / "t.1.er", [0]))).founder
    places = [place for place, _ in process.events.heads()]

    recorded(tmp_path / "t.1.er", range(8))

    calls = [[each.call for each in process.events.events(process.events.block(place))] for place in places]
    again = Experiment(str(tmp_path / "t.1.er")).founder
    now = [[each.call for each in again.events.events(block)] for block in again.events.blocks()]
    assert sorted(calls) == sorted(now)


def test_a_block_that_is_nowhere_is_none(tmp_path):
    process = Experiment(str(recorded(tmp_path / "t.1.er"))).founder
    place = next(place for place, _ in process.events.heads())

    assert process.events.block(place._replace(sequence=99)) is None


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_file_cut_at_any_byte_gives_its_whole_blocks(tmp_path, step):
    path = recorded(tmp_path / "t.1.er", range(8)) / "events.zst"
    os.truncate(path.parent / "events", 0)
    whole = path.read_bytes()
    ends = [(0, 0)]  # of the frame, and of the zeros after it
    while ends[-1][1] < len(whole):
        begin = ends[-1][1]
        end = begin + 64 + int.from_bytes(whole[begin + 8 : begin + 12], "little")
        ends.append((end, end + -end % 8))

    for size in range(0, len(whole), step):
        path.write_bytes(whole[:size])
        calls, damages = calls_in_order(path.parent)
        blocks = sum(end <= size for end, _ in ends[1:])
        assert sum(map(len, calls.values())) == 3 * min(blocks, 6) + max(blocks - 6, 0)
        assert bool(damages) != any(end <= size <= filled for end, filled in ends)


@given(st.integers(0, 2**16), st.integers(1, 255))
def test_any_byte_may_be_another(tmp_path_factory, place, flipped):
    path = recorded(tmp_path_factory.mktemp("t") / "t.1.er", range(8)) / "events.zst"
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= flipped
    path.write_bytes(data)

    calls, damages = calls_in_order(path.parent)

    assert 20 - 3 <= sum(map(len, calls.values())) <= 20
    assert damages or sum(map(len, calls.values())) == 20


@given(st.binary(max_size=4096), st.booleans())
def test_noise_is_read_over(tmp_path_factory, noise, between):
    path = recorded(tmp_path_factory.mktemp("t") / "t.1.er", range(8)) / "events.zst"
    whole = path.read_bytes()
    path.write_bytes((whole if between else b"") + noise + bytes(-len(noise) % 8) + whole)

    calls, _ = calls_in_order(path.parent)

    assert sum(map(len, calls.values())) == 20


def bomb(bytes_held, **options):
    return zstandard.ZstdCompressor(**options).compress(bytes(bytes_held))


def streamed(data):
    """A frame that does not say how much it holds."""
    compressor = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return compressor.compress(data) + compressor.flush()


RECORDS = b"".join(pack("EVENT", **event(n, 1, call=n)) for n in range(3))


@pytest.mark.parametrize(
    ("frame", "head", "what"),
    [
        (bomb(256 << 20), {}, "a frame that says it holds 268435456 bytes"),
        (streamed(bytes(1 << 20)), {}, "a frame that says it holds 18446744073709551615 bytes"),
        (streamed(RECORDS), {}, "a frame that says it holds 18446744073709551615 bytes"),
        (bomb(240)[:-3], {}, "did not decompress full frame"),
        (b"no frame at all, whatever one expects", {}, "Unknown frame descriptor"),
        (bomb(239), {}, "transform 0 of 239 bytes"),
        (bomb(240), {"transform": 1}, "240 bytes are not 3 arranged records"),
        (bomb(240), {"transform": 7}, "transform 7 of 240 bytes"),
        (bomb(240), {"checksum": 1}, "its checksum is wrong"),
        (bomb(240), {"raw_bytes": 1 << 31}, "no sound block from byte"),
        (bomb(240), {"used": 1 << 31, "raw_bytes": 0}, "no sound block from byte"),
        (bomb(240), {"stored_bytes": 1 << 31}, "no sound block from byte"),
        (bomb(240), {"head_checksum": 1}, "no sound block from byte"),
        (bomb(240), {"magic": 1}, "no sound block from byte"),
    ],
)
def test_a_block_that_lies_is_left_out_with_one_line_and_the_next_is_read(tmp_path, frame, head, what):
    build = Build(tmp_path / "t.1.er")
    for number in range(2):
        build.block([event(10 * number + n, 1, call=1 + 10 * number + n) for n in range(3)])
    build.moved = [0, 1]
    build.write()
    first, second = build.blocks
    path = build.directory / "events.zst"
    path.write_bytes(compressed(*first, frame, **head) + compressed(*second))

    calls, damages = calls_in_order(build.directory)

    assert calls == {1: [11, 12, 13]}
    assert len(damages) == 1
    assert damages[0].startswith("t.1.er/events.zst: ") and what in damages[0] and damages[0].isprintable()


def test_a_hole_of_any_size_is_passed_over_in_bounded_time(tmp_path):
    path = recorded(tmp_path / "t.1.er", range(8)) / "events.zst"
    whole = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(1 << 26)
        file.write(whole)

    calls, damages = calls_in_order(path.parent)

    assert sum(map(len, calls.values())) == 20
    assert damages == [f"t.1.er/events.zst: no sound block from byte {len(whole)} to {1 << 26}"]


def test_a_link_in_its_place_is_not_followed(tmp_path):
    path = recorded(tmp_path / "t.1.er", range(8)) / "events.zst"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")

    calls, damages = calls_in_order(path.parent)

    assert calls == {}
    assert damages == ["t.1.er/events.zst: a link, not followed"]


def test_without_zstandard_one_line_says_what_is_missing(tmp_path, monkeypatch):
    path = recorded(tmp_path / "t.1.er", [0])
    monkeypatch.setitem(sys.modules, "zstandard", None)

    with pytest.raises(ExperimentError, match=r"^t\.1\.er/events\.zst: needs the package zstandard, .*; pip install"):
        calls_in_order(path)


def test_an_experiment_without_compressed_events_needs_no_zstandard(tmp_path, monkeypatch):
    path = recorded(tmp_path / "t.1.er")
    monkeypatch.setitem(sys.modules, "zstandard", None)

    assert sum(map(len, calls_in_order(path)[0].values())) == 20


def test_the_last_events_are_found_by_the_heads_alone(tmp_path, monkeypatch):
    experiment = Experiment(str(recorded(tmp_path / "t.1.er", range(8), blocks=60)))
    read = []
    whole = experiment.founder.events.block
    monkeypatch.setattr(experiment.founder.events, "block", lambda place: read.append(place) or whole(place))

    rows = list(last(experiment, 2))

    assert [row.event.start_ns for row in rows] == [START_NS + 10**6] * 2
    assert len(read) <= 3


def test_sequences_are_a_set():
    from interpose.experiments.format.sequences import Sequences

    chosen = [random.Random(1).randrange(10_000) for _ in range(3000)] + [2**64 - 1]
    kept = Sequences()

    assert [kept.add(each) for each in chosen] == [each not in chosen[:at] for at, each in enumerate(chosen)]
    assert all(each in kept for each in chosen)
    assert BLOCK_BYTES**5 not in kept
