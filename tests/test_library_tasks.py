"""The system library's workers: tasks of celery, and requests that gunicorn's workers serve."""

import pytest
from exercises import assert_recorded_as_said, source_of
from tracing import events_of

pytestmark = pytest.mark.packages


def test_tasks_are_recorded_where_they_are_sent_and_where_they_are_run(traced):
    pytest.importorskip("celery")

    done = traced(source_of("celery_tasks"))
    founder = done.experiment.founder
    run = [event for event in done.events() if founder.intrinsic(event.intrinsic).name.startswith("celery.worker.")]

    assert done.returncode == 0, done.stderr
    assert_recorded_as_said(done, "celery_tasks")
    assert [founder.string(event.detail) for event in run] == ["shop.pack"] * 2
    assert all(event.wall_ns >= event.inner_wall_ns >= 10e6 for event in run)


def test_requests_are_recorded_in_each_of_gunicorns_workers(traced):
    for package in ("gunicorn", "flask"):
        pytest.importorskip(package)

    done = traced(source_of("gunicorn_workers"))
    served = [
        (process.intrinsic(event.intrinsic).kind, process.string(event.detail))
        for process in done.experiment.processes
        for event in events_of(process, "flask.Flask.wsgi_app")
    ]

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "0"
    assert sorted(served) == [("logic", "GET /prices/<name>")] * 10
