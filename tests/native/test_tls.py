"""Encrypted connections as a level of their own: what a program reads and writes, and inside it what its socket did."""

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from clients import calls_in
from tracing import events_of, same_library

from interpose.experiments.model.experiment import Experiment
from interpose.timing import shims

pytestmark = same_library

BODY = b"answer " * 20_000
HEAD = f"HTTP/1.0 200 OK\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()


@pytest.fixture
def certificate(tmp_path):
    """A key and a certificate for localhost, in one file."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    path = tmp_path / "server.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    words += ["-keyout", path, "-out", tmp_path / "crt", "-subj", "/CN=localhost", "-days", "2"]
    words += ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(words, check=True, capture_output=True)
    path.write_text(path.read_text() + (tmp_path / "crt").read_text())
    return path


class Server:
    """It answers each request over an encrypted connection, and keeps what it was sent."""

    def __init__(self, certificate):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.context = context
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.requests = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        wrapped = partial(self.context.wrap_socket, connection, server_side=True)
        with connection, contextlib.suppress(OSError), wrapped() as encrypted:  # the client may have seen enough
            request = b""
            while b"\r\n\r\n" not in request and (got := encrypted.recv(65536)):
                request += got
            self.requests.append(request)
            encrypted.sendall(HEAD + BODY)
            encrypted.unwrap()


@pytest.fixture
def server(certificate):
    server = Server(certificate)
    yield server
    server.listener.close()


def levels(work):
    """The bytes of all calls of each name, and the name of the call around each call of the socket."""
    experiment = Experiment(str(work / "test.1.er"))
    process = experiment.processes[-1]
    events = {event.call: event for event in events_of(process)}
    name = {call: process.intrinsic(event.intrinsic).name for call, event in events.items()}
    around = {
        (name[call], name.get(event.parent))
        for call, event in events.items()
        if name[call] in ("libc.read", "libc.write", "libc.recv", "libc.send", "libc.recvmsg", "libc.sendmsg")
        and process.intrinsic(event.intrinsic).kind == "net"
    }
    return around


def total(work, *names):
    """How many bytes these calls moved."""
    return sum(moved for name, _, moved, _ in calls_in(work, "net") if name in names)


CLIENTS = {
    "curl": (["curl", "-s", "--http1.0", "--cacert", "{pem}", "https://localhost:{port}/"], "SSL_read", "SSL_write"),
    "wget": (
        ["wget", "-q", "-O-", "--ca-certificate={pem}", "https://localhost:{port}/"],
        "gnutls_record_recv",
        "gnutls_record_send",
    ),
}


@pytest.mark.parametrize("client_name", CLIENTS)
def test_what_a_client_reads_and_writes_is_as_much_as_the_server_says(
    interpose, work, server, certificate, client_name
):
    words, reads, writes = CLIENTS[client_name]
    if shutil.which(words[0]) is None:
        pytest.skip(f"no {words[0]}")

    done = interpose("run", *[word.format(pem=certificate, port=server.port) for word in words])

    assert done.stdout.encode() == BODY
    assert total(work, reads, f"{reads}_ex") == len(HEAD + BODY)
    assert total(work, writes, f"{writes}_ex") == len(server.requests[0])
    inner = {outer.partition(".")[2].removesuffix("_ex") for _, outer in levels(work) if outer}
    assert {reads, writes} <= inner


OPENSSL = """
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static jmp_buf out;
static SSL *connected(int port, SSL_CTX *context)
{
    struct sockaddr_in address = {AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}};
    int number = socket(AF_INET, SOCK_STREAM, 0);
    SSL *on = SSL_new(context);
    if (connect(number, (struct sockaddr *)&address, sizeof address))
        exit(1);
    SSL_set_fd(on, number);
    return on;
}
static int leaves(int preverify, X509_STORE_CTX *store) { longjmp(out, 1); }
int main(int count, char **words)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    char room[65536];
    int port = atoi(words[1]), got, sum = 0;
    size_t moved;
    %s
    return 0;
}
"""


@pytest.fixture
def openssl(interpose, client, work, server, certificate):
    """Run a body in C with a port to connect to: what was run, and its calls of OpenSSL."""

    def run(body, port=None):
        command = client(OPENSSL % body, "-lssl", "-lcrypto")
        done = interpose("run", command, str(port or server.port), str(certificate))
        calls = [call for call in calls_in(work, "net") if call[0].startswith("SSL_")]
        return done, [(name, moved, error) for name, _, moved, error in calls]

    return run


REQUEST = 'const char *request = "GET / HTTP/1.0\\r\\n\\r\\n";'


def test_a_handshake_holds_what_its_socket_does_and_calls_are_in_order(openssl, work):
    body = (
        REQUEST
        + """
    SSL *on = connected(port, context);
    SSL_connect(on);
    SSL_write_ex(on, request, strlen(request), &moved);
    while ((got = SSL_read(on, room, sizeof room)) > 0)
        sum += got;
    SSL_shutdown(on);
    printf("%d", sum);
