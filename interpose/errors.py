"""The errors that interpose raises in its own programs; each names the thing and the place."""

from __future__ import annotations


class InterposeError(Exception):
    """Something that a user can mend: one line, without a traceback; the command ends with `exit_code`."""

    exit_code = 1


class UsageError(InterposeError):
    """A command was asked for something that it does not do."""

    exit_code = 2


class SettingError(InterposeError):
    """A setting has a value that means nothing."""

    exit_code = 2


class ExperimentError(InterposeError):
    """A directory is not there, is not an experiment, or is one of a version that cannot be read."""
