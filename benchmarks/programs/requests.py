"""Serves requests, each a transaction of ten calls; or makes calls that are all about something else.

Usage: requests.py served|details|names NUMBER
"""

import os
import sys

from interpose import transaction

SINK = os.open(os.devnull, os.O_WRONLY)
PAGES = ("list", "show", "buy", "pay")


def served(number):
    """Requests for four pages."""
    for place in range(number):
        with transaction(PAGES[place % len(PAGES)]):
            for _ in range(10):
                os.write(SINK, b"x")


def details(number):
    """Each about another path."""
    for place in range(number):
        os.path.exists(f"/nonexistent/{place}")


def names(number):
    """Each a transaction with another name."""
    for place in range(number):
        with transaction(f"job {place} of many"):
            os.write(SINK, b"x")


{"served": served, "details": details, "names": names}[sys.argv[1]](int(sys.argv[2]))
print("null")
