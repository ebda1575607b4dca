"""Calls drivers of databases in short rounds; prints nanoseconds a call in the quickest round of each.

Usage: drivers.py ROUNDS CALLS

Of psycopg2 and psycopg 3 rows that the client has already are fetched one by one; of redis-py a command is executed
that sends nothing.
"""

import json
import sys
from time import perf_counter_ns

import psycopg
import psycopg2
import redis

SERVER = "host=127.0.0.1 user=postgres dbname=test"


class Still(redis.Redis):
    """One that sends nothing."""

    def _execute_command(self, *words, **options):
        return None


def fetches(connect, calls):
    """A function that fetches a row, of as many as there may be calls."""
    cursor = connect(SERVER).cursor()
    cursor.execute(f"select generate_series(1, {calls})")
    return cursor.fetchone


def quickest_ns(call, arguments, rounds, calls):
    """Nanoseconds a call in the quickest round."""
    least_ns = sys.maxsize
    for _ in range(rounds):
        begun_ns = perf_counter_ns()
        for _ in range(calls):
            call(*arguments)
        least_ns = min(least_ns, perf_counter_ns() - begun_ns)
    return least_ns / calls


def main():
    rounds, calls = map(int, sys.argv[1:])
    subjects = {
        "psycopg2": (fetches(psycopg2.connect, rounds * calls), ()),
        "psycopg": (fetches(psycopg.connect, rounds * calls), ()),
        "redis": (Still().execute_command, ("GET", "key")),
    }
    print(json.dumps({name: quickest_ns(*subject, rounds, calls) for name, subject in subjects.items()}))


if __name__ == "__main__":
    main()
