"""The dialogue of a terminal: what is kept of it, what never is, and how it is shown again."""

from __future__ import annotations

import json
import os
import select
import stat
import struct
import subprocess
import sys
import termios
import textwrap
import time
from collections.abc import Callable, Sequence
from fcntl import ioctl
from pathlib import Path

import pytest
from tracing import environment

from interpose.analysis.recording.dialogue import lines_of, spoken
from interpose.cli.main import main
from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment

pytestmark = pytest.mark.interpreter_lock

TIMEOUT_S = 60


class Talked:
    """A program that talked at a terminal: what that showed, and the dialogue that was kept."""

    def __init__(self, directory: Path, screen: bytes, status: int) -> None:
        self.directory = directory
        self.screen = screen
        self.status = status

    @property
    def path(self) -> Path:
        found = names.newest(str(self.directory))
        assert found is not None, self.screen
        return Path(found)

    @property
    def pieces(self) -> list[tuple[str, str]]:
        """What each piece is, and its text; sizes left out."""
        return [(each.what, each.text) for each in spoken(Experiment(str(self.path))) if each.what != "size"]

    @property
    def lines(self) -> list[tuple[str, str]]:
        return [(line.what, line.text) for line in lines_of(spoken(Experiment(str(self.path))))]

    def everything(self) -> bytes:
        """All bytes of all files of the experiment."""
        return b"".join(path.read_bytes() for path in self.path.rglob("*") if path.is_file())


Talk = Callable[..., Talked]
Script = Sequence[tuple[bytes, bytes]]


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    """Run a program at a terminal of its own. When what a step waits for was shown, its answer is typed."""

    def run(source: str, *script: tuple[bytes, bytes], size: tuple[int, int] = (24, 80), **variables: str) -> Talked:
        (tmp_path / "program.py").write_text(textwrap.dedent(source))
        ours, theirs = os.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "program.py"],
            cwd=tmp_path,
            env=environment(**{"INTERPOSE": "1", "INTERPOSE_DIALOGUE": "1", "TERM": "xterm", **variables}),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        screen = converse(ours, script)
        return Talked(tmp_path, screen, process.wait(TIMEOUT_S))

    return run


def converse(terminal: int, script: Script) -> bytes:
    """Type what the script says; gives all that was shown until nobody has the terminal open any more."""
    screen, seen, steps, until_s = b"", 0, list(script), time.monotonic() + TIMEOUT_S
    with open(terminal, "r+b", buffering=0):
        while time.monotonic() < until_s:
            if select.select([terminal], [], [], 0.02)[0]:
                try:
                    screen += os.read(terminal, 65536)
                except OSError:
                    return screen
            elif steps and (place := screen.find(steps[0][0], seen)) >= 0:
                seen = place + len(steps[0][0])
                os.write(terminal, steps.pop(0)[1])
    raise AssertionError(f"{script[-len(steps):] if steps else 'its end'} did not come: {screen!r}")


def test_what_is_shown_and_typed_is_kept_in_its_order(talk):
    talked = talk(
        """
        import os, sys
        name = input("Name: ")
        print("Hello", name)
        sys.stdout.write("more? "); sys.stdout.flush()
        answer = sys.stdin.readline()
        os.write(1, b"raw? ")
        os.write(2, os.read(0, 100).upper())
        """,
        (b"Name: ", b"Ann\n"),
        (b"more? ", b"yes\n"),
        (b"raw? ", b"ok\n"),
    )

    assert talked.status == 0
    assert talked.lines == [
        ("shown", "Name: "),
        ("typed", "Ann"),
        ("shown", "Hello Ann"),
        ("shown", "more? "),
        ("typed", "yes"),
        ("shown", "raw? "),
        ("typed", "ok"),
        ("shown", "OK"),
    ]


def test_the_program_sees_the_terminal_as_without_us(talk):
    source = """
        import sys
        print(input("a? "), sys.stdin.readline().strip(), sys.stdout.isatty())
    """
    script = ((b"a? ", b"1\n"), (b"1\r\n", b"2\n"))

    assert talk(source, *script).screen == talk(source, *script, INTERPOSE="0").screen


