"""Has C code make six calls a turn; prints how many turns there were.

Usage: native_counts.py LIBRARY TURNS
"""

import ctypes
import json
import sys

loaded = ctypes.CDLL(sys.argv[1])
loaded.turns.restype = ctypes.c_long
turns = int(sys.argv[2])
if loaded.turns(ctypes.c_long(turns)) != turns:
    sys.exit("a call failed")
print(json.dumps(turns))
