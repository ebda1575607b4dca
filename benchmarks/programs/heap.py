"""Builds objects that stay, and many more that pass; prints the CPU time of each round in milliseconds, as JSON.

Usage: heap.py ROUNDS
"""

import json
import sys
from time import process_time_ns

ORDERS = json.dumps([{"id": n, "name": f"customer {n}", "items": [n, n + 1, n + 2], "paid": None} for n in range(4000)])


def stay():
    return [(number, str(number)) for number in range(30_000)]


def pass_by():
    text = ""
    for number in range(60_000):
        text = f"{number}: {text[:40]}"
    return text


def parse():
    return [order["name"].upper() for order in json.loads(ORDERS)]


def round_ms():
    begun_ns = process_time_ns()
    kept = stay(), pass_by(), parse()
    assert kept
    return (process_time_ns() - begun_ns) / 1e6


print(json.dumps([round_ms() for _ in range(int(sys.argv[1]))]))
