"""How a founder that is not Python is recorded: by a plan (cext/program/program_plan.h), which a recording of this
process makes.
"""

import contextlib
import os
import sys

from interpose import library
from interpose.capture import interposed, session
from interpose.capture.descent import NotRecorded
from interpose.config.schema import Settings
from interpose.experiments.metadata import names
from interpose.instrumentation import native

RECORDED = ("calls", "native")


def write_plan(wanted: Settings, words: list[str], directory: str) -> None:
    """Write the plan into `directory`, where this process is recorded from then on: it should have been forked for
    that, and end. `words` are the founder's command. Raises NotRecorded and other errors."""
    session.begins_now()
    sys.orig_argv[:] = words
    wanted.record = RECORDED
    wanted.texts["INTERPOSE"] = ",".join(RECORDED)
    wanted.by, wanted.follow = "place", "on"
    session.heed_policy(wanted)
    if "t" in sys.abiflags:
        raise NotRecorded("native calls: not yet with a free-threaded interpreter")
    session.choose_redacted(wanted)
    found = library.resolve([(library.SYSTEM, native.intrinsics())], interposed.layers_of(wanted))
    session.record(wanted, directory, "", directory, interposed.at_levels(found, wanted))


def plan_of(wanted: Settings, words: list[str], directory: str) -> tuple[bytes, str]:
    """The plan, made in the empty `directory` by a forked child; empty if there is none, with the reason."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(writer, wanted, words, directory)
    os.close(writer)
    with open(reader, "rb") as pipe:
        why = pipe.read().decode("utf-8", "replace")
    with contextlib.suppress(ChildProcessError):  # where SIGCHLD is ignored, nobody waits for it
        os.waitpid(child, 0)
    if why:
        return b"", why
    with open(os.path.join(directory, names.PROGRAMS), "rb") as file:
        return file.read(), ""


def _answer(writer: int, wanted: Settings, words: list[str], directory: str) -> None:
    why = "it ended"
    try:
        write_plan(wanted, words, directory)
        why = ""
    except Exception as error:
        why = session.in_words(error) or why
    finally:
        os.write(writer, why.encode("utf-8", "replace"))
        os._exit(0)
