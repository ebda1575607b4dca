"""The header `traceparent` of outgoing HTTP requests, with INTERPOSE_PROPAGATE: wrappers before all others.

Each wrapper runs inside the recorded call that makes the request, after the program has given its headers and just
before they are sent: it adds to what the client library made of them, never to an object of the program's. It adds
nothing if the program, or another tracer in it, sends the header itself. Its own calls are not recorded.
"""

from interpose.config.levels import OFF
from interpose.library import PROPAGATION, Intrinsic
from interpose.timing import shims

HEADER = "traceparent"
_IN_BYTES = HEADER.encode()


def of_http_client(wrapped, instance, arguments, keywords):
    """Add a line to those that wait to be sent; urllib, requests and urllib3 come here as well."""
    is_there = any(line[: len(HEADER)].lower() == _IN_BYTES for line in instance._buffer)
    context = "" if is_there else shims.trace_parent_here()
    if context:
        instance.putheader(HEADER, context)
    return wrapped(*arguments, **keywords)


def of_httpcore(wrapped, instance, arguments, keywords):
    """Pass on a copy of the request, with one header more."""
    request = arguments[0] if arguments else keywords["request"]
    is_there = any(name.lower() == _IN_BYTES for name, _ in request.headers)
    context = "" if is_there else shims.trace_parent_here()
    if not context:
        return wrapped(*arguments, **keywords)
    sent = object.__new__(type(request))
    sent.__dict__.update(request.__dict__)
    sent.headers = [*request.headers, (_IN_BYTES, context.encode())]
    return wrapped(sent)


def of_aiohttp(wrapped, instance, arguments, keywords):
    """Add to the headers of the client's own request, which it made of the program's."""
    context = "" if HEADER in instance.headers else shims.trace_parent_here()
    if context:
        instance.headers[HEADER] = context
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


def be_unrecorded(intrinsics):
    """Have the calls of these wrappers not be recorded, whatever else is."""
    for intrinsic in intrinsics:
        if intrinsic.library == PROPAGATION:
            intrinsic.levels = [OFF]
    return intrinsics
