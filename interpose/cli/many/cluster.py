"""Reads experiments on a Dask cluster, whose workers have interpose and see the same paths or URLs."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from interpose.cli.many.work import answered, failure
from interpose.errors import ExperimentError, InterposeError, UsageError

_CONNECTED_WITHIN_S = 10


def answers(tasks: Sequence[tuple[str, bytes]], address: str) -> Iterator[tuple[int, bytes]]:
    """The position of each task and its answer, in any order; tasks have the name of what they read. Raises
    InterposeError if there is no cluster at `address`."""
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=_CONNECTED_WITHIN_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        told = str(error).strip().partition("\n")[0]
        raise InterposeError(f"--dask {address}: no cluster answers: {told}") from error
    with client, client.as_current():
        futures = client.map(answered, [task for _, task in tasks], pure=False)
        places = {future.key: place for place, future in enumerate(futures)}
        for future in distributed.as_completed(futures, raise_errors=False):
            place = places[future.key]
            yield place, _answer(future, tasks[place][0])


def _answer(future: Any, name: str) -> bytes:
    """The answer, or why there is none: the worker was killed, or has another version."""
    try:
        found = future.result()
    except Exception as error:
        told = str(error).strip().partition("\n")[0]
        return failure(ExperimentError(f"{name}: the worker that read it failed: {type(error).__name__}: {told}"))
    return found if isinstance(found, bytes) else failure(ExperimentError(f"{name}: the worker's answer is none"))


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise UsageError("--dask: the package distributed is missing: pip install 'interpose[dask]'") from None
