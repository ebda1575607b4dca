"""A shop's prices over HTTP, with the standard library on both sides."""

import http.client
import http.server
import threading
import urllib.error
import urllib.request


class Prices(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(404 if self.path == "/nowhere" else 200)
        self.end_headers()
        self.wfile.write(b"12.50")

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Prices)
threading.Thread(target=server.serve_forever).start()
address = f"127.0.0.1:{server.server_port}"
connection = http.client.HTTPConnection(address)
connection.request("GET", "/prices?key=hush")  #: http.client.HTTPConnection.request detail=GET /prices
print(connection.getresponse().read())  #: http.client.HTTPConnection.getresponse
connection.close()
#: within urllib.request.urlopen detail=http://127.0.0.1:.../prices
#: within http.client.HTTPConnection.request detail=GET /prices & within http.client.HTTPConnection.getresponse
print(urllib.request.urlopen(f"http://{address}/prices?key=hush").read())
try:
    #: within urllib.request.urlopen detail=http://127.0.0.1:.../nowhere error=HTTPError
    #: within http.client.HTTPConnection.request detail=GET /nowhere & within http.client.HTTPConnection.getresponse
    urllib.request.urlopen(f"http://{address}/nowhere")
except urllib.error.HTTPError as error:
    error.close()
server.shutdown()
server.server_close()
