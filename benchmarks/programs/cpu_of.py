"""Runs a command, and prints the CPU time in seconds that it took.

Usage: cpu_of.py COMMAND [ARGUMENT ...]
"""

import resource
import subprocess
import sys

subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
