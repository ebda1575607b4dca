"""What clients of databases and others that are not Python are recorded to call."""

from pathlib import Path

from tracing import events_of

from interpose.experiments.model.experiment import Experiment


def calls_in(work: Path, kind: str = "db") -> list[tuple[str, str, int, str]]:
    """The calls of that kind by the last process of the experiment: short names, texts, rows and errors."""
    experiment = Experiment(str(work / "test.1.er"))
    process = experiment.processes[-1]
    found = [(process.intrinsic(event.intrinsic), event) for event in events_of(process)]
    return [
        (intrinsic.name.partition(".")[2], process.string(event.detail), event.bytes, process.string(event.error))
        for intrinsic, event in found
        if intrinsic.kind == kind
    ]
