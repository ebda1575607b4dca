"""The beginning and the end of a recording in a program that runs already, at the word of somebody outside.

It is called by code that `interpose attach` and `interpose detach` bring into the program, in whichever thread came by.
What of us is needed for that is laid by for the next time: to import it again and again would leave much behind that
only the program's own garbage collection finds.
"""

import os
import sys

from interpose import session, system_library
from interpose.errors import InterposeError

# What may go wrong with us. Anything else is told by who called, and knows what a handler of the program's raised.
OURS = (InterposeError, BlockingIOError, FileExistsError, FileNotFoundError, PermissionError, ImportError)
BOUND_AT_MOST = 50  # names that are told of; of more, how many


def begin(given, before):
    """Begin recording as the settings `given` (variables and their texts) say; `before` is what sys.modules had without
    us. Gives what there is to tell of it: the `experiment`, or `why` there is none."""
    try:
        return _without_collector(_begin, given)
    except session.NotRecorded as reason:
        return {"why": str(reason) or "it is not to be recorded"}
    except OURS as error:
        return {"why": session.in_words(error)}
    finally:
        _lay_by(before)


def end(before):
    """End the recording; the program is as before afterwards. Gives what there is to tell of it."""
    try:
        return _without_collector(_end)
    except OURS as error:
        return {"why": session.in_words(error)}
    finally:
        _lay_by(before)


def _lay_by(before):
    """Take out of sys.modules what is ours and did not come from the program, and keep it for the next time; what is
    declared, which a recording changes, as it was."""
    ours = {name: module for name, module in sys.modules.copy().items() if name.startswith("interpose.")}
    session.forget(before)
    laid_by = {name: module for name, module in ours.items() if name not in sys.modules}
    vars(sys.modules["interpose"])["_laid_by"] = laid_by
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


def _begin(given):
    from interpose import settings
    from interpose.timing import shims

    if shims.is_recording():
        raise session.NotRecorded("is recorded already")
    session.begins_now()
    system_library.forget()
    session.refuse_what_is_never_recorded()
    program = {name: os.environ.get(name, "") for name in os.environ if not name.startswith("INTERPOSE")}
    directory = session.begin_wanted(settings.resolve({}, given, {}), "", {**program, **given})
    bound = [f"{name}.{key} ({original})" for name, key, original in shims.bound_before()]
    for each in bound[:BOUND_AT_MOST]:
        shims.note(f"bound before: {each}")
    return {"experiment": directory, "bound": bound[:BOUND_AT_MOST], "more": max(len(bound) - BOUND_AT_MOST, 0)}


def _end():
    shims = sys.modules.get("interpose.timing.shims")
    if shims is None or not shims.is_recording():
        return {"why": "is not recorded"}
    left = shims.end(detached=True)
    if "interpose.boot" in sys.modules:
        from interpose import boot

        boot.lines = boot.control = None
    return {"left": left}
