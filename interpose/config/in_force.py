"""The settings in force in a program that starts. Usually only what to record, and perhaps the directory, is set. The
settings then come ready from the bundle (interpose/bundle.py), without the modules that interpret settings.

This is imported inside the traced program when it starts, so it imports next to nothing.
"""

from interpose.config import settings_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from interpose.config.schema import Settings
    from interpose.config.values import Trigger

ARCHIVES_OF_OBJECTS = ("ldobjects", "usedldobjects", "all")
GIVEN_TO_DESCENDANTS = ("INTERPOSE_LINEAGE", "INTERPOSE_ADDED", "INTERPOSE_WITHIN")  # see cext/core/child_variables.h
WHERE = "INTERPOSE_DIR"  # the variable of the directory for experiments
WHAT = "INTERPOSE"  # the variable that says what to record; its usual values follow
USUAL = ("1", "calls", "calls,profile", "profile", "native", "lines", "calls,lines", "coverage", "heap")
PACKED: "tuple[dict[str, tuple[str, ...]], dict[str, Any]] | None" = None  # what `usual` returns, if there is a bundle


class InForce:
    """The settings in force. Each setting is an attribute (interpose.config.schema); `texts` and `origins` have, by
    variable, its text and where that came from."""

    archive: str
    dir: str
    group: str
    native_stack: str
    record: tuple[str, ...]
    stack: str
    trigger: "Trigger | None"
    when_full: str

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.origins: dict[str, str] = {}
        self.said: dict[str, str] = {}  # the text as it is written there, for messages
        self.forbidden: Mapping[str, str] = {}  # kinds that the administrator forbids, by the place that says so
        self.within = ""  # what became of the transaction that the process was started in
        self.warnings: list[str] = []  # what cannot be applied, while all else is

    @property
    def stack_kept(self) -> bool:
        """Whether the stacks of calls are recorded."""
        return self.stack != "none"

    @property
    def native_functions(self) -> bool:
        """Whether a native call keeps the C functions that led to it."""
        return self.native_stack == "functions"

    @property
    def wait_when_full(self) -> bool:
        """Whether the program waits for room instead of dropping events."""
        return self.when_full == "wait"

    @property
    def objects(self) -> bool:
        """Whether the files that are mapped are noted."""
        return self.archive in ARCHIVES_OF_OBJECTS

    @property
    def trigger_above_ns(self) -> int | None:
        """How long a call must be to fire the trigger; None if no call fires it by its length."""
        return self.trigger.above_ns if self.trigger else None

    @property
    def trigger_errors(self) -> str:
        """The names of errors that fire it, with spaces between them."""
        return " ".join(self.trigger.errors) if self.trigger else ""

    @property
    def trigger_exit(self) -> bool:
        """Whether an exit status other than 0 fires it."""
        return self.trigger is not None and self.trigger.exit

    def environment(self) -> dict[str, str]:
        """The variables that give a program these same settings, wherever it is started."""
        ours = {"INTERPOSE": ",".join(self.record) or "0", "INTERPOSE_DIR": self.dir, "INTERPOSE_GROUP": self.group}
        return {**self.texts, **ours}


def usual() -> "tuple[dict[str, tuple[str, ...]], dict[str, Any]]":
    """What the bundle keeps: what each of `USUAL` means, and the settings in force if nothing else is set."""
    from interpose.config import precedence

    settings = vars(precedence.resolve({}, {WHAT: USUAL[0]}, {}))
    del settings["dir"]  # it depends on the working directory
    return {text: precedence.resolve({}, {WHAT: text}, {}).record for text in USUAL}, settings


def ready(given: "Mapping[str, str]", warnings: list[str]) -> "Settings | None":
    """The settings if the variables `given` say only what to record and perhaps the directory. None if they say more,
    or if the bundle does not have the settings."""
    records, settings = PACKED or ({}, {})
    directory = given.get(WHERE, ".")
    if given[WHAT] not in records or not {WHAT, WHERE}.issuperset(given) or directory[:1] in ("", "~"):
        return None
    found = InForce()
    vars(found).update(settings)
    found.record = records[given[WHAT]]
    for variable, text in given.items():
        found.texts[variable] = text
        found.origins[variable] = "environment"
        found.said[variable] = f"{variable}={text}"
    found.dir = settings_file.absolute(directory)
    found.warnings = warnings
    return found  # type: ignore[return-value]  # it has what Settings have


def at_start(environment: "Mapping[str, str]", load: "Callable[[], object]") -> "Settings":
    """The settings of a program that starts here with `environment`. `load` is called before the modules that interpret
    settings are imported. Raises SettingError."""
    file, why_ignored = settings_file.read_file(".", load)
    given = {name: environment[name] for name in environment if name.startswith(WHAT)}
    for name in GIVEN_TO_DESCENDANTS:
        given.pop(name, None)
    if WHAT in given and not file and (found := ready(given, why_ignored)):
        return found
    load()
    from interpose.config import precedence

    settings = precedence.resolve({}, environment, file)
    unknown = precedence.unknown_variables(environment)
    settings.warnings += [*why_ignored, *[f"{name} is not a setting; interpose doctor lists them" for name in unknown]]
    return settings
