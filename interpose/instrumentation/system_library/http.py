"""HTTP clients: requests to others, from the request to the head of the response, or to its end if it is read with it.
The connections are calls of the network library inside these. Whoever reads a body in parts awaits an answer, too, but
the parts are no calls."""

from interpose.library import Intrinsic

PREPARED = {"detail": "request", "keyword": "request"}  # the argument is a request that knows its method and URL
HTTPX = "method url._uri_reference"
HTTP_1 = "httpcore._async.http11:AsyncHTTP11Connection"

INTRINSICS = [
    Intrinsic("requests.Session.send", "requests.sessions:Session.send", "net", attribute="method url", **PREPARED),
    Intrinsic(
        "urllib3.HTTPConnectionPool.urlopen",
        "urllib3.connectionpool:HTTPConnectionPool.urlopen",
        "net",
        detail="url",
        argument=1,
        keyword="url",
    ),
    Intrinsic("httpx.Client.send", "httpx._client:Client.send", "net", attribute=HTTPX, **PREPARED),
    Intrinsic("httpx.AsyncClient.send", "httpx._client:AsyncClient.send", "net", attribute=HTTPX, **PREPARED),
    Intrinsic("aiohttp.ClientSession.request", "aiohttp.client:ClientSession._request", "net", detail="request"),
    Intrinsic("aiohttp.ClientSession.ws_connect", "aiohttp.client:ClientSession._ws_connect", "net", detail="url"),
    Intrinsic("aiohttp.ClientResponse.read", "aiohttp.client_reqrep:ClientResponse.read", "net"),
    Intrinsic("aiohttp.StreamReader.wait", "aiohttp.streams:StreamReader._wait", "net", effect="answer"),
    Intrinsic("httpcore.AsyncHTTP11Connection.receive", f"{HTTP_1}._receive_event", "net", effect="answer"),
]
