"""What pyproject.toml says of the settings, read line by line: a whole TOML reader costs 15 ms to import.

This is imported inside the traced program where the file speaks of us, so it imports next to nothing.
"""

from interpose.config import schema
from interpose.errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SECTION = "tool.interpose"
LIBRARIES_KEY = "libraries"
_LEFT_OUT = dict.fromkeys(map(ord, " \t\"'"))


def parse_lines(path: str, data: bytes) -> "Iterator[tuple[str, tuple[str, str]]]":
    """Yield the key, and the text with its place, for each line of our section."""
    ours, section = False, ""
    seen = set()
    inside = 0  # a list of libraries, which is read as TOML where there is time for that
    quote = ""  # of a text of several lines that has begun
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        line = line.strip()
        before = quote
        if quote or '"""' in line or "'''" in line:
            quote = _quote_after(quote, line)
        if before:
            continue
        if inside > 0 or (ours and _is_of_libraries(line)):
            inside += line.count("[") - line.count("]")
        elif line.startswith("["):
            ours, section = _is_our_section(line, f"{path}:{number}"), _plain(line).strip("[]")
        elif section in ("", "tool"):
            _refuse_other_forms(section, line, f"{path}:{number}")
        elif ours and line and not line.startswith("#"):
            key, text = _parse_line(line, f"{path}:{number}")
            if key in seen:
                raise SettingError(f"{path}:{number}: {key} is set twice")
            seen.add(key)
            yield key, (text, f"{path}:{number}")


def _quote_after(quote: str, line: str) -> str:
    """The triple quotes of a text that continues after `line`; empty if none does. `quote` is the same for the line
    before."""
    place = 0
    while place < len(line):
        if quote:
            if quote[0] == '"' and line[place] == "\\":
                place += 2
            elif line.startswith(quote, place):
                place += len(quote)
                quote = ""
            else:
                place += 1
        elif line[place] == "#":
            break
        elif line[place] in "\"'":
            quote = line[place] * (3 if line.startswith(line[place] * 3, place) else 1)
            place += len(quote)
        else:
            place += 1
    return quote if len(quote) == 3 else ""


def _is_of_libraries(line: str) -> bool:
    return line.partition("=")[0].strip() == LIBRARIES_KEY


def names_libraries(data: bytes) -> bool:
    """Whether a pyproject.toml names libraries in our section."""
    ours = False
    for line in data.split(b"\n") if LIBRARIES_KEY.encode() in data else ():
        text = line.decode("utf-8", "replace").strip()
        if text.startswith("["):
            ours = text.partition("#")[0].replace(" ", "").strip("[]") == SECTION
        elif ours and _is_of_libraries(text):
            return True
    return False


def _plain(line: str) -> str:
    """A name without comment, blanks and quotes."""
    return line.partition("#")[0].translate(_LEFT_OUT)


def _refuse_other_forms(section: str, line: str, place: str) -> None:
    """Raise SettingError for a line outside our section that TOML takes for it: `tool.interpose.name = "x"`."""
    key, _, value = line.partition("=")
    name = f"{section}.{_plain(key)}".lstrip(".")
    if f"{name}.".startswith(f"{SECTION}.") or (name == "tool" and _has_our_key(value)):
        raise SettingError(f"{place}: cannot read {line}; write [{SECTION}] on a line of its own, its keys below")


def _has_our_key(table: str) -> bool:
    """Whether a table on one line has our key, alone or as the first part of one: `{interpose.clock = "rseq"}`."""
    depth, quote, key, is_escaped = 0, "", "", False
    for letter in table:
        if quote and (is_escaped or letter != quote):
            is_escaped = not is_escaped and quote == '"' and letter == "\\"
            key += letter
        elif letter in "\"'":
            quote = "" if quote else letter
        elif letter == "#":
            break
        elif letter in "{[]}":
            depth += 1 if letter in "{[" else -1
            key = ""
        elif depth == 1 and letter == ",":
            key = ""
        elif depth == 1 and letter in "=.":
            if key.strip() == SECTION.rpartition(".")[2]:
                return True
            key = letter  # no name: what follows is a value, or a key within another
        else:
            key += letter
    return False


def _is_our_section(line: str, place: str) -> bool:
    """Whether a line begins our section. Raises SettingError for one that is badly written, or is within it."""
    written = line.partition("#")[0].replace(" ", "").replace("\t", "")
    name = _plain(line).strip("[]")
    if name.startswith(SECTION + "."):
        raise SettingError(f"{place}: [{name}] is not a section that interpose knows; use [tool.interpose]")
    ours = f"[{SECTION}]"
    if written != ours and (name == SECTION or written.startswith(ours)):
        raise SettingError(f"{place}: cannot read {line}; write {ours} on a line of its own")
    return written == ours


def _parse_line(line: str, place: str) -> tuple[str, str]:
    """The key and the text of a line `key = value`. Raises SettingError."""
    key, equals, value = line.partition("=")
    key = key.strip().strip("\"'")
    text = _parse_value(value.strip()) if equals else None
    if text is None:
        raise SettingError(f'{place}: cannot read {line}; use key = "text", a number, true or false')
    if key not in schema.BY_KEY:
        raise SettingError(f"{place}: {key} is not a setting", key, schema.BY_KEY)
    return key, text


def _parse_value(value: str) -> str | None:
    """A quoted text, a number, or 1 and 0 for true and false; None for anything else."""
    quote = value[:1]
    if quote and quote in "\"'":
        text, closed, rest = value[1:].partition(quote)
        escaped = quote == '"' and "\\" in text
        plain = closed and not escaped and not rest.startswith(quote)
        return text if plain and _is_comment(rest) else None
    word, _, _ = value.partition("#")
    word = word.strip()
    if word in ("true", "false"):
        return "1" if word == "true" else "0"
    return word if word.isascii() and word.replace(".", "", 1).isdigit() else None


def _is_comment(rest: str) -> bool:
    rest = rest.strip()
    return not rest or rest.startswith("#")
