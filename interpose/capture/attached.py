"""Begins and ends a recording in a running program, at the request of `interpose attach` or `detach`.

The code that these commands bring into the program calls this module, on any thread. Its imports are kept for the next
time, because importing them again and again would leave much behind that only the program's garbage collector finds.
"""

import os
import sys

from interpose.capture import session
from interpose.capture.descent import NotRecorded
from interpose.errors import InterposeError
from interpose.instrumentation import system_library

# Errors of interpose itself. The caller handles all others, and recognises exceptions of the program's handlers.
OURS = (InterposeError, BlockingIOError, FileExistsError, FileNotFoundError, PermissionError, ImportError)
BOUND_AT_MOST = 50  # how many names are listed


def begin(given, before, told):
    """Begin recording with the settings `given` (variables and their texts); `before` is sys.modules without interpose.
    Returns the result: the `experiment`, or `why` there is none. It is also put into `told` at once, in case a handler
    of the program raises afterwards."""
    try:
        return _without_collector(_begin, given, told)
    except NotRecorded as reason:
        return {"why": str(reason) or "it is not to be recorded"}
    except OURS as error:
        if told:  # it was done before: that is nothing of ours
            raise
        return {"why": session.in_words(error)}
    finally:
        _lay_by(before)


def end(before, told):
    """End the recording; the program is then as before. Returns the result, and puts it into `told` at once."""
    try:
        return _without_collector(_end, told)
    except OURS as error:
        if told:  # it was done before: that is nothing of ours
            raise
        return {"why": session.in_words(error)}
    finally:
        _lay_by(before)


def _lay_by(before):
    """Remove from sys.modules the modules of interpose that the program did not import, and keep them for the next
    time; reset the declarations, which a recording changes."""
    try:
        _lay_all_by(before)
    except BaseException:  # by a handler of the program's
        _lay_all_by(before)
        raise


def _lay_all_by(before):
    ours = {name: module for name, module in sys.modules.copy().items() if name.startswith("interpose.")}
    laid_by = vars(sys.modules["interpose"]).setdefault("_laid_by", {})
    laid_by.update(ours)
    session.forget(before)
    for name in [name for name in laid_by if name in sys.modules]:
        del laid_by[name]
    shims = sys.modules.get("interpose.timing.shims")
    if shims is None or not shims.is_recording():
        system_library.forget()


def _without_collector(do, *given):
    """Do it while nothing that is made is looked through for what could go."""
    had = "gc" in sys.modules
    import gc

    collects = gc.isenabled()
    gc.disable()
    try:
        return do(*given)
    finally:
        if collects:
            gc.enable()
        if not had:
            sys.modules.pop("gc", None)


def _begin(given, told):
    from interpose.config import precedence
    from interpose.timing import shims

    if shims.is_recording():
        raise NotRecorded("is recorded already")
    session.begins_now()
    system_library.forget()
    session.refuse_what_is_never_recorded()
    program = {name: os.environ.get(name, "") for name in os.environ if not name.startswith("INTERPOSE")}
    told["experiment"] = session.begin_wanted(precedence.resolve({}, given, {}), "", {**program, **given})
    bound = [f"{name}.{key} ({original})" for name, key, original in shims.bound_before()]
    for each in bound[:BOUND_AT_MOST]:
        shims.note(f"bound before: {each}")
    told.update(bound=bound[:BOUND_AT_MOST], more=max(len(bound) - BOUND_AT_MOST, 0))
    return told


def _end(told):
    shims = sys.modules.get("interpose.timing.shims")
    if shims is None or not shims.is_recording():
        return {"why": "is not recorded"}
    try:
        told["left"] = shims.end(detached=True)
    finally:
        if not shims.is_recording():
            told.setdefault("left", 0)
    if "interpose.boot" in sys.modules:
        from interpose import boot

        boot.lines = boot.control = None
    return told
