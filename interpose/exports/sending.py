"""Sends spans to an OpenTelemetry collector by HTTP, with retries; losses are reported."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from interpose.errors import UsageError
from interpose.experiments.model.experiment import Experiment
from interpose.exports.otlp import requests

PATH = "/v1/traces"
WAITS_S = (0.2, 0.5, 1.0, 2.0)  # before each time that a request is tried again
TIMEOUT_S = 10.0
LONGEST_ANSWER_BYTES = 1 << 16
_AGAIN = (429, 502, 503, 504)  # what the specification has tried again


@dataclass
class Sent:
    """The result for the spans; `why` is the last reason of a loss. If it `is_over`, no more are sent."""

    sent: int = 0
    lost: int = 0
    why: list[str] = field(default_factory=list)
    is_over: bool = False


def send(experiment: Experiment, endpoint: str, headers: Mapping[str, str]) -> Sent:
    """Send the spans of `experiment` to the collector at `endpoint`. Raises UsageError if that is no URL."""
    return send_all(requests(experiment), endpoint, headers, Sent())


def send_all(found: Iterable[tuple[bytes, int]], endpoint: str, headers: Mapping[str, str], made: Sent) -> Sent:
    """Send requests, each with the number of its spans, and add to what was `made` of earlier ones."""
    address = address_of(endpoint)
    headers = {**_credentials(endpoint), **headers}
    for request, spans in found:
        lost, why = (spans, "") if made.is_over else _post(address, request, headers, spans)
        made.sent += spans - lost
        made.lost += lost
        made.why = [why] if why else made.why
        # Who does not answer, or takes nothing from the beginning, is not asked again.
        made.is_over = made.is_over or (lost == spans and (not made.sent or not why[:1].isdigit()))
    return made


def address_of(endpoint: str) -> str:
    """The address that traces are sent to, without a user's name and password: `/v1/traces` below an endpoint without a
    path. Raises UsageError."""
    try:
        parts = urllib.parse.urlsplit(endpoint)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        is_address = is_address and endpoint.isascii() and endpoint.isprintable() and " " not in endpoint
    except ValueError:  # of an address or a port
        is_address = False
    if not is_address:
        raise UsageError("--endpoint needs a URL such as http://localhost:4318")
    plain = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return urllib.parse.urlunsplit(plain if parts.path.strip("/") else plain._replace(path=PATH))


def shown(endpoint: str) -> str:
    """The same as it may be shown: without what follows the path, which may be a key."""
    return urllib.parse.urlunsplit(urllib.parse.urlsplit(address_of(endpoint))._replace(query="", fragment=""))


def _credentials(endpoint: str) -> dict[str, str]:
    """The header for the user's name and password that a URL has."""
    parts = urllib.parse.urlsplit(endpoint)
    if parts.username is None:
        return {}
    told = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(told.encode()).decode()}"}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Another address is not followed: it would get the headers, and no spans."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirect)


def _post(address: str, request: bytes, headers: Mapping[str, str], spans: int) -> tuple[int, str]:
    """How many spans of a request were lost, and why."""
    known = {"Content-Type": "application/json", "Content-Encoding": "gzip", **headers}
    data, why = gzip.compress(request, 1), ""
    for wait_s in (0.0, *WAITS_S):
        time.sleep(wait_s)
        try:
            with _opener.open(urllib.request.Request(address, data, known), timeout=TIMEOUT_S) as answer:
                return _rejected(answer.read(LONGEST_ANSWER_BYTES), spans)
        except urllib.error.HTTPError as error:
            error.close()
            why = f"{error.code} {error.reason}"
            if error.code not in _AGAIN:
                break
        except (OSError, http.client.HTTPException) as error:
            why = _in_words(getattr(error, "reason", error))
    return spans, why


def _in_words(reason: object) -> str:
    """Why there was no answer, without the number of an error."""
    text = reason.strerror if isinstance(reason, OSError) else str(reason)
    return text or type(reason).__name__


def _rejected(answer: bytes, spans: int) -> tuple[int, str]:
    """How many spans a collector that answered did not take, and why."""
    try:
        partial = json.loads(answer or b"{}").get("partialSuccess", {})
        return min(max(int(partial.get("rejectedSpans", 0)), 0), spans), str(partial.get("errorMessage", ""))
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError):
        return 0, ""
