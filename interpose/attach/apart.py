"""Work in a separate process, which always finishes in order, whatever happens to this one.

What stops a program and borrows its threads must give them back. So Ctrl-C, SIGTERM and even SIGKILL for `interpose
attach` do not reach the work; it checks now and then whether somebody still waits for its result.
"""

from __future__ import annotations

import marshal
import os
import select
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from interpose.attach.tracee import CannotAttach

Work = Callable[[Callable[[], bool]], Any]


def apart(work: Work) -> Any:
    """What `work` gives: numbers, texts and collections of them. Raises CannotAttach as it does.

    `work` gets a function that says whether it is given up: then it ends soon.
    """
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.close(reading)
        _work_and_exit(work, writing)
    os.close(writing)
    try:
        with open(reading, "rb") as file:
            given = file.read()
    finally:
        with suppress(ChildProcessError):  # who started us ignores SIGCHLD
            os.waitpid(process, 0)
    if not given:
        raise CannotAttach(f"the process {process}, by which it was to be reached, was killed")
    done, why = marshal.loads(given)
    if why is not None:
        raise CannotAttach(why)
    return done


def _work_and_exit(work: Work, writing: int) -> None:
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        waits = select.poll()
        waits.register(writing, 0)  # the reader is gone: POLLERR is always reported
        given = marshal.dumps((work(lambda: bool(waits.poll(0))), None))
    except CannotAttach as error:
        given = marshal.dumps((None, str(error)))
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {error} ({os.path.basename(place.filename)}:{place.lineno})"
        given = marshal.dumps((None, f"this is a defect of interpose, please report it: {said}"))
    with suppress(OSError), open(writing, "wb") as file:
        file.write(given)
    os._exit(0)