def test_with_readline_it_is_the_same(talk):
    talked = talk(
        """
        import readline
        print("got", input("Name: "))
        """,
        (b"Name: ", b"Ann\n"),
    )

    assert talked.lines == [("shown", "Name: "), ("typed", "Ann"), ("shown", "got Ann")]


def test_a_password_is_nowhere_not_even_its_length(talk):
    source = """
        import getpass
        print(len(getpass.getpass("Password: ")))
    """
    short = talk(source, (b"Password: ", b"hunter2\n"))
    kept = short.pieces
    long = talk(source, (b"Password: ", b"correct horse battery\n"))

    assert ("unseen", "") in kept
    assert not [text for what, text in kept if what == "typed"]
    assert b"hunter2" not in short.everything()
    assert [what for what, _ in kept] == [what for what, _ in long.pieces]


@pytest.mark.parametrize(
    "read", ["input()", "sys.stdin.readline()", "os.read(0, 100)", "sys.stdin.buffer.raw.read(100)"]
)
def test_what_is_typed_without_echo_is_not_kept_however_it_is_read(talk, read):
    talked = talk(
        f"""
        import os, sys, termios
        state = termios.tcgetattr(0)
        state[3] &= ~termios.ECHO
        termios.tcsetattr(0, termios.TCSANOW, state)
        print("secret? ", flush=True)
        {read}
        """,
        (b"secret? ", b"hunter2\n"),
    )

    assert talked.status == 0
    assert ("unseen", "") in talked.pieces
    assert b"hunter2" not in talked.everything()


def test_keys_typed_one_by_one_without_echo_do_not_tell_how_many_they_were(talk):
    talked = talk(
        """
        import os, tty
        tty.setcbreak(0)
        os.write(1, b"go")
        for _ in range(5): os.read(0, 1)
        """,
        (b"go", b"abcde"),
    )

    assert [what for what, _ in talked.pieces].count("unseen") == 1


def test_echo_switched_off_while_a_read_waits_hides_what_it_read(talk):
    talked = talk(
        """
        import os, termios, threading, time

        def hide():
            time.sleep(0.2)
            state = termios.tcgetattr(0)
            state[3] &= ~termios.ECHO
            termios.tcsetattr(0, termios.TCSANOW, state)
            os.write(1, b"now")

        threading.Thread(target=hide).start()
        os.read(0, 100)
        """,
        (b"now", b"hunter2\n"),
    )

    assert ("unseen", "") in talked.pieces
    assert b"hunter2" not in talked.everything()


def test_what_is_typed_ahead_of_a_read_without_echo_is_not_kept(talk):
    talked = talk(
        """
        import os, select, sys, termios
        state = termios.tcgetattr(0)
        state[3] &= ~termios.ECHO
        termios.tcsetattr(0, termios.TCSANOW, state)
        print("secret? ", flush=True)
        select.select([0], [], [])
        state[3] |= termios.ECHO
        termios.tcsetattr(0, termios.TCSANOW, state)
        os.read(0, 100)
        input("more? ")
        """,
        (b"secret? ", b"hunter2\n"),
        (b"more? ", b"yes\n"),
    )

    assert talked.status == 0
    assert ("unseen", "") in talked.pieces
    assert ("typed", "yes") in talked.lines
    assert b"hunter2" not in talked.everything()


def test_what_a_program_types_at_a_terminal_that_it_plays_the_user_of_is_no_dialogue(talk):
    talked = talk(
        """
        import os, pty, termios
        user, terminal = pty.openpty()
        state = termios.tcgetattr(terminal)
        state[3] &= ~termios.ECHO
        termios.tcsetattr(terminal, termios.TCSANOW, state)
        os.write(user, b"hunter2\\n")
        os.read(terminal, 100)
        os.write(terminal, b"welcome\\n")
        os.write(1, os.read(user, 100))
        """
    )

    assert talked.status == 0
    assert b"hunter2" not in talked.everything()
    assert [text.strip() for what, text in talked.pieces if what == "shown"] == ["welcome", "welcome"]


