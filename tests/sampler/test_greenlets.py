"""Calls of a greenlet that has switched away are in progress, but nothing of the thread's table."""

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.profile.profiled import innermost, profiled

PROGRAM = """
import greenlet, json, sqlite3, time

def answer(x):
    main.switch()
    return x

def ask():
    connection.execute("select answer(1)").fetchall()

def computes():
    s = 0
    while time.thread_time() < until:
        for i in range(3000): s += i * i

connection = sqlite3.connect(":memory:")
connection.create_function("answer", 1, answer)
main = greenlet.getcurrent()
other = greenlet.greenlet(ask)
other.switch()
began = time.thread_time()
until = began + 0.7
computes()
print(json.dumps({"computes": time.thread_time() - began}))
other.switch()
"""


@pytest.mark.packages
def test_what_another_greenlet_computes_meanwhile_is_code(record):
    pytest.importorskip("greenlet")

    spent, experiment = record(PROGRAM, "--profile", "250")
    code = profiled(Analysis(experiment)).code(lambda frames: innermost(frames).function)

    assert code["computes"].cpu_ns == pytest.approx(spent["computes"] * 1e9, rel=0.15)
