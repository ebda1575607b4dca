"""What a reader of many experiments does with one of them: from its path to an answer, in bytes.

The same function answers here, in a process beside, and on a Dask cluster.
"""

from __future__ import annotations

import json
import os
from typing import Any

from interpose.analysis.partial.coding import NotThis, packed, unpacked
from interpose.analysis.partial.partial import Head, Partial, Question, Reduction, reduced
from interpose.cli.experiment_choice import open_experiment, refuse_sampled
from interpose.cli.many.kept import Kept
from interpose.cli.many.reductions import REDUCTIONS
from interpose.cli.many.remote import fetched, is_remote
from interpose.errors import ExperimentError, InterposeError, UsageError
from interpose.experiments.model.files import Damages

ANSWER, FAILED = b"A", b"F"
STAMP_BYTES = 64


def task(path: str, question: Question, kept: str | None, stamp: str | None = None) -> bytes:
    """A task for `answered`: what to read, what is asked, the directory where answers are kept, if they are, and the
    name that the answer would have there first, if it is known."""
    return packed((path, question, kept, stamp), tuple[str, Question, str | None, str | None])


def answered(given: bytes) -> bytes:
    """The answer to a task, or why there is none; never an error."""
    path, question, kept, known = unpacked(given, tuple[str, Question, str | None, str | None])
    try:
        stamp, text = _answer(path, question, Kept(kept) if kept else None, known)
        return ANSWER + stamp.encode().ljust(STAMP_BYTES, b"-") + text
    except InterposeError as error:
        return failure(error)
    except MemoryError:
        return failure(ExperimentError(f"{path}: there is not enough memory to read it"))


def failure(error: InterposeError) -> bytes:
    """What a reader says that has no answer."""
    return FAILED + json.dumps([error.exit_code, str(error)]).encode()


def understood(answer: bytes, reduction: Reduction[Any]) -> Partial[Any]:
    """The partial result in an answer. Raises ExperimentError or UsageError if it has none, NotThis if it is none."""
    if answer[:1] == FAILED:
        code, text = json.loads(answer[1:])
        raise (UsageError if code == UsageError.exit_code else ExperimentError)(text)
    if answer[:1] != ANSWER:
        raise NotThis("neither an answer nor a failure")
    return read_partial(text_of(answer), reduction)


def text_of(answer: bytes) -> bytes:
    """The packed partial result in an answer."""
    return answer[len(ANSWER) + STAMP_BYTES :]


def stamp_of(answer: bytes) -> str:
    """The first name under which its reader has kept it; empty if it has not."""
    return answer[len(ANSWER) : len(ANSWER) + STAMP_BYTES].decode("ascii", "replace").strip("-")


def read_partial(text: bytes, reduction: Reduction[Any]) -> Partial[Any]:
    """The partial result that is packed in `text`. Raises NotThis."""
    head, value = unpacked(text, tuple[Head, reduction.kind])  # type: ignore[name-defined]
    return Partial(head, value)


def packed_partial(partial: Partial[Any], reduction: Reduction[Any]) -> bytes:
    """A partial result as `read_partial` reads it."""
    return packed((partial.head, partial.value), tuple[Head, reduction.kind])  # type: ignore[name-defined]


def _is_understood(text: bytes, reduction: Reduction[Any]) -> bool:
    try:
        read_partial(text, reduction)
    except NotThis:
        return False
    return True


def _changed_ns(path: str) -> int:
    """When a file was last added to the experiment; 0 if there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _answer(path: str, question: Question, kept: Kept | None, known: str | None) -> tuple[str, bytes]:
    """The name under which the answer is kept, empty if it is not, and the answer."""
    if not is_remote(path):
        return _read(path, question, kept, known)
    stamp = kept.stamp(path, question) if kept else None
    with fetched(path) as local:
        _, text = _read(local, question, None, None)
    return kept_as(kept, path, question, stamp, text), text


def kept_as(kept: Kept | None, path: str, question: Question, stamp: str | None, text: bytes) -> str:
    """Keep an answer if `kept` says where; the name under which it is kept, empty if it is not."""
    return stamp if kept and stamp and kept.keep(path, question, stamp, text) else ""


def _read(path: str, question: Question, kept: Kept | None, stamp: str | None) -> tuple[str, bytes]:
    if kept and stamp is None:
        stamp = kept.stamp(path, question)
    reduction = REDUCTIONS[question.reduction]
    known = kept.find_copy(path, question, stamp) if kept and stamp else None
    if known is not None and _is_understood(known, reduction):
        return stamp or "", known
    before_ns = _changed_ns(path)
    experiment = open_experiment(path, damages=Damages())
    if kept and _changed_ns(path) != before_ns:  # the first reader adds sources to it
        stamp = kept.stamp(path, question)
    if reduction.needs_all_calls:
        refuse_sampled(experiment)
    found = reduced(experiment, question, reduction)
    text = packed_partial(found, reduction)
    return kept_as(None if found.head.is_running else kept, path, question, stamp, text), text
