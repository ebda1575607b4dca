"""What a user may set, in one table: by variable, by option of `interpose run`, or in pyproject.toml.

An option goes before the environment, the environment before the file, the file before the default. This is
imported inside the traced program when it starts, so it imports next to nothing.

`python -m interpose.settings` prints docs/settings.md.
"""

from __future__ import annotations

import os

from interpose.errors import SettingError
from interpose.experiments import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    # What a file says: the text for each key, and the place (`pyproject.toml:12`) that says so.
    FileSettings = Mapping[str, tuple[str, str]]

FILE = "pyproject.toml"
SECTION = "tool.interpose"
LARGEST_FILE_BYTES = 1 << 20

RECORDABLE = ("calls",)
CLOCKS = ("auto", "rseq", "perf", "syscall")
STACKS = ("own", "none")
DURATION_UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


def parse_record(text: str) -> tuple[str, ...]:
    """What to record: nothing for `0` and an empty text, `calls` for `1`, else the words of a comma list."""
    if text in ("", "0"):
        return ()
    words = ["calls" if word.strip() == "1" else word.strip() for word in text.split(",")]
    for word in words:
        if word not in RECORDABLE:
            raise ValueError(f"{word!r} is not one of {', '.join(('0', '1', *RECORDABLE))}")
    return tuple(word for word in RECORDABLE if word in words)


def parse_directory(text: str) -> str:
    """The directory, `~` being the user's own."""
    return os.path.expanduser(text)


def parse_name(text: str) -> str:
    """The name, if it can be one."""
    if why := names.why_not(text):
        raise ValueError(why)
    return text


def parse_duration_ns(text: str) -> int | None:
    """Nanoseconds for `500us`, `10ms`, `2s`; None for `off`."""
    if text == "off":
        return None
    number = text.rstrip("nums")
    try:
        duration_ns = round(float(number) * DURATION_UNITS_NS[text[len(number) :]])
    except (KeyError, ValueError, OverflowError):
        duration_ns = -1
    if not 0 <= duration_ns < 1 << 63:
        raise ValueError("not a duration like 10ms, 500us, 2s, nor off")
    return duration_ns


