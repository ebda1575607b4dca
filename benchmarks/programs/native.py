"""Has C code read a file; prints nanoseconds a read in the quickest round.

Usage: native.py LIBRARY ROUNDS TIMES kept|given

The interpreter lock is kept meanwhile, or given up.
"""

import ctypes
import json
import os
import sys

library, rounds, times, lock = sys.argv[1:]
loaded = {"kept": ctypes.PyDLL, "given": ctypes.CDLL}[lock](library)
loaded.reads_ns.restype = ctypes.c_double
file = os.open(library, os.O_RDONLY)
print(json.dumps(min(loaded.reads_ns(file, ctypes.c_long(int(times))) for _ in range(int(rounds)))))
