"""The headers `traceparent` and `tracestate` of outgoing HTTP requests, with INTERPOSE_PROPAGATE: wrappers before all
others.

Each wrapper runs inside the recorded call that makes the request, after the program has given its headers and just
before they are sent: it adds to what the client library made of them, never to an object of the program's. It adds
nothing if the program, or another tracer in it, sends one of the headers itself. Its own calls are not recorded.
"""

from interpose.config.levels import OFF
from interpose.library import PROPAGATION, Intrinsic
from interpose.timing import shims

HEADERS = "traceparent", "tracestate"
# A call that only sends, and the one around it, if any, that lasts until the answer.
SENDING, LASTING = "http.client.HTTPConnection.request", "urllib.request.urlopen"
_IN_BYTES = tuple([name.encode() for name in HEADERS])
_LINES = tuple([name + b":" for name in _IN_BYTES])


def headers_now():
    """The headers for a request that is made now, with their values."""
    return [(name, value) for name, value in zip(HEADERS, shims.trace_context_of_request(), strict=True) if value]


def of_http_client(wrapped, instance, arguments, keywords):
    """Add lines to those that wait to be sent; urllib, requests and urllib3 come here as well."""
    is_there = any(line[:12].lower().startswith(_LINES) for line in instance._buffer)
    for name, value in () if is_there else headers_now():
        instance.putheader(name, value)
    return wrapped(*arguments, **keywords)


def of_httpcore(wrapped, instance, arguments, keywords):
    """Pass on a copy of the request, with more headers."""
    request = arguments[0] if arguments else keywords["request"]
    is_there = any(name.lower() in _IN_BYTES for name, _ in request.headers)
    found = [] if is_there else headers_now()
    if not found:
        return wrapped(*arguments, **keywords)
    sent = object.__new__(type(request))
    sent.__dict__.update(request.__dict__)
    sent.headers = [*request.headers, *[(name.encode(), value.encode()) for name, value in found]]
    return wrapped(sent)


def of_aiohttp(wrapped, instance, arguments, keywords):
    """Add to the headers of the client's own request, which it made of the program's."""
    is_there = any(name in instance.headers for name in HEADERS)
    for name, value in () if is_there else headers_now():
        instance.headers[name] = value
    return wrapped(*arguments, **keywords)


INTRINSICS = [
    Intrinsic(
        "interpose.propagation.http_client",
        "http.client:HTTPConnection.endheaders",
        "net",
        wrapper=of_http_client,
    ),
    Intrinsic(
        "interpose.propagation.httpcore",
        "httpcore._sync.connection_pool:ConnectionPool.handle_request",
        "net",
        wrapper=of_httpcore,
    ),
    Intrinsic(
        "interpose.propagation.httpcore_awaited",
        "httpcore._async.connection_pool:AsyncConnectionPool.handle_async_request",
        "net",
        wrapper=of_httpcore,
    ),
    Intrinsic(
        "interpose.propagation.aiohttp",
        "aiohttp.client_reqrep:ClientRequest.send",
        "net",
        wrapper=of_aiohttp,
    ),
]


def prepare(intrinsics):
    """Have the calls of these wrappers not be recorded, whatever else is, and requests be of calls that last until the
    answer, where there are any."""
    numbers = {intrinsic.name: intrinsic.number for intrinsic in intrinsics}
    if SENDING in numbers and LASTING in numbers:  # not where packages are declared later
        shims.trace_context_lasts_with(numbers[SENDING], numbers[LASTING])
    for intrinsic in intrinsics:
        if intrinsic.library == PROPAGATION:
            intrinsic.levels = [OFF]
