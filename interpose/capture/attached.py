"""The beginning and the end of a recording in a program that runs already, at the word of somebody outside.

It is called by code that `interpose attach` and `interpose detach` bring into the program, in whichever thread came by.
What of us is needed for that is laid by for the next time: to import it again and again would leave much behind that
only the program's own garbage collection finds.
"""

import os
import sys

from interpose.capture import session
from interpose.capture.descent import NotRecorded
from interpose.errors import InterposeError
from interpose.instrumentation import system_library

# What may go wrong with us. Anything else is told by who called, and knows what a handler of the program's raised.
OURS = (InterposeError, BlockingIOError, FileExistsError, FileNotFoundError, PermissionError, ImportError)
BOUND_AT_MOST = 50  # names that are told of; of more, how many


def begin(given, before, told):
    """Begin recording as the settings `given` (variables and their texts) say; `before` is what sys.modules had without
    us. Gives what there is to tell of it: the `experiment`, or `why` there is none. It is in `told` as soon as it is
    so, whatever a handler of the program's raises afterwards."""
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
    """End the recording; the program is as before afterwards. Gives what there is to tell of it, and puts it in `told`
    as soon as it is so."""
    try:
        return _without_collector(_end, told)
    except OURS as error:
        if told:  # it was done before: that is nothing of ours
            raise
        return {"why": session.in_words(error)}
    finally:
        _lay_by(before)


def _lay_by(before):
    """Take out of sys.modules what is ours and did not come from the program, and keep it for the next time; what is
    declared, which a recording changes, as it was."""
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
