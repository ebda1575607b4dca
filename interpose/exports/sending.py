"""Spans sent to a collector of OpenTelemetry, over HTTP: tried again for a while, and what was lost is told."""

from __future__ import annotations

import gzip
import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
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
    """What became of the spans; `why` is the last reason of those that were lost."""

    sent: int = 0
    lost: int = 0
    why: list[str] = field(default_factory=list)


def send(experiment: Experiment, endpoint: str, headers: Mapping[str, str]) -> Sent:
    """Send the spans of `experiment` to the collector at `endpoint`. Raises UsageError where that is no URL."""
    address = address_of(endpoint)
    made = Sent()
    for request, spans in requests(experiment):
        lost, why = _post(address, request, headers, spans)
        made.sent += spans - lost
        made.lost += lost
        if why:
            made.why = [why]
        if lost == spans and not made.sent:
            made.lost += sum(number for _, number in requests(experiment)) - spans
            break  # nobody is there
    return made


def address_of(endpoint: str) -> str:
    """The address that traces are sent to: `/v1/traces` below an endpoint without a path. Raises UsageError."""
    parts = urllib.parse.urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--endpoint {endpoint}: no URL as http://localhost:4318")
    return endpoint if parts.path.strip("/") else urllib.parse.urlunsplit(parts._replace(path=PATH))


def _post(address: str, request: bytes, headers: Mapping[str, str], spans: int) -> tuple[int, str]:
    """How many spans of a request were lost, and why."""
    known = {"Content-Type": "application/json", "Content-Encoding": "gzip", **headers}
    data, why = gzip.compress(request, 1), ""
    for wait_s in (0.0, *WAITS_S):
        time.sleep(wait_s)
        try:
            with urllib.request.urlopen(urllib.request.Request(address, data, known), timeout=TIMEOUT_S) as answer:
                return _rejected(answer.read(LONGEST_ANSWER_BYTES), spans)
        except urllib.error.HTTPError as error:
            error.close()
            why = f"{error.code} {error.reason}"
            if error.code not in _AGAIN:
                break
        except (OSError, http.client.HTTPException) as error:
            why = str(getattr(error, "reason", error)) or type(error).__name__
    return spans, why


def _rejected(answer: bytes, spans: int) -> tuple[int, str]:
    """How many spans a collector that answered did not take, and why."""
    try:
        partial = json.loads(answer or b"{}").get("partialSuccess", {})
        return min(max(int(partial.get("rejectedSpans", 0)), 0), spans), str(partial.get("errorMessage", ""))
    except (ValueError, AttributeError, TypeError):
        return 0, ""
