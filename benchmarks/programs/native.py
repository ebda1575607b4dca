"""Has C code read a file, or take a free mutex; prints nanoseconds a time in the quickest round.

Usage: native.py LIBRARY ROUNDS TIMES kept|given reads|locks

The interpreter lock is kept meanwhile, or given up.
"""

import ctypes
import json
import os
import sys

library, rounds, times, lock, what = sys.argv[1:]
loaded = {"kept": ctypes.PyDLL, "given": ctypes.CDLL}[lock](library)
once_ns = getattr(loaded, f"{what}_ns")
once_ns.restype = ctypes.c_double
file = os.open(library, os.O_RDONLY)
print(json.dumps(min(once_ns(file, ctypes.c_long(int(times))) for _ in range(int(rounds)))))
