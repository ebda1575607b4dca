"""The system library's HTTP: clients of the standard library and of packages, and who serves them."""

import sys

import pytest
from exercises import assert_recorded_as_said, source_of


def test_every_call_of_the_standard_librarys_clients_is_recorded_as_it_was(traced):
    done = traced(source_of("http_standard"))

    assert_recorded_as_said(done, "http_standard")
    assert "hush" not in "".join(done.experiment.founder.string(event.detail) for event in done.events())


@pytest.mark.packages
def test_every_call_of_requests_is_recorded_and_every_request_that_flask_serves(traced):
    for package in ("requests", "flask"):
        pytest.importorskip(package)

    done = traced(source_of("http_requests"))
    founder = done.experiment.founder
    served = [founder.string(event.detail) for event in done.events("flask.Flask.wsgi_app")]
    paths = ["prices/<name>", "prices/<name>", "prices/<name>", "moved", "prices/<name>", "prices/<name>"]

    assert_recorded_as_said(done, "http_requests")
    assert served == [f"{'POST' if number == 2 else 'GET'} /{path}" for number, path in enumerate(paths)]
    assert founder.log.interposed == {"by": "place", "why": ""}
    assert not [event for event in done.events() if "hush" in founder.string(event.detail)]


@pytest.mark.packages
def test_every_call_of_httpx_and_aiohttp_is_recorded_and_what_aiohttp_serves(traced):
    for package in ("httpx", "aiohttp"):
        pytest.importorskip(package)

    done = traced(source_of("http_asynchronous"))
    founder = done.experiment.founder
    served = {founder.string(event.detail): event for event in done.events("aiohttp.web.Application.handle")}
    asked = done.events("httpx.AsyncClient.send") + done.events("aiohttp.ClientSession.request")

    assert_recorded_as_said(done, "http_asynchronous")
    assert set(served) == {"GET /prices/{name}", "POST /prices/{name}", "GET /talk"}
    assert served["POST /prices/{name}"].wall_ns >= 10e6
    assert all(event.task and event.cpu_ns <= event.wall_ns for event in asked)
    assert not [event for event in done.events() if "hush" in founder.string(event.detail)]


@pytest.mark.packages
def test_every_request_that_django_and_fastapi_serve_is_recorded(traced):
    for package in ("django", "fastapi", "uvicorn", "httpx"):
        pytest.importorskip(package)

    done = traced(source_of("served"))
    founder = done.experiment.founder
    routes = [founder.string(event.detail) for event in done.events("starlette.routing.Route.handle")]

    assert_recorded_as_said(done, "served")
    assert routes == ["GET /prices/{name}", "GET /in-a-thread/{name}"]
    assert not [event for event in done.events() if "hush" in founder.string(event.detail)]


@pytest.mark.packages
@pytest.mark.skipif(sys.version_info < (3, 12), reason="one Python is enough")
def test_programs_of_these_packages_say_the_same_without_us(traced):
    for package in ("requests", "flask", "httpx", "aiohttp"):
        pytest.importorskip(package)

    for name in ("http_requests", "http_asynchronous"):
        on, off = traced(source_of(name)), traced(source_of(name), INTERPOSE="0")
        assert (on.stdout, on.stderr, on.returncode) == (off.stdout, off.stderr, off.returncode)
