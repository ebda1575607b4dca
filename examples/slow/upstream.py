"""A report that fetches 25 pages from a service; the service sleeps before it answers."""

import subprocess
import sys
import urllib.request

SERVICE = """
import http.server, time

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.08)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"10")

    def log_message(self, *words):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def fetch(port, page):
    return urllib.request.urlopen(f"http://127.0.0.1:{port}/prices?page={page}").read()


with open("service.py", "w") as file:
    file.write(SERVICE)
service = subprocess.Popen([sys.executable, "service.py"], stdout=subprocess.PIPE)
port = int(service.stdout.readline())
print(sum(int(fetch(port, page)) for page in range(25)))
service.terminate()
service.wait()
