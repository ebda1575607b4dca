"""Which settings are in force: options go before the environment, that before the file, that before the defaults.

What a control file or a filter asks for besides is added. This is imported inside the traced program if settings are
set (interpose.config.in_force), so it imports next to nothing.
"""

import os

from interpose.config import levels, schema, values
from interpose.config.schema import Setting, Settings
from interpose.config.settings_file import absolute, read_file
from interpose.config.trust import distrust
from interpose.errors import SettingError
from interpose.kinds import IN_PROGRAMS, KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from interpose.config.settings_file import FileSettings



def in_force(environment: "Mapping[str, str]", options: "Mapping[str, str | None] | None" = None) -> Settings:
    """The settings of a program started here with `environment`, and `options` (by key; None is not given). Raises
    SettingError."""
    file, why_ignored = read_file(".")
    settings = resolve(options or {}, environment, file)
    settings.warnings += why_ignored
    return settings


def unknown_variables(environment: "Mapping[str, str]") -> list[str]:
    """The names that look like settings and are not."""
    found = [name for name in environment if name.startswith("INTERPOSE_")]
    if not found:
        return []
    known = {setting.variable for setting in schema.SETTINGS}.union(schema.OTHER_VARIABLES)
    return sorted([name for name in found if name not in known])


def resolve(options: "Mapping[str, str | None]", environment: "Mapping[str, str]", file: "FileSettings") -> Settings:
    """The settings in force, from the options (by key; None is not given), the environment and the file.

    An empty variable counts as not set. Raises SettingError for a value that means nothing.
    """
    settings = Settings()
    for setting in schema.SETTINGS:
        text, origin, said = _choose(setting, options, environment, file)
        try:
            value = setting.parse(text)
        except ValueError as error:
            raise SettingError(f"{said}: {error}") from None
        setattr(settings, setting.name, value)
        settings.texts[setting.variable] = text
        settings.origins[setting.variable] = origin
        settings.said[setting.variable] = said
    if settings.control:
        _heed_control_file(settings)
    if settings.filter:
        _heed_filter(settings)
    _refuse_excluded(settings)
    if settings.counters:
        _record_counters(settings)
    if settings.statements and (why := _why_no_statements(settings)):
        settings.statements, settings.texts["INTERPOSE_STATEMENTS"] = False, "0"
        settings.warnings.append(f"{settings.said['INTERPOSE_STATEMENTS']}: {why}")
    elif settings.statements and "lines" not in settings.record:
        why = "only while lines are recorded (INTERPOSE=calls,lines): none before the program switches these on"
        settings.warnings.append(f"{settings.said['INTERPOSE_STATEMENTS']}: {why}")
    settings.dir = absolute(settings.dir, settings.origins["INTERPOSE_DIR"])
    if settings.group != "auto":
        settings.group = absolute(settings.group, settings.origins["INTERPOSE_GROUP"])
    return settings


def _refuse_excluded(settings: Settings) -> None:
    for setting in schema.SETTINGS:
        if setting.excludes and getattr(settings, setting.name):
            key, why = setting.excludes
            if getattr(settings, schema.BY_KEY[key].name):
                raise SettingError(f"{settings.said[setting.variable]}: {why}")


def _record_counters(settings: Settings) -> None:
    """Record the profile if anything is recorded: counters are read with its samples."""
    if not settings.profile_hz:
        why = f"counters need the sampled profile; leave out {settings.said['INTERPOSE_PROFILE']}"
        raise SettingError(f"{settings.said['INTERPOSE_COUNTERS']}: {why}")
    record_profile(settings)


def record_profile(settings: Settings) -> None:
    """Record the profile with the calls."""
    if "calls" in settings.record and "profile" not in settings.record:
        settings.record = (*settings.record, "profile")
        settings.texts["INTERPOSE"] = ",".join(settings.record)


