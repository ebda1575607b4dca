"""Which program this is: what its command line runs, what the user would call it, where it imports from.

This is imported inside the traced program when it starts, so it imports next to nothing.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

OPTIONS_WITH_WORD = "cmWX"
LARGEST_COMMAND_BYTES = 1000  # of the script that installers make of an entry point
EXEMPT_PROGRAMS = ("interpose", "pip", "tox")


def split_command(arguments: "Sequence[str]") -> tuple[str, str]:
    """What an interpreter's command line runs: ("-m", module), ("-c", ""), ("script", path) or ("", "")."""
    how, what, _ = find_program(arguments)
    return how, what


def find_program(arguments: "Sequence[str]") -> tuple[str, str, int]:
    """The same, and the position of the first word that belongs to the program."""
    place = 1
    while place < len(arguments):
        word = arguments[place]
        place += 1
        if word == "-" or not word.startswith("-"):
            return "script", word, place
        letter, rest = option_with_word(word)
        following = rest or "".join(arguments[place : place + 1])
        place += bool(letter and not rest)
        if letter in ("-m", "-c"):
            return letter, following if letter == "-m" else "", min(place, len(arguments))
        if letter == "--":
            return "script", following, place
    return "", "", len(arguments)


def option_with_word(word: str) -> tuple[str, str]:
    """The option in a word that takes a value, and the value if it is attached; empty if there is none."""
    if word.startswith("--"):
        return (word, "") if word in ("--", "--check-hash-based-pycs") else ("", "")
    for place, letter in enumerate(word[1:], 2):
        if letter in OPTIONS_WITH_WORD:
            return "-" + letter, word[place:]
    return "", ""


def program_name(arguments: "Sequence[str]") -> str:
    """What the user would call the program."""
    how, what = split_command(arguments)
    if how == "-m":
        return f"-m {what}"
    return os.path.basename(what) if what not in ("", "-") else how or "python"


def is_exempt(arguments: "Sequence[str]") -> bool:
    """Whether the program is one that never traces itself."""
    how, what = split_command(arguments)
    if how == "-m":
        return what.partition(".")[0] in EXEMPT_PROGRAMS
    name = os.path.basename(what).removesuffix(".py").rstrip("0123456789.")
    return how == "script" and (name in EXEMPT_PROGRAMS or what.endswith("/site-packages/pip"))


def import_roots() -> list[str]:
    """The directories that the program imports from, if known before its first line."""
    how, what = split_command(sys.orig_argv)
    try:
        is_own = how == "script" and what != "-" and not installed_command()
        own = os.path.dirname(os.path.realpath(what)) if is_own else os.getcwd()
    except OSError:
        own = ""
    found = [own, *sys.path]
    return [path for path in dict.fromkeys(found) if path.startswith("/")][:64]


def installed_command() -> str:
    """The path of the program, as its code names it, if an installer made it (`bin/pytest`, `bin/gunicorn`): it runs
    the program of the working directory. Empty for any other."""
    how, path = split_command(sys.orig_argv)
    if how != "script" or path.endswith(".py") or os.path.basename(os.path.dirname(path)) != "bin":
        return ""
    try:
        with open(path, "rb") as file:
            text = file.read(LARGEST_COMMAND_BYTES + 1)
    except OSError:
        return ""
    is_made = len(text) <= LARGEST_COMMAND_BYTES and b"sys.argv[0]" in text and b"sys.exit(" in text
    return path if is_made else ""


def import_directories() -> list[bytes]:
    """The directories for the monitor's imports, as bytes: that of interpose first, then the installed packages."""
    installed = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    found = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))), *installed]
    return [os.fsencode(path) for path in dict.fromkeys(found) if ":" not in path]


def library_directories() -> list[bytes]:
    """The places of code that is not the program's own, as bytes: directories, which end with a slash, and the script
    that an installer made. Those of installed packages are known by their names (cext/core/installed_names.h)."""
    major, minor = sys.version_info[:2]
    found = [os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(__file__)) + "/interpose"]
    found += [f"{prefix}/lib/python{major}.{minor}" for prefix in (sys.prefix, sys.base_prefix)]
    found += [path for path in sys.path if path.endswith(f"/python{major}{minor}.zip")]
    directories = [os.fsencode(path) + b"/" for path in dict.fromkeys(found)]
    command = installed_command()
    return [*([os.fsencode(command)] if command else []), *directories]
