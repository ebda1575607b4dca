"""A dialogue that was kept, as it is read, shown and replayed."""

from __future__ import annotations

import json
import struct
from io import StringIO
from pathlib import Path

import pytest

from interpose.analysis.recording.dialogue import lines_of, spoken
from interpose.cli.commands.dialogue import LONGEST_WAIT_S, replay
from interpose.cli.main import main
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.screening import Sieve
from interpose.reports.tables.dialogue import readable
from tests.build import BLOCK_BYTES, START_NS, Build

pytestmark = pytest.mark.any_python

SHOWN, TYPED, UNSEEN, SIZE = 1, 2, 3, 4


# --- reading


def built(path: Path, *pieces: tuple[int, bytes]) -> Build:
    build = Build(path / "t.1.er")
    for place, (what, data) in enumerate(pieces):
        build.piece(what, data, since_ns=place * 1_000_000)
    return build


def test_letters_that_are_cut_between_pieces_are_whole(tmp_path):
    build = built(tmp_path, (SHOWN, "ü".encode()[:1]), (TYPED, b"a"), (SHOWN, "ü".encode()[1:]))

    assert [each.text for each in spoken(Experiment(str(build.write())))] == ["", "a", "ü"]


def test_pieces_of_many_windows_are_read(tmp_path):
    build = built(tmp_path, *[(SHOWN, b"%05d" % number + b"x" * 995) for number in range(300)])
    path = build.write()

    assert (path / "dialogue").stat().st_size > 3 * BLOCK_BYTES
    assert [each.text[:5] for each in spoken(Experiment(str(path)))] == [f"{number:05d}" for number in range(300)]


def test_a_file_that_is_cut_is_read_as_far_as_it_goes(tmp_path):
    path = built(tmp_path, (SHOWN, b"first"), (SHOWN, b"second")).write()
    whole = (path / "dialogue").read_bytes().rstrip(b"\0")

    for end in range(len(whole)):
        (path / "dialogue").write_bytes(whole[:end])
        experiment = Experiment(str(path))
        assert [each.text for each in spoken(experiment)] in ([], ["first"], ["first", "second"])


def test_lines_are_put_together_until_somebody_else_speaks(tmp_path):
    pieces = [(SHOWN, b"a"), (SHOWN, b"b\nc"), (TYPED, b"d\n"), (SHOWN, b"e"), (UNSEEN, b""), (SIZE, b"\1\0\2\0")]
    experiment = Experiment(str(built(tmp_path, *pieces).write()))

    found = [(line.what, line.text, line.time_ns - START_NS) for line in lines_of(spoken(experiment))]

    assert found == [
        ("shown", "ab", 0),
        ("shown", "c", 1_000_000),
        ("typed", "d", 2_000_000),
        ("shown", "e", 3_000_000),
        ("unseen", "", 4_000_000),
    ]


def test_as_text_nothing_reaches_the_terminal_that_it_would_act_upon(tmp_path, capsys):
    hostile = b"\x1b[31mred\x1b[0m \x1b]52;c;eA==\x07\x9b6n\x1b[6n bell\x07 \xe2\x80\xae end\n"
    path = built(tmp_path, (SHOWN, hostile), (TYPED, b"\x03\n")).write()

    code = main(["dialogue", str(path)])

    told = capsys.readouterr().out
    assert code == 0
    assert "red" in told
    assert all(line.isprintable() for line in told.splitlines())


def test_an_asciicast_is_a_head_and_events_that_a_player_understands(tmp_path, capsys):
    pieces = [(SIZE, struct.pack("<HH", 30, 100)), (SHOWN, b"Name: "), (TYPED, b"Ann\n"), (SHOWN, b"\x1b[1mHi\n")]
    path = built(tmp_path, *pieces).write()

    main(["dialogue", str(path), "--format", "asciicast"])

    told = capsys.readouterr().out
    head, *events = [json.loads(line) for line in told.splitlines()]
    assert told.isascii()
    assert (head["version"], head["width"], head["height"]) == (2, 100, 30)
    assert events == [
        [0.0, "r", "100x30"],
        [0.001, "o", "Name: "],
        [0.002, "i", "Ann\r"],
        [0.002, "o", "Ann\r\n"],
        [0.003, "o", "\x1b[1mHi\r\n"],
    ]


