"""`interpose view` where something is odd: hostile names, damage, nothing to show, programs that run or were killed."""

import contextlib
import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest
from tracing import environment, write_program

from interpose.cli.main import main
from tests.build import SECOND, Build, event
from tests.view.walking import opened

pytest.importorskip("textual", reason="textual is not installed: pip install 'interpose[tui]'")
pytestmark = [pytest.mark.packages, pytest.mark.any_python]

MARKUP = "[red]a[@click=app.quit]b[reverse]\u202ec"
HOSTILE = f"{MARKUP}\x1b]0;owned\x07\x1b[31m\n\t\r\x9bd"
SIZE = (24, 90)


def hostile(directory):
    """An experiment in which every name is `HOSTILE`."""
    built = Build(directory / "test.1.er", arguments=[MARKUP], cwd="/home/u")
    built.intrinsic(MARKUP, "file")
    built.thread(name=built.string(HOSTILE))
    site = built.site(f"/home/u/{HOSTILE}.py", 3, HOSTILE)
    detail = built.string(HOSTILE)
    built.intrinsic("transaction", "logic", transaction="span")
    stack = built.stack(site)
    built.events([event(n * 1000, 500, 100, call=n + 1, detail=detail, stack=stack) for n in range(20)])
    sampled = built.sampled_stack((f"/home/u/{HOSTILE}.py", 3, HOSTILE))
    built.thread_sample(5_000_000, cpu_ns=4_000_000, stack=sampled)
    built.ended(SECOND, SECOND // 100)
    return built.write()


@pytest.mark.long
async def test_names_are_data_in_every_tab(tmp_path):
    async with opened(hostile(tmp_path), size=(200, 30)) as walk:
        for tab in "12345":
            await walk.press(tab)
            screen = walk.screen()
            assert all(line.isprintable() for line in screen)
            assert all(line.isprintable() for line in [*walk.lines(), walk.app.pane.told])
            assert "[red]a[@click=app.quit]b[reverse]\\u202ec" in screen[0]
            if tab in "345":
                assert any("[red]a[@click=app.quit]b[reverse]\\u202ec\\x1b]0;owned\\x07" in line for line in screen[4:])
        await walk.press("1", "b", "down", "enter", "enter", "enter")
        assert walk.app.pane.NAME == "source"
        assert walk.app.is_running


@pytest.mark.long
def test_no_name_reaches_the_terminal_as_a_command(tmp_path):
    with in_terminal("view", str(hostile(tmp_path)), directory=tmp_path) as terminal:
        terminal.read_until("by kind")
        for key, what in [("3", "calls 1 to"), ("4", "CPU time"), ("5", "not in this source")]:
            terminal.write(key)
            terminal.read_until(what)
        terminal.write("q")
        assert terminal.wait() == 0
        assert b"]0;owned\x07" not in terminal.output.replace(b"\\x1b]0;owned", b"")
        assert "\u202e".encode() not in terminal.output


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, words, directory, variables, size):
        self.output = b""
        self._at = 0
        own, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        variables = {"TERM": "xterm-256color", "XDG_STATE_HOME": str(directory / "state"), **variables}
        self._descriptor = own
        self.program = subprocess.Popen(
            [sys.executable, "-m", "interpose", *words],
            cwd=directory,
            env=environment(**variables),
            stdin=its,
            stdout=its,
            stderr=its,
            start_new_session=True,
        )
        os.close(its)

    def read_until(self, text):
        """Read until `text` was written, after what was read before."""
        end = time.monotonic() + 120
        while text.encode() not in plain(self.output[self._at :]):
            assert time.monotonic() < end, plain(self.output[self._at :]).decode(errors="replace")[-2000:]
            self._read()
        self._at = len(self.output)

    def _read(self):
        if select.select([self._descriptor], [], [], 0.2)[0]:
            with contextlib.suppress(OSError):  # it has ended
                self.output += os.read(self._descriptor, 65536)

    def write(self, keys):
        """Press keys."""
        os.write(self._descriptor, keys.encode())

    def wait(self):
        """Wait for the end; gives the exit code."""
        end = time.monotonic() + 120
        while self.program.poll() is None and time.monotonic() < end:
            self._read()
        self._read()
        return self.program.returncode

    def close(self):
        """End it, if it runs."""
        self.program.kill()
        self.program.wait()
        os.close(self._descriptor)


