"""The network: sockets, names, encryption, and the waits for descriptors.

Waiting for a client, or for a client's next request, is idle; waiting for an answer is not. What a driver
of a database in Python sends and waits for is the database's.
"""

from interpose.library import Intrinsic, alike

SOCKET = ("socket.socket.", "_socket:socket.")
NAMES = ("socket.", "_socket:")
TLS = ("ssl.SSLSocket.", "_ssl:_SSLSocket.")
CONTEXT = ("ssl.SSLContext.", "_ssl:_SSLContext.")
EPOLL = ("select.epoll.", "select:epoll.")
POLL = ("select.poll.", "select:poll.")

OF_SOCKET = {"detail": "descriptor", "argument": None}
RECEIVES = {**OF_SOCKET, "bytes": "result", "choice": "receive", "effect": "receive"}
SENDS = {**OF_SOCKET, "bytes": "result", "effect": "send"}
OF_TLS = {"detail": "tls", "argument": None}

SOCKETS = [
    Intrinsic("socket.socket", "_socket:socket.__init__", "net db", effect="socket"),
    *alike(*SOCKET, "connect connect_ex", "net db", detail="address", effect="connect"),
    *alike(*SOCKET, "bind", "net db", detail="address", effect="forget"),
    *alike(*SOCKET, "shutdown detach", "net db", **OF_SOCKET),
    *alike(*SOCKET, "listen", "net", **OF_SOCKET, effect="listen"),
    Intrinsic("socket.socket.accept", "_socket:socket._accept", "idle", **OF_SOCKET, effect="accept"),
    *alike(*SOCKET, "recv recv_into recvfrom recvfrom_into recvmsg recvmsg_into", "net idle db", **RECEIVES),
    *alike(*SOCKET, "send sendto sendmsg sendmsg_afalg", "net db", **SENDS),
    *alike(*SOCKET, "sendall", "net db", **{**SENDS, "bytes": "argument"}),
    *alike(*SOCKET, "close __del__", "net db", **OF_SOCKET, effect="forget"),
    *alike(*NAMES, "close", "net", detail="descriptor", effect="forget"),
    *alike(*NAMES, "dup socketpair", "net", effect="make"),
    *alike(*NAMES, "getaddrinfo", "net db", detail="host"),
    *alike(*NAMES, "gethostbyname gethostbyname_ex gethostbyaddr", "net db", detail="host", argument=0),
    *alike(*NAMES, "getnameinfo", "net", detail="address"),
    *alike(*NAMES, "gethostname getservbyname getservbyport getprotobyname", "net"),
]

ENCRYPTION = [
    *alike(*TLS, "do_handshake shutdown", "net db", **OF_TLS),
    *alike(*TLS, "read", "net idle db", bytes="result", choice="receive", effect="receive", **OF_TLS),
    *alike(*TLS, "write", "net db", bytes="result", effect="send", **OF_TLS),
    *alike(*CONTEXT, "load_verify_locations load_cert_chain", "file", detail="path"),
    *alike(*CONTEXT, "set_default_verify_paths load_dh_params", "file"),
]

WAITS = [
    Intrinsic("select.select", "select:select", "net idle sleep db process", choice="select"),
    *alike(*EPOLL, "poll", "net idle db process", choice="poll", argument=None),
    *alike(*EPOLL, "register modify", "net db", effect="watch"),
    *alike(*EPOLL, "unregister", "net db", effect="unwatch"),
    *alike(*EPOLL, "close", "net db", effect="unwatch_all"),
    Intrinsic("select.poll", "select:poll", "net db", effect="unwatch_all"),
    *alike(*POLL, "poll", "net idle db process", choice="poll", argument=None),
    *alike(*POLL, "register modify", "net db", effect="watch"),
    *alike(*POLL, "unregister", "net db", effect="unwatch"),
]

# Requests to others; their connections are calls inside these.
HTTP = [
    Intrinsic("urllib.request.urlopen", "urllib.request:OpenerDirector.open", "net", detail="url", keyword="fullurl"),
    Intrinsic("http.client.HTTPConnection.request", "http.client:HTTPConnection.request", "net", detail="request"),
    Intrinsic("http.client.HTTPConnection.getresponse", "http.client:HTTPConnection.getresponse", "net"),
]

INTRINSICS = [*SOCKETS, *ENCRYPTION, *WAITS, *HTTP]
