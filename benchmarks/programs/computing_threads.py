"""Threads that compute for some seconds; prints the CPU time of the process and the wall time, in seconds.

Usage: computing_threads.py THREADS SECONDS
"""

import json
import sys
import threading
from time import monotonic, process_time


def compute(until):
    while monotonic() < until:
        sum(number * number for number in range(1000))


begun = monotonic()
threads = [threading.Thread(target=compute, args=(begun + float(sys.argv[2]),)) for _ in range(int(sys.argv[1]))]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(json.dumps({"cpu_s": process_time(), "wall_s": monotonic() - begun}))
