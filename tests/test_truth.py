"""The report of a program whose work is known."""

import json
import subprocess
import sys

from tracing import environment, write_program

PROGRAM = """
    import os, sqlite3, threading, time
    nothing = os.open(os.devnull, os.O_WRONLY)
    connection = sqlite3.connect(":memory:")
    connection.create_function("nap", 0, lambda: time.sleep(0.02))

    def compute(seconds):
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            pass

    def other():
        compute(0.2)
        time.sleep(0.1)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    compute(0.3)
    for _ in range(10):
        time.sleep(0.02)
    connection.cursor().execute("select nap(), nap()")
    for _ in range(50):
        os.write(nothing, b"0123456789")
"""


def report(directory, *words):
    done = subprocess.run(
        [sys.executable, "-m", "interpose", "report", "--format", "json", *words],
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_every_row_is_what_was_done(tmp_path):
    program = write_program(tmp_path, PROGRAM)
    subprocess.run([sys.executable, str(program)], cwd=tmp_path, env=environment(INTERPOSE="1"), check=True)
    rows = {row["kind"]: row for row in report(tmp_path, "--by", "kind")}
    intrinsics = {row["intrinsic"]: row for row in report(tmp_path, "--by", "intrinsic")}

    # What is known is the least that must be there; how much the machine added cannot be known.
    sleep, db, file, program_row = (rows[kind] for kind in ("sleep", "db", "file", "program"))
    assert (sleep["calls"], db["calls"], file["calls"], file["bytes"]) == (13, 1, 50, 500)
    assert sleep["self_wall_ns"] >= 340e6
    assert sleep["self_cpu_ns"] < sleep["self_wall_ns"] / 4
    assert intrinsics["sqlite3.Cursor.execute"]["wall_ns"] >= 40e6
    assert intrinsics["sqlite3.Cursor.execute"]["self_wall_ns"] < 40e6
    assert 490e6 <= program_row["self_cpu_ns"] < 1000e6
    # The main thread waits for the other one: 0.2 s of computing and 0.1 s of sleep.
    assert program_row["self_wall_ns"] - program_row["self_cpu_ns"] >= 290e6


def test_all_groupings_add_up_to_the_same_thread_time(tmp_path):
    program = write_program(tmp_path, PROGRAM)
    subprocess.run([sys.executable, str(program)], cwd=tmp_path, env=environment(INTERPOSE="1"), check=True)
    groupings = ("kind", "intrinsic", "site", "function", "detail", "thread", "process")
    sums = {
        (sum(row["self_wall_ns"] for row in rows), sum(row["self_cpu_ns"] for row in rows))
        for rows in (report(tmp_path, "--by", by) for by in groupings)
    }

    assert len(sums) == 1
