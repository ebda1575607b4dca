"""Asks a raw file where it is; prints nanoseconds a call in the quickest round.

Usage: collectors.py ROUNDS CALLS
"""

import json
import sys
from time import perf_counter_ns


def round_ns(tell, calls):
    """Nanoseconds a call, the loop around it included."""
    begun_ns = perf_counter_ns()
    for _ in range(calls):
        tell()
    return (perf_counter_ns() - begun_ns) / calls


rounds, calls = map(int, sys.argv[1:])
with open(__file__, "rb", buffering=0) as file:
    print(json.dumps(min(round_ns(file.tell, calls) for _ in range(rounds))))
