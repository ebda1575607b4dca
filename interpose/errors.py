"""All errors of interpose. Those that a user sees name the thing and the place; the others are caught inside interpose.

    InterposeError          a command ends with it: one line, without a traceback, and an exit code
        UsageError          a command does not do what was asked
            ExpressionError
        SettingError        a setting has an invalid value
        ExperimentError     an experiment cannot be read or written
    Caught                  a module tells its caller something; users never see it

A module may define its own errors below one of these; tests/project/test_errors.py checks that no error stands outside.
The traced program imports this module, so it imports nothing.
"""


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class InterposeError(Exception):
    """Something that a user can mend: one line, without a traceback; the command ends with `exit_code`.

    Where a name is not known, `mistaken` is that name, and `known` are those that are.
    """

    exit_code = 1

    def __init__(self, what: str = "", mistaken: str = "", known: "Iterable[str]" = ()) -> None:
        super().__init__(what)
        self.mistaken = mistaken
        self.known = known


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


class Caught(Exception):
    """One module tells its caller that it stopped, and why; the caller catches it and decides what users see.

    It is not an InterposeError, so an uncaught one shows as the defect that it is.
    """
