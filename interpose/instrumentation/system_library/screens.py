"""Screens: what is read from the keyboard and shown; reads and writes of standard streams are among the files."""

from interpose.library import Intrinsic, alike

WINDOW = ("curses.window.", "_curses:window.")
CURSES = ("curses.", "_curses:")
TERMIOS = ("termios.", "termios:")

INTRINSICS = [
    Intrinsic("input", "builtins:input", "screen", bytes="result", terminal="line"),
    Intrinsic("getpass.getpass", "getpass:unix_getpass", "screen", terminal="line"),
    *alike(*WINDOW, "getch getkey get_wch", "screen", terminal="keys", bytes="frame"),
    *alike(*WINDOW, "getstr", "screen", terminal="line", bytes="frame"),
    *alike(*WINDOW, "refresh", "screen", bytes="frame"),
    *alike(*WINDOW, "noutrefresh", "screen"),
    *alike(*CURSES, "doupdate", "screen", bytes="frame"),
    *alike(*CURSES, "initscr endwin getmouse flushinp beep flash resetty", "screen"),
    Intrinsic("curses.napms", "_curses:napms", "sleep"),
    *alike(*TERMIOS, "tcsetattr tcdrain tcflush tcflow tcsendbreak", "screen", detail="descriptor"),
    Intrinsic("readline.read_history_file", "readline:read_history_file", "file", detail="path"),
    Intrinsic("readline.write_history_file", "readline:write_history_file", "file", detail="path"),
    Intrinsic("readline.append_history_file", "readline:append_history_file", "file", detail="path", argument=1),
    Intrinsic("readline.read_init_file", "readline:read_init_file", "file", detail="path"),
]
