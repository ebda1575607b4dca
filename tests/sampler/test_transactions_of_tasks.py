"""The CPU time by function of transactions that tasks of asyncio run, against what the program says that it used."""

from __future__ import annotations

from collections import defaultdict

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.profile.by_transaction import code_by_transaction
from interpose.analysis.transactions.response_times import transactions

COMPUTE = """
import asyncio, json, time
spent = {}
def slow():
    x = 0
    for i in range(100000): x += i
def fast():
    x = 0
    for i in range(30000): x += i
def timed(function, name):
    began = time.thread_time()
    function()
    spent[name] = spent.get(name, 0) + time.thread_time() - began
"""
TASKS = """
import interpose
async def job(function, name, times):
    for _ in range(times):
        with interpose.transaction(name):
            for _ in range(3):
                timed(function, name)
                await asyncio.sleep(0.001)
"""
SEQUENTIAL = f"""{TASKS}
async def main():
    for _ in range(20):
        await job(slow, "slow", 3)
        await job(fast, "fast", 3)
"""
CONCURRENT = f"""{TASKS}
async def main():
    jobs = [job(slow, "slow", 20) for _ in range(3)] + [job(fast, "fast", 40) for _ in range(2)]
    await asyncio.gather(*jobs)
"""
WITHOUT_AWAITS = """
import interpose
def job(function, name):
    with interpose.transaction(name):
        timed(function, name)
async def main():
    for _ in range(200):
        job(slow, "slow")
        job(fast, "fast")
"""
SERVED = """
import httpx
from fastapi import FastAPI
app = FastAPI()
async def serve(function, path):
    for _ in range(3):
        timed(function, f"GET {path}")
        await asyncio.sleep(0.001)
@app.get("/slow")
async def of_slow(): await serve(slow, "/slow")
@app.get("/fast")
async def of_fast(): await serve(fast, "/fast")
async def main():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://app") as client:
        async def ask(path):
            for _ in range(30): await client.get(path)
        await asyncio.gather(*map(ask, ("/slow", "/fast", "/slow", "/fast", "/slow")))
"""
PROGRAMS = {"sequential": SEQUENTIAL, "concurrent": CONCURRENT, "without awaits": WITHOUT_AWAITS, "FastAPI": SERVED}


def found_in(experiment):
    """What the transactions used between their calls, by name, and the same by function."""
    analysis = Analysis(experiment)
    made = transactions(analysis)
    found = defaultdict(dict)
    for name, function in code_by_transaction(analysis, made):
        found[name][function.site.function] = function.code
    return {row.name: row.split["logic"].cpu_ns for row in made.rows if "logic" in row.split}, found


@pytest.mark.alone
@pytest.mark.parametrize("how", PROGRAMS)
def test_each_function_is_in_the_transaction_of_the_task_that_ran_it(record, how):
    if how == "FastAPI":
        pytest.importorskip("fastapi")
        pytest.importorskip("httpx")
    program = f"{COMPUTE}{PROGRAMS[how]}asyncio.run(main())\nprint(json.dumps(spent))\n"
    spent, experiment = record(program, "--profile", "400")

    of_code, found = found_in(experiment)

    for name, seconds in spent.items():
        function = name.removeprefix("GET /")
        codes = found[name]
        assert sum(each.cpu_ns for each in codes.values()) == pytest.approx(of_code[name], abs=len(codes))
        assert of_code[name] == pytest.approx(seconds * 1e9, rel=0.25)  # the code around it uses some, too
        assert codes[function].cpu_ns + 2 * codes[function].margin_ns >= 0.85 * seconds * 1e9
        elsewhere = sum(each[function].cpu_ns for other, each in found.items() if other != name and function in each)
        assert elsewhere <= 2 * codes[function].margin_ns  # one margin holds 19 times of 20
