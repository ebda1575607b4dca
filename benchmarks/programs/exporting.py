"""Exports an experiment; prints the CPU time and the time it took, the bytes written, and the largest memory.

Usage: exporting.py EXPERIMENT FORMAT FILE
"""

import json
import resource
import sys
import time
from pathlib import Path

from interpose.cli.main import main

experiment, to, out = sys.argv[1:]
begin, begun = time.process_time(), time.monotonic()
code = main(["export", experiment, "--to", to, "-o", out])
seconds, elapsed = time.process_time() - begin, time.monotonic() - begun
written = Path(out) / "calls.parquet" if Path(out).is_dir() else Path(out)
print(
    json.dumps(
        {
            "code": code,
            "seconds": seconds,
            "elapsed_seconds": elapsed,
            "bytes": written.stat().st_size,
            "memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
    )
)
