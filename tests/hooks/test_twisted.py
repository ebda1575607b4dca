"""The loop of twisted is known as one: its waits are no slow calls."""

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey

pytest.importorskip("twisted")
pytestmark = [pytest.mark.packages, pytest.mark.any_python]

ASKS = """
import socketserver, threading, time
from twisted.internet import protocol, reactor
class Answers(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            time.sleep(0.02)
            self.wfile.write(line)
server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answers)
threading.Thread(target=server.serve_forever, daemon=True).start()
class Asks(protocol.Protocol):
    left = 20
    def connectionMade(self):
        self.begun_ns = time.monotonic_ns()
        self.transport.write(b"x\\n")
    def dataReceived(self, data):
        self.left -= 1
        if self.left:
            self.transport.write(b"x\\n")
        else:
            print(time.monotonic_ns() - self.begun_ns)
            reactor.stop()
factory = protocol.ClientFactory()
factory.protocol = Asks
reactor.connectTCP("127.0.0.1", server.server_address[1], factory)
reactor.run()
server.shutdown()
"""


def test_the_waits_of_the_loop_are_no_slow_calls(traced):
    done = traced(ASKS).ended_well()
    found = [
        each
        for each in found_in(Survey(Analysis(done.experiment)))
        if each.first and each.first.intrinsic == "select.epoll.poll"
    ]

    assert [each.rule for each in found] == ["waits of event loop"]
    assert 20 * 20e6 * 0.9 <= found[0].wall_ns <= int(done.stdout)
