"""The errors that interpose raises in its own programs; each names the thing and the place."""


class InterposeError(Exception):
    """Something that a user can mend: one line, without a traceback; the command ends with `exit_code`."""

    exit_code = 1


class UsageError(InterposeError):
    """A command was asked for something that it does not do."""

    exit_code = 2


class ExpressionError(UsageError):
    """An expression, `text`, cannot be read, or means nothing, from the letter at `place` on."""

    def __init__(self, what: str, text: str, place: int) -> None:
        super().__init__(what)
        self.text = text
        self.place = place


class SettingError(InterposeError):
    """A setting has a value that means nothing."""

    exit_code = 2


class ExperimentError(InterposeError):
    """A directory is not there, is not an experiment, or is one of a version that cannot be read."""
