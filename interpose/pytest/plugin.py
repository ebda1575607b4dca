"""The hooks of a recorded session: tests are transactions, and their calls can have limits."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import pytest

from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import with_forebears
from interpose.experiments.model.files import Damages
from interpose.experiments.model.process import Process
from interpose.pytest.limits import Limit, calls_between, counted, limits_of, told, why_unseen
from interpose.pytest.options import MARK
from interpose.pytest.recording import BESIDE_COVERAGE, KINDS
from interpose.pytest.summary import summary_of
from interpose.pytest.unittests import Span, span_of
from interpose.reports.formats.units import count
from interpose.timing import shims

_transaction = pytest.StashKey[shims.transaction]()
_limits = pytest.StashKey[list[Limit]]()
Passing = Generator[None, object, object]


class Plugin:
    """The hooks for one session; `failed` is why nothing, or not everything, is recorded. Without `with_calls`,
    coverage alone was requested."""

    def __init__(self, failed: str, with_calls: bool = True) -> None:
        self._failed = failed
        self._with_calls = with_calls
        self._seen: set[str] = set()
        self._unseen: dict[str, list[str]] = {}  # why limits are not checked, and for each its test
        self._settings: Mapping[str, str] | None = None  # the settings of the recording

    def pytest_report_header(self) -> list[str]:
        """The experiment, or why there is none."""
        place = directory()
        lines = [f"interpose: {os.path.relpath(place)}"] if place else []
        return [*lines, *self._told_failure()]

    def _told_failure(self) -> list[str]:
        recorded = "" if directory() else "nothing is recorded: "
        return [f"interpose: {recorded}{self._failed}"] if self._failed else []

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Do not look for tests in the experiment."""
        return True if str(collection_path) == directory() else None

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Read the limits. Raises pytest.UsageError for an invalid one."""
        for item in items:
            for mark in item.iter_markers(MARK):
                try:
                    found = list(limits_of(mark.args, dict(mark.kwargs)))
                except ValueError as error:
                    raise pytest.UsageError(f"{item.nodeid}: {MARK}: {error}") from None
                item.stash.setdefault(_limits, []).extend(found)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Passing:
        """Begin the test's transaction before its fixtures."""
        item.stash[_transaction] = shims.transaction(item.nodeid).__enter__()
        return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Passing:
        """Fail a test that passed, but made more calls than its limit."""
        limits = self._to_look_at(item)
        if not limits:
            return (yield)
        before = _counted()
        with span_of(getattr(item, "instance", None)) as span:
            result = yield
        if wrong := _exceeded(limits, span, before, str(item.config.rootpath)):
            pytest.fail("\n".join(wrong), pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Passing:
        """End the transaction after the fixtures."""
        try:
            return (yield)
        finally:
            if begun := item.stash.get(_transaction, None):
                begun.__exit__(None, None, None)

    def _to_look_at(self, item: pytest.Item) -> list[Limit]:
        why = [(limit, self._why_unseen(limit)) for limit in item.stash.get(_limits, [])]
        for _, reason in why:
            if reason:
                self._unseen.setdefault(reason, []).append(item.nodeid)
        return [limit for limit, reason in why if not reason]

    def _why_unseen(self, limit: Limit) -> str:
        if not directory():
            return "nothing is recorded"
        if self._settings is None:
            with shims.unrecorded():
                self._settings = _opened().log.settings
        return why_unseen(limit, self._settings)

    def _told_unseen(self) -> Iterator[str]:
        for why, tests in self._unseen.items():
            if why == f"{KINDS}={BESIDE_COVERAGE}" and not self._with_calls:
                of = count(len(set(tests)), "test")
                yield f"limits of {of} not checked: max_calls needs --interpose besides --interpose-coverage"
            else:
                yield f"{count(len(tests), 'limit')} not checked: {why}"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the names of the tests that ran, in any worker."""
        self._seen.add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print which tests waited longest, and what could not be done."""
        lines = self._told_failure()
        lines += [f"interpose: {line}" for line in self._told_unseen()]
        if place := directory():
            with shims.unrecorded():
                lines += summary_of(place, self._seen)
        for line in lines:
            terminalreporter.write_line(line)


def directory() -> str:
    """The experiment of this process; empty if it is not recorded."""
    return os.fsdecode(shims.directory() or b"")


def _opened() -> Process:
    """This process as it is recorded by now."""
    own = directory()
    above, name = os.path.split(own)
    lineage = name.removesuffix(names.SUFFIX)
    if above.endswith(names.SUFFIX) and names.is_lineage(lineage):
        return with_forebears(above, lineage, Damages())
    return with_forebears(own, "", Damages())


def _counted() -> dict[int, int]:
    with shims.unrecorded():
        return counted(_opened())


def _exceeded(limits: list[Limit], span: Span, before: dict[int, int], cwd: str) -> list[str]:
    """What is to be said of the limits that were exceeded."""
    with shims.unrecorded():
        process = _opened()
        calls = calls_between(process, span.begin_ns, span.end_ns, before)
        return [wrong for wrong in (told(limit, calls, process, cwd) for limit in limits) if wrong]
