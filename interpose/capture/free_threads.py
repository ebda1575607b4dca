"""What is not recorded in a free-threaded interpreter, because it depends on the interpreter lock.

The reasons are kept with the recording and appear in reports. If nothing remains, the process is not recorded.
"""

import sys

from interpose.capture.descent import NotRecorded
from interpose.instrumentation.search import library_places

OLDEST = (3, 14)  # before that version, nobody can take a reference to a code object that is just being freed
WHY = "not yet in a free-threaded interpreter"
WHAT_NEEDS_THE_LOCK = ("native", "lines", "coverage", "profile", "heap")
LEFT_OUT = (*WHAT_NEEDS_THE_LOCK, "what is awaited", "data collectors", "the dialogue", "libraries of other people")


def leave_out(wanted, environment):
    """Remove from the settings what is not recorded there. Raises NotRecorded."""
    if sys.version_info < OLDEST:
        raise NotRecorded("a free-threaded interpreter before CPython 3.14 is not supported")
    left_out = [word for word in WHAT_NEEDS_THE_LOCK if word in wanted.record]
    wanted.record = tuple([word for word in wanted.record if word not in left_out])
    if not wanted.record:
        raise NotRecorded(f"{' and '.join(left_out)}: {WHY}")
    if library_places(wanted, environment, sys.orig_argv):
        left_out += ["libraries other than interpose's own", *(["data collectors"] if wanted.collectors != () else [])]
    elif wanted.collectors:
        left_out.append("data collectors")
    if wanted.dialogue_bytes:
        left_out.append("the dialogue")
    wanted.lib, wanted.xl, wanted.collectors, wanted.dialogue_bytes = "S", (), (), 0
    wanted.warnings += [f"{what}: {WHY}" for what in left_out]
