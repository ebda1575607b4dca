"""What may be sent to a terminal of what an experiment has for one: an experiment may be anybody's.

Letters, line ends, colours and movements of the cursor pass. What makes a terminal answer, write to the clipboard, set
titles, change sizes, or take what follows for something else does not.
"""

from __future__ import annotations

import re

PLAIN_CONTROLS = "\r\n\t\b"
LONGEST_SEQUENCE = 64
# Colours, cursor, screen, margins; letters, not line drawing; the keys send, and Enter ends a line, as they did.
RESET = "\x1b[0m\x1b[?25h\x1b[?1049l\x1b[r\x1b(B\x1b)B\x1b[4;20l\x1b[?1l\x1b[?7h\x1b>"
_WHOLE = re.compile(r"\x1b(?:\[([0-?]*)([ -/]*)([@-~])|([()])([0B])|([78=>M]))")
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[()])?\Z")
_FINALS = frozenset("ABCDEFGHJKLMPSTXZ@`adefgmrhl")
_SCROLLING_DOWN = re.compile(r"[0-9]*")  # of T: with more parameters it follows the mouse
_MODES = frozenset(("?1", "?7", "?12", "?25", "?47", "?1047", "?1048", "?1049", "4", "20"))


class Sieve:
    """Lets harmless text through; an incomplete sequence is held back until the next text."""

    def __init__(self) -> None:
        self._held = ""

    def pass_on(self, text: str) -> str:
        """Of the text what may be sent."""
        text, self._held = self._held + text, ""
        passed, place = [], 0
        while place < len(text):
            letter = text[place]
            if letter != "\x1b":
                passed.append(letter if letter.isprintable() or letter in PLAIN_CONTROLS else "")
                place += 1
            elif found := _WHOLE.match(text, place):
                passed.append(found[0] if _is_harmless(found) else "")
                place = found.end()
            elif _BEGUN.match(text, place) and len(text) - place < LONGEST_SEQUENCE:
                self._held = text[place:]
                break
            else:
                place += 1  # what follows is shown as letters
        return "".join(passed)


def _is_harmless(found: re.Match[str]) -> bool:
    parameters, between, final = found[1], found[2], found[3]
    if final is None:
        return True
    if between or final not in _FINALS or any(letter in "<=>" for letter in parameters):
        return False
    if final == "T":
        return _SCROLLING_DOWN.fullmatch(parameters) is not None
    if final in "hl":
        return all(mode in _MODES for mode in _modes(parameters))
    return "?" not in parameters or final in "JK"


def _modes(parameters: str) -> list[str]:
    """`?25` and `?7` for `?25;7`."""
    private = "?" if parameters.startswith("?") else ""
    return [f"{private}{number}" for number in parameters.removeprefix("?").split(";")]
