"""Background tasks of Starlette: part of their request's transaction, and told by name."""

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.survey import Survey
from interpose.analysis.findings.waits import BACKGROUND, sleeps
from interpose.reports.sentences.advice import advice_for

PROGRAM = """
    import asyncio, time
    from starlette.applications import Starlette
    from starlette.background import BackgroundTask, BackgroundTasks
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route
    def after():
        time.sleep(0.05)
    async def awaited():
        await asyncio.sleep(0.02)
    async def answer(request):
        tasks = BackgroundTasks([BackgroundTask(after), BackgroundTask(awaited)])
        return PlainTextResponse("ok", background=tasks)
    shop = Starlette(routes=[Route("/bg", answer)])
    sent = []
    async def ask():
        scope = {"type": "http", "method": "GET", "path": "/bg", "headers": [], "query_string": b""}
        async def receive():
            return {"type": "http.request"}
        async def send(message):
            sent.append(time.monotonic_ns())
        await shop(scope, receive, send)
    asyncio.run(ask())
    print(sent[-1])
"""


@pytest.mark.packages
def test_a_background_task_is_a_call_after_the_answer(traced):
    pytest.importorskip("starlette")

    done = traced(PROGRAM).ended_well()
    tasks = done.events(BACKGROUND)
    (request,) = done.events("starlette.routing.Route.handle")
    found = list(sleeps(Survey(Analysis(done.experiment))))

    assert len(tasks) == 2
    assert all(each.start_ns >= int(done.stdout) for each in tasks)
    assert [each.wall_ns >= least for each, least in zip(tasks, (50_000_000, 20_000_000), strict=True)] == [True, True]
    assert request.wall_ns >= sum(each.wall_ns for each in tasks)
    assert {each.transactions[0] for each in found} == {"GET /bg"}
    assert all("if it sleeps in one, the answer was sent before" in advice_for(each) for each in found)
