"""A server that answers encrypted requests, and clients that trust it, or do not."""

import socket
import ssl
import threading
from contextlib import suppress

service = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
service.load_cert_chain("certificate", "key")  #: ssl.SSLContext.load_cert_chain detail=certificate
with suppress(FileNotFoundError):
    #: ssl.SSLContext.load_cert_chain detail=missing error=FileNotFoundError errno 2
    service.load_cert_chain("missing")
service.load_dh_params("parameters")  #: ssl.SSLContext.load_dh_params
trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
trusting.load_verify_locations("certificate")  #: ssl.SSLContext.load_verify_locations detail=certificate
trusting.set_default_verify_paths()  #: ssl.SSLContext.set_default_verify_paths
doubting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
listener = socket.create_server(("127.0.0.1", 0))


def answer():
    plain, _ = listener.accept()
    #: within ssl.SSLSocket.do_handshake detail=127.0.0.1:...
    with service.wrap_socket(plain, server_side=True) as secret:
        for _ in range(3):
            assert secret.recv(100) == b"request"  #: 3 within ssl.SSLSocket.read idle bytes=7 detail=127.0.0.1:...
            secret.sendall(b"the answer")  #: 3 within ssl.SSLSocket.write bytes=10 detail=127.0.0.1:...
        assert secret.recv(100) == b""  #: within ssl.SSLSocket.read idle detail=127.0.0.1:...
        secret.unwrap()  #: within ssl.SSLSocket.shutdown detail=127.0.0.1:...
    plain, _ = listener.accept()
    with suppress(ssl.SSLError):
        #: within ssl.SSLSocket.do_handshake detail=127.0.0.1:... error=...SSLError errno 1
        service.wrap_socket(plain, server_side=True)


answering = threading.Thread(target=answer)
answering.start()
plain = socket.create_connection(listener.getsockname())
secret = trusting.wrap_socket(plain, server_hostname="localhost", do_handshake_on_connect=False)
secret.do_handshake()  #: within ssl.SSLSocket.do_handshake detail=127.0.0.1:...
for _ in range(3):
    secret.sendall(b"request")  #: 3 within ssl.SSLSocket.write bytes=7 detail=127.0.0.1:...
    assert secret.recv(100) == b"the answer"  #: 3 within ssl.SSLSocket.read net bytes=10 detail=127.0.0.1:...
secret.unwrap()  #: within ssl.SSLSocket.shutdown detail=127.0.0.1:...
plain = socket.create_connection(listener.getsockname())
with suppress(ssl.SSLCertVerificationError):
    #: within ssl.SSLSocket.do_handshake detail=127.0.0.1:... error=SSLCertVerificationError errno 1
    doubting.wrap_socket(plain, server_hostname="localhost")
answering.join()
