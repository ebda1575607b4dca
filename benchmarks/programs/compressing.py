"""Compresses the events of an experiment that has ended, as the monitor does; prints sizes as JSON.

Usage: compressing.py EXPERIMENT COPY

The experiment as it was before is copied to COPY.
"""

import json
import shutil
import sys
from pathlib import Path

from interpose.experiments.model.experiment import Experiment
from interpose.monitor import Monitor

path, copy = map(Path, sys.argv[1:])
shutil.copytree(path, copy)
events = Experiment(str(copy)).founder.events
count = sum(head.used for _, head in events.heads())
monitor = Monitor(str(path))
while not monitor.is_done:
    monitor.look()
monitor.close()
record_bytes = events.layout.record_bytes
stored_bytes = (path / "events.zst").stat().st_size
sizes = {"events": count, "record_bytes": record_bytes, "raw_bytes": count * record_bytes}
print(json.dumps({**sizes, "stored_bytes": stored_bytes}))
