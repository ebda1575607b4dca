"""When the test method of a unittest class runs, without its setUp and tearDown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest import TestCase

SET_UP, TEAR_DOWN = "_callSetUp", "_callTearDown"  # since Python 3.8; they also run asyncSetUp and asyncTearDown


@dataclass
class Span:
    """Monotonic times in nanoseconds between which the test itself ran."""

    begin_ns: int
    end_ns: int = 0


@contextmanager
def span_of(instance: object) -> Iterator[Span]:
    """The span of a test, complete at the end: if it is a method of the unittest class of `instance`, of the method
    alone. What runs before and after it is wrapped; the method has the same frames around it as without us. A class
    with a `run` of its own that calls neither, such as those of Twisted, has the span of all."""
    span = Span(time.monotonic_ns())
    began: set[str] = set()

    def after_set_up(set_up: Callable[[], object]) -> None:
        try:
            set_up()
        finally:
            span.begin_ns = time.monotonic_ns()

    def before_tear_down(tear_down: Callable[[], object]) -> None:
        span.end_ns = time.monotonic_ns()
        tear_down()

    wrapped = {SET_UP: after_set_up, TEAR_DOWN: before_tear_down} if isinstance(instance, TestCase) else {}
    for name, around in wrapped.items():
        if found := getattr(instance, name, None):
            setattr(instance, name, lambda around=around, found=found: around(found))
            began.add(name)
    try:
        yield span
    finally:
        span.end_ns = span.end_ns or time.monotonic_ns()
        for name in began:
            delattr(instance, name)