"""
    )
    done, calls = openssl(body)

    assert int(done.stdout) == len(HEAD + BODY)
    assert calls[:2] == [("SSL_connect", 0, ""), ("SSL_write_ex", 18, "")]
    assert sum(moved for name, moved, _ in calls if name == "SSL_read") == len(HEAD + BODY)
    assert calls[-1] == ("SSL_shutdown", 0, "")
    assert {error for _, _, error in calls} == {""}
    assert ("libc.write", "libssl.SSL_connect") in levels(work)


def test_that_there_is_nothing_yet_is_no_error_and_what_is_no_encryption_is_one(openssl):
    plain = socket.create_server(("127.0.0.1", 0))

    def greet():
        with plain, plain.accept()[0] as connection:
            connection.recv(1)
            time.sleep(0.2)  # meanwhile the client finds nothing
            connection.sendall(b"220 hello, this is mail\r\n" * 9)

    threading.Thread(target=greet, daemon=True).start()
    body = """
    SSL *on = connected(port, context);
    fcntl(SSL_get_fd(on), F_SETFL, O_NONBLOCK);
    errno = 77;
    while ((got = SSL_connect(on)) <= 0 && SSL_get_error(on, got) == SSL_ERROR_WANT_READ)
        poll(&(struct pollfd){SSL_get_fd(on), POLLIN, 0}, 1, 1000);
    printf("%d %lx", SSL_get_error(on, got), ERR_peek_error());
"""
    done, calls = openssl(body, plain.getsockname()[1])

    assert done.stdout.startswith("1 ")
    assert done.stdout != "1 0"
    assert calls[0] == ("SSL_connect", 0, "")
    assert calls[-1] == ("SSL_connect", 0, "SSL_ERROR_SSL")


def test_calls_after_a_handshake_that_was_left_are_recorded(openssl):
    body = (
        REQUEST
        + """
    SSL *on = connected(port, context);
    SSL_set_verify(on, SSL_VERIFY_PEER, leaves);
    if (!setjmp(out))
        SSL_connect(on);
    on = connected(port, context);
    SSL_set_verify(on, SSL_VERIFY_NONE, NULL);
    SSL_connect(on);
    SSL_write(on, request, strlen(request));
    SSL_write(on, NULL, -1);
