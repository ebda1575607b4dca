"""The system library's HTTP: clients of the standard library and of packages, and who serves them."""

import sys

import pytest
from exercises import assert_recorded_as_said, source_of
from tracing import events_of


def test_every_call_of_the_standard_librarys_clients_is_recorded_as_it_was(traced):
    done = traced(source_of("http_standard"))

    assert_recorded_as_said(done, "http_standard")
    assert "hush" not in "".join(done.details())


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


SHOP = """
import os, sys, time
import django
from django.conf import settings
from django.http import HttpResponse
from django.urls import path

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="hush", DEBUG=False, LOGGING_CONFIG=None)
django.setup()

def page(request, name):
    time.sleep(0.02)
    return HttpResponse(f"page {name}")

urlpatterns = [path("pages/<name>", page)]

if __name__ == "__main__":
    from django.core.management import execute_from_command_line
    execute_from_command_line(sys.argv)
else:
    from django.core.asgi import get_asgi_application
    from django.core.wsgi import get_wsgi_application
    by_wsgi, by_asgi = get_wsgi_application(), get_asgi_application()
"""
CUSTOMERS = """
import concurrent.futures, http.client, signal, socket, subprocess, sys, time
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
words = " ".join(sys.argv[1:]).replace("PORT", str(port)).split()
server = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
for _ in range(400):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
def ask(number):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", f"/pages/{number}?key=hush")
    answer = connection.getresponse().read().decode()
    connection.close()
    return answer
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    print(list(pool.map(ask, range(8))))
server.send_signal(signal.SIGINT)
server.wait(20)
"""
SERVERS = {
    "runserver": ("shop.py runserver --noreload --skip-checks 127.0.0.1:PORT", "get_response"),
    "gunicorn": ("-m gunicorn --workers 2 --threads 2 --bind 127.0.0.1:PORT shop:by_wsgi", "get_response"),
    "uvicorn": ("-m uvicorn --port PORT --lifespan off shop:by_asgi", "get_response_async"),
}


@pytest.mark.packages
@pytest.mark.parametrize("server", SERVERS)
def test_every_request_that_django_serves_by_a_real_server_is_recorded_once(traced, tmp_path, server):
    pytest.importorskip("django")
    if server != "runserver":
        pytest.importorskip(server)
    (tmp_path / "shop.py").write_text(SHOP)
    words, method = SERVERS[server]

    done = traced(CUSTOMERS, words)
    served = [
        (process.string(event.detail), event)
        for process in done.experiment.processes
        for event in events_of(process, f"django.core.handlers.BaseHandler.{method}")
    ]

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{[f'page {number}' for number in range(8)]}\n", "")
    assert [detail for detail, _ in served] == ["GET /pages/<name>"] * 8
    assert all(event.wall_ns >= 20e6 and event.inner_wall_ns >= 19e6 for _, event in served)