def test_what_matches_the_redaction_does_not_reach_the_disk(talk):
    source = """
        print("card 4111-1111-1111-1111 of", input("Card: "))
    """
    variables = {"INTERPOSE_REDACT": "[0-9]{4}(-[0-9]{4}){3}|Ann[a-z]*", "INTERPOSE_ARCHIVE": "off"}
    talked = talk(source, (b"Card: ", b"Annabel 5500-0000-0000-0004\n"), **variables)

    assert talked.lines[1:] == [("typed", "? ?"), ("shown", "card ? of ? ?")]
    kept = talked.everything()
    assert not any(part in kept for part in (b"4111-", b"-1111", b"41111111"))  # times may have any four digits
    assert b"Annabel" not in talked.everything()
    assert b"Annabel" in talked.screen


def test_nothing_is_kept_unless_asked_for(talk):
    talked = talk("print(input('a? '))\n", (b"a? ", b"1\n"), INTERPOSE_DIALOGUE="0")

    assert not (talked.path / "dialogue").exists()


def test_what_goes_to_a_file_or_a_pipe_is_no_dialogue(traced):
    ran = traced("print('hello'); input()\n", INTERPOSE_DIALOGUE="1", timeout_s=20)

    assert not os.path.exists(os.path.join(ran.path, "dialogue"))


def test_the_file_is_its_owners_alone(talk):
    talked = talk("print('hello')\n")

    assert stat.S_IMODE((talked.path / "dialogue").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "variables",
    [
        {"INTERPOSE_KINDS": "db"},
        *(
            {"INTERPOSE_FILTER": text}
            for text in ("kind=db", "kind=-screen", "module=else", "transaction=x", "within=x", "from=9h", "thread=x")
        ),
        {"INTERPOSE_TRANSACTIONS": "1/1000000", "INTERPOSE_SEED": "1"},
    ],
    ids=lambda variables: next(iter(variables.values())),
)
def test_it_is_kept_where_the_calls_themselves_are_not(talk, variables):
    source = """
        import interpose, os, sys
        with interpose.transaction("asks"):
            print(input("a? "))
            os.write(1, b"b? ")
            sys.stdout.write(sys.stdin.readline())
    """
    talked = talk(source, (b"a? ", b"1\n"), (b"b? ", b"2\n"), **variables)
    founder = Experiment(str(talked.path)).founder
    events = [event for block in founder.events.blocks() for event in founder.events.events(block)]
    called = {founder.intrinsic(event.intrinsic).kind for event in events if event.parent}

    assert talked.status == 0
    assert talked.lines == [
        ("shown", "a? "),
        ("typed", "1"),
        ("shown", "1"),
        ("shown", "b? "),
        ("typed", "2"),
        ("shown", "2"),
    ]
    assert "screen" not in called


def test_children_keep_their_own(talk):
    talked = talk(
        """
        import os, subprocess, sys
        print("founder", flush=True)
        if os.fork() == 0:
            print("forked", flush=True)
            os._exit(0)
        os.wait()
        subprocess.run([sys.executable, "-c", "print('started')"])
        print("last")
        """
    )

    experiment = Experiment(str(talked.path))
    by_process = {each.process.lineage: each.text for each in spoken(experiment) if each.text.strip()}
    assert [text for what, text in talked.lines] == ["founder", "forked", "started", "last"]
    assert set(by_process) == {"", "_f1", "_c1"}


def test_the_size_of_the_terminal_is_kept_and_its_changes(talk):
    talked = talk(
        """
        import fcntl, struct, termios
        print("a")
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 132, 0, 0))
        print("b")
        """,
        size=(30, 100),
    )

    sizes = [each.text for each in spoken(Experiment(str(talked.path))) if each.what == "size"]
    assert sizes == ["100x30", "132x50"]


def test_when_it_is_full_what_follows_is_dropped_and_counted(talk, capsys):
    talked = talk("for _ in range(300): print('x' * 10_000)\n", INTERPOSE_DIALOGUE="1MiB")

    code = main(["dialogue", str(talked.path), "--format", "json"])
    told = capsys.readouterr()
    assert code == 0
    assert (talked.path / "dialogue").stat().st_size <= 1 << 20
    assert "pieces of the dialogue not kept: INTERPOSE_DIALOGUE was full" in told.err
    shown = sum(row["what"] == "shown" for row in json.loads(told.out))
    lost = int(told.err.split(": ")[2].split()[0].replace(",", ""))
    assert shown + lost >= 600  # each line is two pieces and its end


