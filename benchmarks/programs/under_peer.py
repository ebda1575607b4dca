"""Runs a program under ddtrace or OpenTelemetry, as their documents have it for calls of sqlite3.

Usage: under_peer.py ddtrace|OpenTelemetry PROGRAM [WORD ...]
"""

import runpy
import sys
from pathlib import Path

peer, program = sys.argv[1:3]
del sys.argv[:2]
sys.path[0] = str(Path(program).parent)
if peer == "ddtrace":
    import ddtrace.auto  # noqa: F401
else:
    sys.path.append(str(Path(__file__).parent / "served"))
    from discarding import trace_to_nowhere
    from opentelemetry.instrumentation.sqlite3 import SQLite3Instrumentor

    trace_to_nowhere()
    SQLite3Instrumentor().instrument()
runpy.run_path(program, run_name="__main__")
