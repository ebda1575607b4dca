"""Lines of code are links in terminals that open them, and plain text everywhere else."""

import io
import os
import pty
import re
import subprocess
import sys

import pytest
from tracing import environment

from interpose.experiments.model.stacks import Site
from interpose.reports.formats.links import linked, wants_links
from interpose.reports.formats.short_paths import Places
from tests.build import SECOND, Build, event

LINK = re.compile("\x1b]8;;(.*?)\x1b\\\\(.*?)\x1b]8;;\x1b\\\\")
WEZTERM = {"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm", "TERM_PROGRAM_VERSION": "20240203-110809-5046fc22"}


class Terminal:
    def isatty(self):
        return True


@pytest.mark.parametrize(
    "variables",
    [
        WEZTERM,
        {"TERM": "xterm-kitty"},
        {"TERM": "alacritty"},
        {"TERM": "xterm-256color", "VTE_VERSION": "7200"},
        {"TERM": "xterm-256color", "KONSOLE_VERSION": "230804"},
        {"TERM": "xterm-256color", "WT_SESSION": "0"},
        {"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "3.4.19"},
        {"TERM": "tmux-256color", "TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.4"},
    ],
)
def test_terminals_that_open_links_get_them(variables):
    assert wants_links(Terminal(), variables)
    assert not wants_links(Terminal(), {**variables, "NO_COLOR": "1"})
    assert not wants_links(Terminal(), {**variables, "TERM": "dumb"})
    assert not wants_links(io.StringIO(), variables)


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"TERM": "xterm-256color"},
        {"TERM": "linux"},
        {"TERM": "xterm-256color", "TERM_PROGRAM": "vscode", "TERM_PROGRAM_VERSION": "1.90.0"},
        {"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"},
        {"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "2.9"},
        {"TERM": "xterm-256color", "VTE_VERSION": "5000"},
        {"TERM": "xterm-256color", "VTE_VERSION": "\u0663 none"},
        {"TERM": "screen", "TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.3a"},
    ],
)
def test_others_do_not(variables):
    assert not wants_links(Terminal(), variables)


def test_a_line_is_linked_to_the_file_that_it_stands_for():
    places = Places(["/home/u/shop/my orders.py", "/home/u/shop/a.py", "/lib/b/a.py"], "/home/u/shop")
    shown = [places.line(Site(file, 8, "f", True)) for file in ("/home/u/shop/a.py", "/lib/b/a.py")]

    found = LINK.findall(linked(f"of {shown[0]}, then ({shown[1]}) and a.py:9", places.shown))

    host = os.uname().nodename
    assert found == [(f"file://{host}/home/u/shop/a.py#8", "a.py:8"), (f"file://{host}/lib/b/a.py#8", "b/a.py:8")]


NOT_SOURCES = ["/etc/passwd", "/home/u/evil.desktop", "<string>", "relative.py", "/x" * 2000 + ".py"]


@pytest.mark.parametrize("file", NOT_SOURCES)
def test_what_is_no_source_is_no_link(file):
    places = Places([], "")
    text = places.line(Site(file, 8, "f", True))

    assert linked(text, places.shown) == text


def test_what_stands_for_two_files_is_no_link():
    places = Places([], "")
    texts = {places.line(Site(file, 8, "f", True)) for file in ("/a/x.py", "/b/x.py")}

    assert texts == {"x.py:8"}
    assert linked("x.py:8", places.shown) == "x.py:8"


def test_nothing_in_a_path_ends_the_link():
    file = "/home/u/\x1b]8;;\x1b\\\x07;\u202e\udc80%0a.py"
    places = Places([file], "/home/u")
    text = places.line(Site(file, 8, "f", True))

    [(url, _)] = re.findall("]8;;(file:[^\x1b]*)\x1b\\\\(x)", linked("x:8", {"x:8": places.shown[text]}))

    assert re.fullmatch(r"[!-~]+", url)
    assert ";" not in url


@pytest.fixture
def path(tmp_path):
    built = Build(tmp_path / "test.1.er", cwd="/home/u/shop")
    built.intrinsic("os.stat", "file")
    built.thread()
    stack = built.stack(built.site("/home/u/shop/orders.py", 88, "save"))
    built.events([event(n * 1_000_000, 900_000, 100, call=n + 1, stack=stack) for n in range(400)])
    built.ended(SECOND, SECOND // 100)
    return built.write()


def in_terminal(path, *words, **variables):
    """What a command writes to a terminal."""
    own, its = pty.openpty()
    command = [sys.executable, "-m", "interpose", *words, str(path)]
    variables = environment(COLUMNS="100", XDG_STATE_HOME=str(path.parent / "state"), **variables)
    program = subprocess.Popen(command, env=variables, stdin=its, stdout=its, stderr=its)
    os.close(its)
    output = b""
    try:
        while part := os.read(own, 65536):
            output += part
    except OSError:  # it has ended
        pass
    os.close(own)
    assert program.wait() == 0
    return output.decode()


@pytest.mark.parametrize(
    "words",
    ["report", "report --by site", "report --by finding", "report --follow", "report --follow --by site",
     "top --once", "top", "events"],
)  # fmt: skip
def test_reports_have_links_and_are_the_same_without_them(path, words):
    words = words.split()
    with_links = in_terminal(path, *words, **WEZTERM)
    without = in_terminal(path, *words, **{**WEZTERM, "TERM_PROGRAM": "vscode"})

    assert (f"file://{os.uname().nodename}/home/u/shop/orders.py#88", "orders.py:88") in LINK.findall(with_links)
    assert LINK.sub(r"\2", with_links) == without
    assert "\x1b]8" not in without
    plain = in_terminal(path, *words, **WEZTERM, NO_COLOR="1")
    assert "\x1b" not in plain.removeprefix("\x1b[H\x1b[J")  # what is followed begins at the top of the screen