def test_long_writes_are_kept_whole(talk):
    talked = talk("import os\nos.write(1, b''.join(b'%07d\\n' % n for n in range(5000)))\n")

    assert "".join(text for _, text in talked.pieces) == "".join(f"{n:07d}\n" for n in range(5000))


@pytest.mark.parametrize("value", ["0.5", "yes", "10KiB", "off"])
def test_a_setting_that_means_nothing_is_told(interpose, value):
    done = interpose("run", "--dialogue", value, "-m", "this")

    assert done.returncode == 2
    assert done.stderr == f"interpose: --dialogue {value}: not 0, 1 or a size of at least 1MiB\n"


def test_a_redaction_that_is_no_expression_is_told(interpose):
    done = interpose("run", "--redact", "a(b", "-m", "this")

    assert done.returncode == 2
    assert done.stderr.startswith("interpose: --redact a(b: ")
    assert done.stderr.count("\n") == 1


def test_what_is_not_to_be_written_is_written_nowhere(traced):
    ran = traced(
        """
        import sqlite3
        open("/tmp/hunter2/none", "w") if 0 else None
        try: open("hunter2.txt")
        except OSError: pass
        sqlite3.connect(":memory:").execute("create table hunter2(a)")
        def hunter2(): __import__("time").sleep(0.001)
        hunter2()
        import interpose
        interpose.sample("after " + "x" * 100 + "hunter2")
        interpose.sample("of hunter2")
        """,
        "hunter2",
        INTERPOSE_REDACT="h[u]nter2",
    )

    everything = b"".join(path.read_bytes() for path in Path(ran.path).rglob("*") if path.is_file())
    assert b"hunter2" not in everything
    assert b"h[u]nter2" not in everything
    assert set(ran.details()) >= {"?.txt", "create table ?(a)"}


@pytest.mark.parametrize(("forbidden", "is_kept"), [({}, True), ({"screen": "interpose.conf:1"}, False)])
def test_what_the_administrator_forbids_of_screens_is_no_dialogue_either(talk, forbidden, is_kept):
    talked = talk(
        f"""
        import os
        from interpose.capture import session
        from interpose.config import precedence
        from interpose.capture.interposed import intrinsics_of
        os.mkdir("test.1.er", 0o700)
        wanted = precedence.resolve({{}}, {{"INTERPOSE": "1", "INTERPOSE_DIALOGUE": "1"}}, {{}})
        wanted.forbidden = {forbidden!r}
        directory = os.path.abspath("test.1.er")
        session.record(wanted, directory, "", directory, intrinsics_of(wanted))
        print("shown", flush=True)
        """,
        INTERPOSE="0",
    )

    assert talked.status == 0
    assert (talked.path / "dialogue").exists() == is_kept


def test_what_curses_shows_is_kept_and_what_is_typed_there_is_not(talk):
    talked = talk(
        """
        import curses

        def show(screen):
            screen.addstr(2, 4, "Name:")
            screen.refresh()
            key = screen.getch()
            screen.addstr(5, 0, "thanks äö")
            screen.addstr(2, 4, "Name! ")
            screen.getch()

        curses.wrapper(show)
        """,
        (b"Name:", b"q"),
        (b"thanks", b"w"),
    )

    text = "".join(text for _, text in talked.pieces)
    assert talked.status == 0
    assert "\x1b[3;1H    Name:\x1b[K" in text
    assert "\x1b[6;1Hthanks äö\x1b[K" in text
    assert text.index("Name:") < text.index("Name!")
    assert text.count("Name") == 2  # a line that stays as it is is kept once
    assert {what for what, _ in talked.pieces} == {"shown"}


def test_curses_writes_the_same_to_the_terminal_where_it_is_kept_and_where_not(talk):
    source = """
        import curses

        def show(screen):
            for line in range(5):
                screen.addstr(line, line, f"line {line}", curses.A_BOLD)
                screen.refresh()
            window = curses.newwin(5, 20, 3, 3)
            window.box()
            window.addstr(1, 1, "window")
            window.noutrefresh()
            screen.move(0, 0)
            screen.noutrefresh()
            curses.doupdate()
            screen.getch()

        curses.wrapper(show)
    """
    script = (b"window", b"q")

    assert talk(source, script).screen == talk(source, script, INTERPOSE="0").screen
