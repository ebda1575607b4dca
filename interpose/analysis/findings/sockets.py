"""Calls at a socket. A program may wait there for data or for a connection only to check whether there is any."""

from __future__ import annotations

from interpose.analysis.findings.finding import Calls
from interpose.kinds import NATIVE

ACCEPTING = frozenset(("accept", "accept4", "SSL_accept"))
RECEIVING = frozenset(
    (
        *("recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg", "recvmsg_into", "read", "readv"),
        *("__read_chk", "__recv_chk", "SSL_read", "SSL_read_ex", "gnutls_record_recv"),
    )
)
SENDING = frozenset(("send", "sendall", "sendto", "sendmsg", "sendfile", "write"))
_KINDS = frozenset(("net", "db"))  # reads of files are of other kinds
_OF_SOCKETS = ("socket.socket.", "ssl.SSLSocket.", NATIVE)


def is_receive(each: Calls) -> bool:
    """Whether calls receive from a socket, or accept connections, by no library's request."""
    return _is_at_socket(each) and each.verb in ACCEPTING | RECEIVING


def is_send(each: Calls) -> bool:
    """Whether calls send on a socket, by no library's request."""
    return _is_at_socket(each) and each.verb in SENDING


def _is_at_socket(each: Calls) -> bool:
    return each.kind in _KINDS and each.intrinsic.startswith(_OF_SOCKETS)