def _choose(
    setting: Setting, options: "Mapping[str, str | None]", environment: "Mapping[str, str]", file: "FileSettings"
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


def _put(settings: Settings, setting: Setting, text: str, origin: str, place: str) -> None:
    """Set a setting to `text`, as a consequence of what was set at `place`."""
    setattr(settings, setting.name, setting.parse(text))
    settings.texts[setting.variable] = text
    settings.origins[setting.variable] = origin
    settings.said[setting.variable] = f"{place}: {setting.variable}={text}"


def _heed_control_file(settings: Settings) -> None:
    """Apply the control file. What cannot be applied is a warning."""
    from interpose.config import keywords

    try:
        steps, wrong = keywords.read(settings.control)
        found, unfit = keywords.settings_of(steps, settings.record)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None)
        settings.warnings.append(f"{settings.said['INTERPOSE_CONTROL']}: {why}" if why else str(error))
        return
    if why := distrust(os.path.abspath(settings.control)):
        settings.warnings.append(f"{settings.said['INTERPOSE_CONTROL']} is ignored: {why}")
        return
    settings.warnings += wrong + unfit
    for setting in schema.SETTINGS:
        if setting.variable in found:
            _put(settings, setting, found[setting.variable], settings.control, settings.control)


def _heed_filter(settings: Settings) -> None:
    """Make an invalid filter a warning, and record what the filter asks for even if it is off by default."""
    said, recorded = settings.said["INTERPOSE_FILTER"], kinds_recorded(settings)
    settings.warnings += (wrong := why_no_filter(settings.filter, said, recorded))
    if not wrong and "calls" in settings.record:
        _record_requested(settings)
        _record_statements(settings)


def _record_requested(settings: Settings) -> None:
    """Have the kinds recorded that the filter asks for and that are off unless asked for."""
    from interpose.config import filters

    text = settings.texts["INTERPOSE_KINDS"]
    unsaid = [kind for kind in filters.requested(settings.filter) if not levels.names_kind(text, kind)]
    if unsaid:
        origin, said = settings.origins["INTERPOSE_FILTER"], settings.said["INTERPOSE_FILTER"]
        _put(settings, schema.BY_KEY["kinds"], ",".join([text, *unsaid]), origin, said)


def _record_statements(settings: Settings) -> None:
    """Have statements recorded, with lines, where the filter asks for them."""
    said = settings.said["INTERPOSE_FILTER"]
    if not _asks_for_statements(settings.filter):
        return
    if not settings.statements and settings.origins["INTERPOSE_STATEMENTS"] != "default":
        settings.warnings.append(f"{said}: no statements are recorded ({settings.said['INTERPOSE_STATEMENTS']})")
        return
    settings.record = tuple(word for word in values.RECORDABLE if word in (*settings.record, "lines"))
    settings.texts |= {"INTERPOSE": ",".join(settings.record), "INTERPOSE_STATEMENTS": "1"}
    if not settings.statements:
        settings.statements = True
        settings.origins["INTERPOSE_STATEMENTS"] = settings.origins["INTERPOSE_FILTER"]
        settings.said["INTERPOSE_STATEMENTS"] = said


def _asks_for_statements(text: str) -> bool:
    from interpose.config import filters

    made = filters.parse(text)
    return made is not None and filters.asks_for_statements(made.rules)


def _why_no_statements(settings: Settings) -> str:
    """Why statements are no events; nothing if they may be. Lines may be switched on by the program later."""
    if "calls" not in settings.record:
        return "statements are recorded among calls (INTERPOSE=calls,lines)"
    return "statements are not sampled (INTERPOSE_INTERVAL)" if settings.interval_ns else ""


def kinds_recorded(settings: Settings) -> set[str]:
    """The kinds of which calls may be recorded; what the filter asks for is among them."""
    from interpose.config import filters

    if settings.levels:  # of any kind
        return set(IN_PROGRAMS)
    by_kind = settings.kinds or {kind: levels.usual_level(kind) for kind in KINDS}
    found = {kind for kind in IN_PROGRAMS if by_kind[kind] != levels.OFF}
    return found.union(filters.requested(settings.filter))


def why_no_filter(text: str, said: str, recorded: "Collection[str]" = IN_PROGRAMS) -> list[str]:
    """What is wrong with a filter, in one line that says where it was set; empty if it is valid. It must leave some of
    the kinds that are `recorded`."""
    from interpose.config import filters

    try:
        filters.parse(text, recorded)
    except ValueError as error:
        return [f"{said}: {error}"]
    return []
