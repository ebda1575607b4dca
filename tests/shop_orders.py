"""Experiments of a shop, for the tests of reports."""

import time
from pathlib import Path

from tests.build import SECOND, START_NS, Build, event


def orders(name="test.1.er", **log):
    """An experiment of an order-entry program: 20 seconds, of which 5 in the database, 2 in files."""
    build = Build(Path(name), time_ns=int((time.time() - 140) * SECOND), **log)
    query, write = build.intrinsic("sqlite3.Cursor.execute", "db"), build.intrinsic("os.write", "file")
    save = build.stack(build.site("/home/u/shop/orders.py", 88, "save_order"))
    emit = build.stack(build.site("/usr/lib/python3/logging.py", 5, "emit", own=0), save)
    select = build.string("select * from orders where id = ?")
    rows = []
    for call in range(1, 101):
        start_ns = call * 100_000_000
        rows.append(
            event(start_ns, 50_000_000, 12_000_000, call=call, intrinsic=query, stack=save, detail=select)
        )
        rows.append(
            event(
                start_ns + 60_000_000,
                20_000_000,
                500_000,
                call=call + 100,
                intrinsic=write,
                stack=emit,
                bytes=10,
            )
        )
    build.events(rows)
    return build


def ended(build, wall_ns=20 * SECOND, cpu_ns=14 * SECOND, status=0):
    build.thread(
        end_ns=START_NS + wall_ns, end_cpu_ns=cpu_ns, recorded=200, own_wall_ns=20_000_000, main=1, tid=812
    )
    build.ended(wall_ns, cpu_ns, status)
    return build


def served(name="test.1.er"):
    """A server: 20 seconds, of which 15 it waited for work; 1,234,567 locks that were free."""
    build = Build(Path(name), time_ns=int((time.time() - 140) * SECOND))
    accept = build.intrinsic("socket.socket.accept", "net", "idle")
    acquire = build.intrinsic("threading.Lock.acquire", "sync")
    serve = build.stack(build.site("/home/u/shop/serve.py", 7, "serve"))
    rows = [event(0, 15 * SECOND, 0, call=1, intrinsic=accept + 1, stack=serve)]
    rows.append(event(15 * SECOND, SECOND, SECOND // 2, call=2, intrinsic=accept, stack=serve))
    rows.append(event(17 * SECOND, SECOND, 0, call=3, intrinsic=acquire, stack=serve))
    build.events(rows)
    build.thread(end_ns=START_NS + 20 * SECOND, end_cpu_ns=SECOND, recorded=3, passed=1_234_567, main=1, tid=812)
    build.ended(20 * SECOND, SECOND)
    return build