def one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    """A function that takes one of `choices` and nothing else."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"not one of {', '.join(choices)}")
        return text

    return parse


class Setting:
    """One thing that can be set: its names, its default as one would write it, and what it means."""

    __slots__ = ("default", "form", "key", "meaning", "name", "parse", "variable")

    def __init__(
        self,
        name: str,
        variable: str,
        key: str,
        form: str,
        default: str,
        parse: Callable[[str], object],
        meaning: str,
    ) -> None:
        self.name = name
        self.variable = variable
        self.key = key
        self.form = form
        self.default = default
        self.parse = parse
        self.meaning = meaning

    @property
    def option(self) -> str:
        """The option of `interpose run`."""
        return f"--{self.key}"


SETTINGS = (
    Setting(
        "record",
        "INTERPOSE",
        "record",
        "WHAT",
        "0",
        parse_record,
        "what to record: 1 (that is calls), or a list of what is known (calls); 0 or empty: nothing."
        " `interpose run` takes 1 where nothing else is said",
    ),
    Setting(
        "dir",
        "INTERPOSE_DIR",
        "dir",
        "DIRECTORY",
        ".",
        parse_directory,
        "where experiments are made; in a file, from the file's own directory on",
    ),
    Setting(
        "name",
        "INTERPOSE_NAME",
        "name",
        "NAME",
        "test",
        parse_name,
        "name of the experiment: test makes test.1.er, test.2.er and so on; NAME.er is taken as it is",
    ),
    Setting(
        "clock",
        "INTERPOSE_CLOCK",
        "clock",
        "|".join(CLOCKS),
        "auto",
        one_of(CLOCKS),
        "how a thread's CPU time is read; auto takes the cheapest that passes its test",
    ),
    Setting(
        "stack",
        "INTERPOSE_STACK",
        "stack",
        "|".join(STACKS),
        "own",
        one_of(STACKS),
        "where a call came from: own is the innermost frames up to the first of one's own code",
    ),
    Setting(
        "stack_above_ns",
        "INTERPOSE_STACK_ABOVE",
        "stack-above",
        "DURATION",
        "10ms",
        parse_duration_ns,
        "a call at least this long (10ms, 500us, 2s, or off) keeps the whole stack",
    ),
)
BY_KEY = {setting.key: setting for setting in SETTINGS}


class Settings:
    """The settings in force, each by its name; by variable, their texts and where these came from."""

    record: tuple[str, ...]
    dir: str
    name: str
    clock: str
    stack: str
    stack_above_ns: int | None

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.origins: dict[str, str] = {}

    def environment(self) -> dict[str, str]:
        """The variables that give a program these same settings, wherever it is started."""
        return {**self.texts, "INTERPOSE": ",".join(self.record) or "0", "INTERPOSE_DIR": self.dir}


def resolve(
    options: Mapping[str, str | None], environment: Mapping[str, str], file: FileSettings
) -> Settings:
    """The settings in force, from the options (by key; None is not given), the environment and the file.

    An empty variable counts as not set. Raises SettingError for a value that means nothing.
    """
    settings = Settings()
    for setting in SETTINGS:
        text, origin, said = _choose(setting, options, environment, file)
        try:
            value = setting.parse(text)
        except ValueError as error:
            raise SettingError(f"{said}: {error}") from None
        setattr(settings, setting.name, value)
        settings.texts[setting.variable] = text
        settings.origins[setting.variable] = origin
    settings.dir = _absolute(settings.dir, settings.origins["INTERPOSE_DIR"])
    return settings


def in_force(environment: Mapping[str, str]) -> Settings:
    """The settings of a program started here with `environment`. Raises SettingError."""
    return resolve({}, environment, read_file("."))


def _choose(
    setting: Setting, options: Mapping[str, str | None], environment: Mapping[str, str], file: FileSettings
) -> tuple[str, str, str]:
    """The text of a setting, where it came from, and how it was said there."""
    option = options.get(setting.key)
    if option is not None:
        return option, "option", f"{setting.option} {option}"
    variable = environment.get(setting.variable)
    if variable:
        return variable, "environment", f"{setting.variable}={variable}"
    if setting.key in file:
        text, place = file[setting.key]
        return text, place, f"{place}: {setting.key} = {text}"
    return setting.default, "default", f"{setting.variable}={setting.default}"


def _absolute(directory: str, origin: str) -> str:
    """The directory from the root on; a file says it relative to where the file is."""
    path, _, line = origin.rpartition(":")
    try:
        base = os.path.dirname(path) if line.isdecimal() else os.getcwd()
    except FileNotFoundError:
        return directory
    return os.path.normpath(os.path.join(base, directory))


def read_file(directory: str) -> FileSettings:
    """What the nearest pyproject.toml says, from `directory` upward; empty where it says nothing of us.

    Reads flat lines `key = "text"`, a number, true or false: a whole TOML reader costs 15 ms to import.
    Raises SettingError, with the file and the line, for any other line in our section.
    """
    try:
        directory = os.path.abspath(directory)
    except FileNotFoundError:
        return {}
    while True:
        path = os.path.join(directory, FILE)
        data = _read_plain(path)
        if data is not None:
            return dict(_parse_lines(path, data)) if b"interpose" in data else {}
        parent = os.path.dirname(directory)
        if parent == directory:
            return {}
        directory = parent


def _read_plain(path: str) -> bytes | None:
    """The bytes of a file; None where there is none, or it may not be read. Never waits, as for a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, LARGEST_FILE_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _parse_lines(path: str, data: bytes) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the key, and the text with its place, for each line of our section."""
    ours = False
    seen = set()
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        line = line.strip()
        if line.startswith("["):
            ours = _is_our_section(line, f"{path}:{number}")
        elif ours and line and not line.startswith("#"):
            key, text = _parse_line(line, f"{path}:{number}")
            if key in seen:
                raise SettingError(f"{path}:{number}: {key} is said twice")
            seen.add(key)
            yield key, (text, f"{path}:{number}")


def _is_our_section(line: str, place: str) -> bool:
    """Whether a line begins our section. Raises SettingError for a section within it."""
    name = line.partition("#")[0].replace(" ", "").replace("\t", "").strip("[]")
    if name.startswith(SECTION + "."):
        raise SettingError(f"{place}: [{name}] is not a section of interpose")
    return name == SECTION


def _parse_line(line: str, place: str) -> tuple[str, str]:
    """The key and the text of a line `key = value`. Raises SettingError."""
    key, equals, value = line.partition("=")
    key = key.strip().strip("\"'")
    text = _parse_value(value.strip()) if equals else None
    if text is None:
        raise SettingError(f'{place}: cannot read {line}; use key = "text", a number, true or false')
    if key not in BY_KEY:
        raise SettingError(f"{place}: {key} is not a setting; there are {', '.join(BY_KEY)}")
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


def table() -> list[tuple[str, str, str, str, str]]:
    """A row for each setting: the variable, the option with its form, the key, the default, the meaning."""
    return [
        (setting.variable, f"{setting.option} {setting.form}", setting.key, setting.default, setting.meaning)
        for setting in SETTINGS
    ]


PAGE = """\
# Settings

Printed by `python -m interpose.settings`; the one list is `SETTINGS` in `interpose/settings.py`.

`INTERPOSE` switches recording on; the others only narrow it. An option of `interpose run` goes before the
variable, the variable before the file, the file before the default. An empty variable counts as not set. The
bare variable gives the same as `interpose run`.

| variable | option of `interpose run` | in `[tool.interpose]` | default | meaning |
| --- | --- | --- | --- | --- |
{rows}

The file is the nearest `pyproject.toml`, from the working directory upward. Its section is read line by line:
`key = "text"`, a number, `true` or `false`, no more of TOML than that.

```toml
[tool.interpose]
dir = "experiments"
stack-above = "1ms"
```

A value that means nothing is an error that names it: from `interpose run` one line and exit code 2; under the
bare variable the program runs untouched and `interpose doctor` tells why nothing was recorded.
"""


def page() -> str:
    """docs/settings.md."""
    rows = []
    for variable, option, key, default, meaning in table():
        cells = (f"`{variable}`", f"`{option}`", f"`{key}`", f"`{default}`", meaning)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return PAGE.format(rows="\n".join(rows))


if __name__ == "__main__":
    print(page(), end="")
