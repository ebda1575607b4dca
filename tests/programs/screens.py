"""Questions on a terminal of its own, by lines, in a window and with hidden answers."""

import curses
import getpass
import os
import termios
import threading
from contextlib import suppress

errors = os.dup(2)
master, slave = os.openpty()
os.login_tty(slave)
os.environ["TERM"] = "xterm"
shown = []


def show():
    """The terminal's other side: what is shown is read, what is asked is answered."""
    answers = {b"Name? ": b"Ann\n", b"Secret? ": b"hush\n"}
    text = b""
    with suppress(OSError):
        while part := os.read(master, 1000):
            text += part
            for question in [each for each in answers if each in text]:
                os.write(master, answers.pop(question))


def typed(keys):
    os.write(master, keys)


display = threading.Thread(target=show, daemon=True)
display.start()
assert input("Name? ") == "Ann"  #: input bytes=3
assert getpass.getpass("Secret? ") == "hush"  #: getpass.getpass

settings = termios.tcgetattr(0)
for _ in range(2):
    termios.tcsetattr(0, termios.TCSANOW, settings)  #: 2 termios.tcsetattr detail=<stdin>
termios.tcdrain(0)  #: termios.tcdrain detail=<stdin>
termios.tcflush(0, termios.TCIFLUSH)  #: termios.tcflush detail=<stdin>
termios.tcflow(0, termios.TCOON)  #: termios.tcflow detail=<stdin>
termios.tcsendbreak(0, 0)  #: termios.tcsendbreak detail=<stdin>
with open(os.devnull) as nothing, suppress(termios.error):
    termios.tcdrain(nothing.fileno())  #: termios.tcdrain detail=/dev/null error=...error

window = curses.initscr()  #: within curses.initscr
curses.savetty()
curses.cbreak()
window.addstr("a window")
for _ in range(3):
    window.refresh()  #: 3 curses.window.refresh
window.noutrefresh()  #: curses.window.noutrefresh
curses.doupdate()  #: curses.doupdate
typed(b"abc")
assert window.getch() == ord("a")  #: curses.window.getch
assert window.getkey() == "b"  #: curses.window.getkey
assert window.get_wch() == "c"  #: curses.window.get_wch
typed(b"text\n")
assert window.getstr() == b"text"  #: curses.window.getstr
window.nodelay(True)
with suppress(curses.error):
    window.getkey()  #: curses.window.getkey error=...error
curses.mousemask(curses.ALL_MOUSE_EVENTS)
curses.ungetmouse(0, 1, 1, 0, curses.BUTTON1_PRESSED)
curses.getmouse()  #: curses.getmouse
with suppress(curses.error):
    curses.getmouse()  #: curses.getmouse error=...error
curses.flushinp()  #: curses.flushinp
curses.beep()  #: curses.beep
curses.flash()  #: curses.flash
curses.napms(1)  #: curses.napms
curses.resetty()  #: curses.resetty
curses.endwin()  #: curses.endwin
os.dup2(errors, 2)
with suppress(EOFError), open(os.devnull) as nothing:
    os.dup2(nothing.fileno(), 0)
    input()  #: input error=EOFError