def test_as_json_each_piece_is_as_it_was(tmp_path, capsys):
    path = built(tmp_path, (SHOWN, b"a\x1b[1m\n"), (UNSEEN, b"")).write()

    main(["dialogue", str(path), "--format", "json"])

    rows = json.loads(capsys.readouterr().out)
    assert [(row["since_ns"], row["what"], row["text"]) for row in rows] == [
        (0, "shown", "a\x1b[1m\n"),
        (1_000_000, "unseen", ""),
    ]


def test_a_replay_waits_as_long_as_it_took_divided_by_the_speed(tmp_path):
    build = Build(tmp_path / "t.1.er")
    for since_s, data in ((0, b"a"), (2, b"b"), (3600, b"c\n")):
        build.piece(SHOWN, data, since_ns=since_s * 10**9)
    waits: list[float] = []
    out = StringIO()

    replay(spoken(Experiment(str(build.write()))), out, 4.0, waits.append)

    assert out.getvalue() == "abc\r\n"
    assert waits == [0.5, LONGEST_WAIT_S / 4]


@pytest.mark.parametrize(
    ("sent", "passed"),
    [
        ("plain ü\r\n\t", "plain ü\r\n\t"),
        ("\x1b[1;31mred\x1b[m\x1b[2J\x1b[3;4H\x1b[?25l", "\x1b[1;31mred\x1b[m\x1b[2J\x1b[3;4H\x1b[?25l"),
        ("\x1b[?1049h\x1b(0q\x1b(B\x1b7\x1b8", "\x1b[?1049h\x1b(0q\x1b(B\x1b7\x1b8"),
        ("\x1b]0;title\x07", "]0;title"),
        ("\x1b]52;c;eA==\x1b\\", "]52;c;eA==\\"),
        ("\x1bP+q544e\x1b\\", "P+q544e\\"),
        ("\x1b[6n\x1b[c\x1b[>c\x1b[21t\x1b[?1000h\x1b[!p\x1b[5i\x1bc", "c"),
        ("\x1b[3T\x1b[1;1;1;1;24T", "\x1b[3T"),
        ("\x9b6n\x07\x00\x7f", "6n"),
        ("\x1b[?25;1000h", ""),
    ],
)
def test_a_replay_sends_only_what_is_harmless(sent, passed):
    whole = Sieve().pass_on(sent)
    sieve = Sieve()
    one_by_one = "".join(sieve.pass_on(letter) for letter in sent)

    assert whole == passed
    assert one_by_one == passed


def test_after_a_replay_the_terminal_is_as_before(tmp_path):
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    states = "\x1b(0\x1b=\x1b[?1h\x1b[?7l\x1b[4h\x1b[20h"

    replay(spoken(Experiment(str(built(tmp_path, (SHOWN, states.encode())).write()))), out, 1.0, lambda _: None)

    before, after = out.getvalue().split(states)
    assert before == ""
    assert all(undone in after for undone in ("\x1b(B", "\x1b>", "\x1b[?1l", "\x1b[?7h", "\x1b[4;20l"))


def test_readable_text_has_a_gap_where_the_cursor_moved():
    assert readable("\x1b[2J\x1b[1;1Hname\x1b[5;1H\x1b[7mvalue\x1b[m\r") == "    name  value"


def test_where_no_dialogue_was_kept_that_is_told(tmp_path, capsys):
    path = Build(tmp_path / "t.1.er").write()

    code = main(["dialogue", str(path)])

    assert code == 2
    assert capsys.readouterr().err == (
        "interpose: t.1.er: no dialogue was kept (record with INTERPOSE_DIALOGUE=1, at a terminal)\n"
    )


@pytest.mark.parametrize("words", [["--speed", "2"], ["--replay", "--format", "json"], ["--replay", "-o", "x"]])
def test_options_that_do_not_go_together_are_told(tmp_path, capsys, words):
    path = built(tmp_path, (SHOWN, b"a")).write()

    assert main(["dialogue", str(path), *words]) == 2
    assert capsys.readouterr().err.startswith("interpose: --")
