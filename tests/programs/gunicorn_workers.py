"""Pages served by gunicorn's workers, asked for from outside."""

import http.client
import signal
import socket
import subprocess
import sys
import time

with open("shop.py", "w") as file:
    file.write("import flask\n\nshop = flask.Flask('shop')\nshop.route('/prices/<name>')(lambda name: name)\n")
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
words = ["--workers", "2", "--log-level", "critical", "--bind", f"127.0.0.1:{port}", "shop:shop"]
server = subprocess.Popen([sys.executable, "-m", "gunicorn", *words])
for _ in range(200):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
for number in range(10):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", f"/prices/{number}?key=hush")
    print(connection.getresponse().read())
    connection.close()
server.send_signal(signal.SIGTERM)
print(server.wait(20))
