"""What an interpreter's command line runs, and what the user would call it.

This is imported inside the traced program when it starts, so it imports next to nothing.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

OPTIONS_WITH_WORD = ("-W", "-X", "--check-hash-based-pycs")
EXEMPT_PROGRAMS = ("interpose", "pip", "tox")


def split_command(arguments: "Sequence[str]") -> tuple[str, str]:
    """What an interpreter's command line runs: ("-m", module), ("-c", ""), ("script", path) or ("", "")."""
    words = iter(arguments[1:])
    for word in words:
        if word in ("-m", "-c"):
            return word, next(words, "") if word == "-m" else ""
        if word in OPTIONS_WITH_WORD:
            next(words, "")
        elif not word.startswith("-") or word == "-":
            return "script", word
        elif not word.startswith("--") and "m" in word[1:] and word[-1] == "m":
            return "-m", next(words, "")
        elif not word.startswith("--") and word[-1] == "c":
            return "-c", ""
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