def plain(output):
    """What a terminal was sent, without its commands."""
    return re.sub(rb"\x1b\[[0-?]*[ -/]*[@-~]", b"", output)


@contextlib.contextmanager
def in_terminal(*words, directory, size=SIZE, **variables):
    terminal = Terminal(words, directory, variables, size)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.fixture
def small(tmp_path):
    built = Build(tmp_path / "test.1.er")
    built.intrinsic("os.stat", "file")
    built.thread()
    built.events([event(n * 1000, 500, 100, call=n + 1) for n in range(5)])
    built.ended(SECOND, SECOND // 100)
    return built.write()


@pytest.mark.long
@pytest.mark.parametrize("size", [(24, 90), (12, 40)])
def test_it_runs_in_a_terminal_and_leaves_it_as_it_was(small, tmp_path, size):
    with in_terminal("view", "test.1.er", directory=tmp_path, size=size) as terminal:
        terminal.read_until("by kind")
        terminal.write("3")
        terminal.read_until("calls 1 to 5")
        terminal.write("q")
        assert terminal.wait() == 0
        modes = re.findall(rb"\x1b\[\?(\d+)([hl])", terminal.output)
        assert dict(modes)[b"1049"] == b"l"  # the last of each
        assert dict(modes)[b"25"] == b"h"
        assert dict(modes)[b"1000"] == b"l"
        assert b"Traceback" not in terminal.output


def test_control_c_ends_it(small, tmp_path):
    with in_terminal("view", "test.1.er", directory=tmp_path) as terminal:
        terminal.read_until("by kind")
        terminal.write("\x03")
        assert terminal.wait() == 0


def test_a_signal_that_ends_it_leaves_the_experiment_as_it_was(small, tmp_path):
    before = {each.name: each.read_bytes() for each in small.iterdir() if each.is_file()}
    with in_terminal("view", "test.1.er", directory=tmp_path) as terminal:
        terminal.read_until("by kind")
        terminal.program.send_signal(signal.SIGKILL)
        terminal.wait()

    assert {each.name: each.read_bytes() for each in small.iterdir() if each.is_file()} == before


def failing(capsys, *words):
    code = main([*words])
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    return code, told[0]


def test_without_textual_a_line_says_how_to_install_it(small, place, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "textual", None)
    for name in [name for name in sys.modules if name.startswith(("textual.", "interpose.view"))]:
        monkeypatch.delitem(sys.modules, name)

    code, line = failing(capsys, "view", str(small))

    assert code == 2
    assert line == "interpose: view needs the package textual: pip install 'interpose[tui]'"


def test_without_a_terminal_a_line_says_so(small, place, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    assert failing(capsys, "view", str(small)) == (
        2,
        "interpose: view needs a terminal; interpose report writes to files and pipes",
    )


def test_an_experiment_that_is_not_there_is_told_in_a_line(tmp_path):
    with in_terminal("view", "none.er", directory=tmp_path) as terminal:
        assert terminal.wait() == 1
        assert plain(terminal.output).split(b"\r\n")[0] == b"interpose: none.er: no such experiment"


@pytest.mark.long
def test_a_damaged_experiment_shows_what_can_be_read(small, tmp_path):
    with open(small / "events", "r+b") as file:
        file.seek(0)
        file.write(b"\xff" * 64)
    with in_terminal("view", "test.1.er", directory=tmp_path) as terminal:
        terminal.read_until("damaged: test.1.er/events")
        for key in "2345":
            terminal.write(key)
        terminal.read_until("no recorded call came from a line of code")
        terminal.write("q")
        assert terminal.wait() == 3
        assert b"Traceback" not in terminal.output


@pytest.mark.long
async def test_an_experiment_without_calls_has_tabs_without_rows(tmp_path):
    built = Build(tmp_path / "test.1.er")
    built.thread()
    path = built.write()

    async with opened(path) as walk:
        for tab in "12345":
            await walk.press(tab, "down", "up", "pagedown", "end", "home", "enter")
            assert walk.screen()
        await walk.press("4", "c", "down", "right", "left", "up")
        await walk.press("3")
        assert any("no calls" in line for line in walk.screen())


@pytest.mark.long
async def test_texts_that_are_nowhere_are_not_found(small):
    async with opened(small) as walk:
        for tab in "1234":
            await walk.press(tab, "slash")
            await walk.write("nowhere")
            await walk.press("n", "N")
        assert walk.app.pane.NAME == "flame"


@pytest.mark.long
async def test_another_size_lays_everything_out_again(small):
    async with opened(small) as walk:
        for width, height in [(40, 12), (200, 50), (80, 24)]:
            await walk.resize(width, height)
            for tab in "1234":
                await walk.press(tab)
                assert max(map(len, walk.screen())) <= width


KILLED = """
import os, signal, time
for _ in range(10):
    os.stat(".")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.long
async def test_a_killed_program_is_shown_as_killed(tmp_path):
    program = write_program(tmp_path, KILLED)
    variables = environment(INTERPOSE="1", XDG_STATE_HOME=str(tmp_path / "state"))
    subprocess.run([sys.executable, "-m", "interpose", "run", str(program)], cwd=tmp_path, env=variables, check=False)

    async with opened(tmp_path / "test.1.er") as walk:
        assert "killed by SIGKILL" in walk.screen()[0]
        await walk.press("3")
        assert any("os.stat" in line for line in walk.lines())


RUNNING = """
import os, sys, threading
over = threading.Event()
def work():
    while not over.is_set():
        for _ in range(20):
            os.stat(".")
        over.wait(0.02)
thread = threading.Thread(target=work)
thread.start()
print("ready", flush=True)
sys.stdin.readline()
over.set()
thread.join()
"""


@pytest.mark.long
async def test_it_follows_a_running_program_and_keeps_the_chosen_row(tmp_path, started):
    variables = environment(INTERPOSE="1", XDG_STATE_HOME=str(tmp_path / "state"))
    program = started([sys.executable, write_program(tmp_path, RUNNING)], env=variables)

    async with opened(tmp_path / "test.1.er") as walk:
        def calls():
            return sum(row.sums.calls for row in walk.listing().rows)

        await walk.press("b", "down", "enter", "slash")
        await walk.write("os.stat")
        assert " running " in walk.screen()[0]
        before = calls()
        await walk.until(lambda: calls() > before + 100)
        await walk.settle()
        assert walk.listing().row.intrinsic == "os.stat"
        await walk.press("question_mark")
        before = calls()
        await walk.until(lambda: calls() > before)  # below the help
        await walk.press("escape")
        assert walk.listing().row.intrinsic == "os.stat"
        await walk.press("3")
        first = walk.listing().rows[0].event.start_ns
        await walk.until(lambda: walk.listing().rows[0].event.start_ns > first)
        assert walk.listing().cursor == len(walk.listing().rows) - 1
        await walk.press("1")
        program.communicate("\n")
        await walk.until(lambda: "exit 0" in walk.screen()[0])
        await walk.settle()
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert main(["report", str(tmp_path / "test.1.er"), "--by", "intrinsic", "--sort", "calls"]) == 0
        counted = [line for line in out.getvalue().splitlines() if " os.stat " in line]
        assert walk.chosen().split()[:3] == counted[0].split()[:3]
