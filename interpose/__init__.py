"""Shows where a Python program spends its time: computing or waiting, in which call, from which line.

PYTEST_DONT_REWRITE: otherwise a recorded pytest would warn that this module is already imported.
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
    """The context that `trace_lines` returns if nothing is recorded."""

    def __enter__(self) -> object:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def trace_lines(on: bool = True, to: str = "") -> "AbstractContextManager[object]":
    """Switch line trace on or off. Used in a `with`, it is off again at the end, unless it was on before.

    `to` names the global in which `interpose lines --global` stores the counts: `^lvtr("MYTRACE",$J)`. One given when
    line trace is switched off takes precedence. Does nothing if this process is not recorded.
    """
    boot = _boot()
    return boot.lines(on, to) if boot and boot.lines else _Nothing()


def start() -> None:
    """Start recording if it began paused or was paused; the same as `resume`."""
    resume()


def pause() -> None:
    """Stop recording in all processes of the experiment until `resume`. Reports show the time as `paused`."""
    boot = _boot()
    if boot and boot.control:
        boot.control.pause()


def resume() -> None:
    """Continue recording after a pause, whether the program or a command paused it."""
    boot = _boot()
    if boot and boot.control:
        boot.control.resume()


def stop_process() -> None:
    """End the recording of this process for good, and remove all shims."""
    boot = _boot()
    if boot and (ended := boot.control):
        vars(boot).update(control=None, lines=None)
        ended.end()


def sample(label: str = "") -> None:
    """Record what this process has used so far (CPU, memory, page faults ...), with a label.

    Raises TypeError if `label` is not a str.
    """
    _refuse_no_text("label of a sample", label)
    boot = _boot()
    if boot and boot.control:
        boot.control.sample(label)


def user_event(text: str) -> None:
    """Record an event at this line, with a text. Raises TypeError if `text` is not a str."""
    _refuse_no_text("text of an event", text)
    boot = _boot()
    if boot and boot.control:
        boot.control.user_event(text)


def _boot() -> "ModuleType | None":
    """The module with the controls of a recording; None at the interpreter's end, when nothing can be imported."""
    try:
        from interpose import boot
    except ImportError:
        return None
    return boot


def _refuse_no_text(what: str, given: object) -> None:
    if not isinstance(given, str):
        raise TypeError(f"the {what} must be a str, not {type(given).__name__}")


def _find_checkout_folders() -> None:
    """Make `interpose.timing` and its neighbours importable from a checkout, where they are folders beside this one."""
    package = __path__[0]
    top = os.path.dirname(package)
    if not os.path.exists(package + "/timing") and os.path.exists(top + "/timing/__init__.py"):
        __path__.append(top)


def __getattr__(name: str) -> object:
    """Import `transaction` (which does nothing unless this process is recorded) and `collector` at their first use."""
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
