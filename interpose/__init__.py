"""Where does a Python program spend its time: working or waiting, in which call, from which line.

PYTEST_DONT_REWRITE: a recorded pytest that finds us imported already would warn of it.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import ModuleType

    from interpose.instrumentation.collectors import collector as collector
    from interpose.transactions import transaction as transaction

__version__ = "0.2.0"


class _Nothing:
    """What switching line trace gives where nothing is recorded."""

    def __enter__(self) -> object:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def trace_lines(on: bool = True, to: str = "") -> "AbstractContextManager[object]":
    """Switch line trace on, or off; as a context, off again at its end, if it was not on before.

    `to` is a global in which `interpose lines --global` stores what was recorded: `^lvtr("MYTRACE",$J)`; one that is
    given when it is switched off goes before. Does nothing where this process is not recorded.
    """
    boot = _boot()
    return boot.lines(on, to) if boot and boot.lines else _Nothing()


def start() -> None:
    """Record from here on, where the recording began paused or was; the same as `resume`."""
    resume()


def pause() -> None:
    """Record nothing until `resume`: in all processes of the experiment. The time is left out of the analysis."""
    boot = _boot()
    if boot and boot.control:
        boot.control.pause()


def resume() -> None:
    """Go on recording after `pause`, or after somebody outside said so."""
    boot = _boot()
    if boot and boot.control:
        boot.control.resume()


def stop_process() -> None:
    """End the recording of this process for good, and take everything out of it that recording had put there."""
    boot = _boot()
    if boot and (ended := boot.control):
        vars(boot).update(control=None, lines=None)
        ended.end()


def sample(label: str = "") -> None:
    """Sample now what this process has used (CPU, memory, faults ...), under a label. Raises TypeError for no text."""
    _refuse_no_text("label of a sample", label)
    boot = _boot()
    if boot and boot.control:
        boot.control.sample(label)


def user_event(text: str) -> None:
    """Record that something happened, at this line, as `text` says. Raises TypeError for no text."""
    _refuse_no_text("text of an event", text)
    boot = _boot()
    if boot and boot.control:
        boot.control.user_event(text)


def _boot() -> "ModuleType | None":
    """Where a recording has put what controls it; None at the interpreter's end, when nothing can be imported."""
    try:
        from interpose import boot
    except ImportError:
        return None
    return boot


def _refuse_no_text(what: str, given: object) -> None:
    if not isinstance(given, str):
        raise TypeError(f"the {what} must be a str, not {type(given).__name__}")


def _find_checkout_folders() -> None:
    """Make `interpose.timing` and its neighbours importable where the package lies in its source tree.

    There they are folders at the top, beside this package and not in it.
    """
    package = __path__[0]
    top = os.path.dirname(package)
    if not os.path.exists(package + "/timing") and os.path.exists(top + "/timing/__init__.py"):
        __path__.append(top)


def __getattr__(name: str) -> object:
    """`transaction`, which does nothing where nothing is recorded, and `collector`, which declares a data collector;
    neither is there before somebody asks for it."""
    if name not in ("transaction", "collector"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(sys.modules.get("interpose.timing.shims"), name, None)
    if name == "collector":
        from interpose.instrumentation.collectors import collector as found
    elif found is None:
        from interpose.transactions import transaction as found
    globals()[name] = found
    return found


_find_checkout_folders()
