"""Programs that start others in many ways."""

import re
import subprocess
from collections import Counter
from pathlib import Path

from tracing import run_in

from interpose.experiments.model.experiment import Experiment


def run(directory: Path, *words: str, **variables: str) -> subprocess.CompletedProcess:
    directory.mkdir(exist_ok=True)
    return run_in(directory, words, XDG_STATE_HOME=str(directory), **variables)


def lineages(experiment: Path) -> Counter[str]:
    """How many processes there are of each lineage, without numbers."""
    return Counter(re.sub("[0-9]+", "", process.lineage) for process in Experiment(str(experiment)).processes)
