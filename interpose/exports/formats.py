"""What an experiment can be exported to: a name for each format, what reads it, and the module that writes it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import BinaryIO, NamedTuple

from interpose.analysis.analysis import Analysis

Writer = Callable[[Analysis, BinaryIO], None]


class Format(NamedTuple):
    """A format: its purpose, and whether a terminal can show it.

    `function` of its `module`, or of the module with its name, writes it; if that is empty, `write_directory` writes a
    directory. `takes_many` if several experiments can be written at a time.
    """

    name: str
    meaning: str
    is_text: bool = True
    function: str = "write"
    takes_many: bool = True
    module: str = ""

    def writer(self) -> Writer:
        """What writes it."""
        found: Writer = getattr(self._module(), self.function)
        return found

    def directory_writer(self) -> Callable[[Analysis, str], None]:
        """What writes it, where it is a directory."""
        found: Callable[[Analysis, str], None] = self._module().write_directory
        return found

    def _module(self) -> ModuleType:
        return importlib.import_module(f"interpose.exports.{self.module or self.name}")


FORMATS = {
    each.name: each
    for each in (
        Format("raw", "every record of every file, as text", takes_many=False),
        Format("perfetto", "for ui.perfetto.dev: each call on the track of its thread", False, takes_many=False),
        Format("chrome", "for chrome://tracing and viewers of its format: the same", takes_many=False),
        Format("otlp", "for OpenTelemetry: calls as spans; --endpoint sends them", takes_many=False),
        Format("pprof", "for go tool pprof, Pyroscope, Parca: stacks with their times", False),
        Format("speedscope", "for speedscope.app: the same stacks"),
        Format("firefox", "for profiler.firefox.com: the same stacks"),
        Format("callgrind", "for KCachegrind, callgrind_annotate: the same by line"),
        Format("parquet", "for DuckDB, pandas, Polars: a directory of tables", False, "", takes_many=False),
        Format("folded", "for flamegraph.pl, inferno: stacks with wall time"),
        Format("folded-cpu", "the same with CPU time", function="write_cpu", module="folded"),
        Format("otlp-profiles", "for readers of OpenTelemetry profiles; experimental", False, module="otlp_profiles"),
    )
}
