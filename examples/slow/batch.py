"""A job that writes 12 files, and converts each by a Python program of its own."""

import subprocess
import sys

CONVERT = """
import sys
print(sum(len(word) ** 2 for line in open(sys.argv[1]) for word in line.split()))
"""


def convert(path):
    return subprocess.run([sys.executable, "convert.py", path], check=True, capture_output=True).stdout


with open("convert.py", "w") as file:
    file.write(CONVERT)
for number in range(12):
    with open(f"part{number}.txt", "w") as file:
        file.write("some words that are to be converted\n" * 40_000)
    convert(f"part{number}.txt")
