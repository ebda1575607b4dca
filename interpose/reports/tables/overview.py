"""The table of usage samples: what each process used in each stretch of time between two of them."""

from __future__ import annotations

from collections.abc import Iterable

from interpose.analysis.calls.groupings import process_label
from interpose.analysis.time.usage import COUNTED, Usage
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.table import Column, Table, Values
from interpose.reports.formats.units import SECOND_NS, duration, percent

NAMES = ("process", "since_ns", "elapsed_ns", *COUNTED, "max_rss_bytes", "gap")
MIB_BYTES = 1 << 20


def overview_table(experiment: Experiment, rows: Iterable[Usage]) -> Table:
    """The table of `rows` of `experiment`; they are taken one after the other."""
    start_ns = experiment.founder.log.start_ns
    columns = [
        Column("since start", lambda row: f"{(row.start_ns - start_ns) / SECOND_NS:.3f} s"),
        Column("for", lambda row: duration(row.elapsed_ns) + (" gap" if row.is_gap else "")),
        Column("CPU", lambda row: duration(row.used["cpu_ns"])),
        Column("busy", lambda row: percent(row.used["cpu_ns"], row.elapsed_ns)),
        Column("wait for CPU", lambda row: duration(row.used["run_delay_ns"])),
        Column("memory", lambda row: f"{row.max_rss_bytes / MIB_BYTES:,.1f} MiB"),
        Column("system", lambda row: duration(row.used["system_ns"]), optional=True),
        Column("faults", lambda row: f"{row.used['minor_faults'] + row.used['major_faults']:,}", optional=True),
        Column("gave up", lambda row: f"{row.used['voluntary_switches']:,}", optional=True),
        Column("taken", lambda row: f"{row.used['involuntary_switches']:,}", optional=True),
        Column("blocks in", lambda row: f"{row.used['in_blocks']:,}", optional=True),
        Column("blocks out", lambda row: f"{row.used['out_blocks']:,}", optional=True),
    ]
    if len(experiment.processes) > 1:
        columns.insert(0, Column("process", lambda row: row.process.lineage or "founder", right=False))
    return Table(NAMES, lambda row: _values(row, start_ns), columns, rows)


def _values(row: Usage, start_ns: int) -> Values:
    return {
        "process": process_label(row.process),
        "since_ns": row.start_ns - start_ns,
        "elapsed_ns": row.elapsed_ns,
        **row.used,
        "max_rss_bytes": row.max_rss_bytes,
        "gap": row.is_gap,
    }