"""
    )
    done, calls = openssl(body)

    assert done.returncode == 0
    assert calls == [("SSL_connect", 0, ""), ("SSL_write", 18, ""), ("SSL_write", 0, "SSL_ERROR_SSL")]


def test_connections_in_memory_have_no_descriptor(openssl):
    body = """
    SSL *on = SSL_new(context);
    SSL_set_bio(on, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(on);
    SSL_do_handshake(on);
    SSL_read_ex(on, room, sizeof room, &moved);
"""
    _, calls = openssl(body)

    assert calls == [("SSL_do_handshake", 0, ""), ("SSL_read_ex", 0, "")]


def test_both_ends_in_one_program_are_two_calls_each(openssl):
    body = """
    SSL_CTX *serving = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate_chain_file(serving, words[2]);
    SSL_CTX_use_PrivateKey_file(serving, words[2], SSL_FILETYPE_PEM);
    BIO *one, *other;
    BIO_new_bio_pair(&one, 0, &other, 0);
    SSL *here = SSL_new(context), *there = SSL_new(serving);
    SSL_set_bio(here, one, one);
    SSL_set_bio(there, other, other);
    while (SSL_connect(here) != 1 || SSL_accept(there) != 1)
        SSL_accept(there);
    SSL_write_ex(here, "hello", 5, &moved);
    SSL_read_ex(there, room, sizeof room, &moved);
    printf("%d", (int)moved);
"""
    done, calls = openssl(body)

    assert done.stdout == "5"
    assert calls[0] == ("SSL_connect", 0, "")
    assert calls[-3:] == [("SSL_accept", 0, ""), ("SSL_write_ex", 5, ""), ("SSL_read_ex", 5, "")]


GNUTLS = """
#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
int main(int count, char **words)
{
    struct sockaddr_in address = {AF_INET, htons(atoi(words[1])), {htonl(INADDR_LOOPBACK)}};
    int number = socket(AF_INET, SOCK_STREAM, 0), sum = 0;
    char room[65536];
    ssize_t got;
    gnutls_session_t on;
    gnutls_certificate_credentials_t own;
    gnutls_certificate_allocate_credentials(&own);
    gnutls_init(&on, GNUTLS_CLIENT);
    gnutls_set_default_priority(on);
    gnutls_credentials_set(on, GNUTLS_CRD_CERTIFICATE, own);
    if (connect(number, (struct sockaddr *)&address, sizeof address))
        return 1;
    gnutls_transport_set_int(on, number);
    if (gnutls_handshake(on))
        return 2;
    gnutls_record_cork(on);
    gnutls_record_send(on, "GET / HTTP/1.0\\r\\n\\r\\n", 18);
    gnutls_record_uncork(on, GNUTLS_RECORD_WAIT);
    while ((got = gnutls_record_recv(on, room, sizeof room)) > 0 || got == GNUTLS_E_AGAIN)
        sum += got > 0 ? got : 0;
    gnutls_bye(on, GNUTLS_SHUT_WR);
    gnutls_record_recv(on, NULL, 1);
    printf("%d", sum);
}
"""


def test_calls_of_gnutls_are_as_the_program_made_them(interpose, client, work, server):
    done = interpose("run", client(GNUTLS, "-lgnutls"), str(server.port))

    calls = [(name, moved, error) for name, _, moved, error in calls_in(work, "net") if name.startswith("gnutls")]
    assert done.stdout == str(len(HEAD + BODY))
    assert calls[:3] == [("gnutls_handshake", 0, ""), ("gnutls_record_send", 18, ""), ("gnutls_record_uncork", 18, "")]
    assert sum(moved for name, moved, _ in calls if name == "gnutls_record_recv") == len(HEAD + BODY)
    assert calls[-2] == ("gnutls_bye", 0, "")
    assert calls[-1][2].startswith("GNUTLS_E_")


def test_each_function_of_the_list_is_called_here():
    source = Path(__file__).read_text()

    assert not [name for library, name, *_ in shims.native_calls() if library != "libc" and f"{name}(" not in source]


PYTHON = """
import ctypes, os, socket, ssl, sys
plain = socket.create_connection(("localhost", int(sys.argv[1])))
context = ssl.create_default_context(cafile=sys.argv[2])
with context.wrap_socket(plain, server_hostname="localhost") as encrypted:
    encrypted.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
    while encrypted.recv(65536):
        pass
if len(sys.argv) > 3:
    ctypes.CDLL(sys.argv[3]).fetches(int(sys.argv[1]))
"""


def test_the_calls_of_python_are_the_level_of_its_own_module(traced, server, certificate):
    done = traced(PYTHON, str(server.port), str(certificate), INTERPOSE="calls,native")

    founder = done.experiment.founder
    events = {event.call: event for event in done.events()}
    name = {call: founder.intrinsic(event.intrinsic).name for call, event in events.items()}
    outer = {name.get(events[call].parent) for call in events if name[call] in ("libc.read", "libc.recv")}
    assert done.returncode == 0, done.stderr
    assert "ssl.SSLSocket.read" in outer
    assert not [each for each in name.values() if each.startswith("libssl.")]


def test_what_a_library_in_python_encrypts_is_recorded(traced, server, certificate, built, tmp_path):
    library = OPENSSL.replace("int main(int count, char **words)", "int fetches(int port)").replace(
        "int port = atoi(words[1]), got", "int got"
    )
    body = (
        REQUEST
        + """
    SSL *on = connected(port, context);
    SSL_connect(on);
    SSL_write(on, request, strlen(request));
    while ((got = SSL_read(on, room, sizeof room)) > 0)
        ;
"""
    )
    (tmp_path / "tls.c").write_text(library % body)
    path = built("-w", source=tmp_path / "tls.c", name="tls.so", libraries=["-lssl", "-lcrypto"])

    done = traced(PYTHON, str(server.port), str(certificate), str(path), INTERPOSE="calls,native")

    assert done.returncode == 0, done.stderr
    founder = done.experiment.founder
    found = [(founder.intrinsic(event.intrinsic).name, event) for event in done.events()]
    moved = sum(event.bytes for name, event in found if name == "libssl.SSL_read")
    assert [name for name, _ in found].count("libssl.SSL_connect") == 1
    assert moved == len(HEAD + BODY)
