"""The network: sockets, names, encryption, and the waits for descriptors.

Waiting for a client, or for a client's next request, is idle; waiting for an answer is not.
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
    Intrinsic("socket.socket", "_socket:socket.__init__", "net", effect="socket"),
    *alike(*SOCKET, "connect connect_ex", "net", detail="address", effect="connect"),
    *alike(*SOCKET, "bind", "net", detail="address", effect="forget"),
    *alike(*SOCKET, "shutdown detach", "net", **OF_SOCKET),
    *alike(*SOCKET, "listen", "net", **OF_SOCKET, effect="listen"),
    Intrinsic("socket.socket.accept", "_socket:socket._accept", "idle", **OF_SOCKET, effect="accept"),
    *alike(*SOCKET, "recv recv_into recvfrom recvfrom_into recvmsg recvmsg_into", "net idle", **RECEIVES),
    *alike(*SOCKET, "send sendto sendmsg sendmsg_afalg", "net", **SENDS),
    *alike(*SOCKET, "sendall", "net", **{**SENDS, "bytes": "argument"}),
    *alike(*SOCKET, "close __del__", "net", **OF_SOCKET, effect="forget"),
    *alike(*NAMES, "close", "net", detail="descriptor", effect="forget"),
    *alike(*NAMES, "dup socketpair", "net", effect="make"),
    *alike(*NAMES, "getaddrinfo", "net", detail="host"),
    *alike(*NAMES, "gethostbyname gethostbyname_ex gethostbyaddr", "net", detail="host", argument=0),
    *alike(*NAMES, "getnameinfo", "net", detail="address"),
    *alike(*NAMES, "gethostname getservbyname getservbyport getprotobyname", "net"),
]

ENCRYPTION = [
    *alike(*TLS, "do_handshake shutdown", "net", **OF_TLS),
    *alike(*TLS, "read", "net idle", bytes="result", choice="receive", effect="receive", **OF_TLS),
    *alike(*TLS, "write", "net", bytes="result", effect="send", **OF_TLS),
    *alike(*CONTEXT, "load_verify_locations load_cert_chain", "file", detail="path"),
    *alike(*CONTEXT, "set_default_verify_paths load_dh_params", "file"),
]

WAITS = [
    Intrinsic("select.select", "select:select", "net idle sleep", choice="select"),
    *alike(*EPOLL, "poll", "net idle", choice="poll", argument=None),
    *alike(*EPOLL, "register modify", "net", effect="watch"),
    *alike(*EPOLL, "unregister", "net", effect="unwatch"),
    *alike(*EPOLL, "close", "net", effect="unwatch_all"),
    Intrinsic("select.poll", "select:poll", "net", effect="unwatch_all"),
    *alike(*POLL, "poll", "net idle", choice="poll", argument=None),
    *alike(*POLL, "register modify", "net", effect="watch"),
    *alike(*POLL, "unregister", "net", effect="unwatch"),
]

INTRINSICS = [*SOCKETS, *ENCRYPTION, *WAITS]
