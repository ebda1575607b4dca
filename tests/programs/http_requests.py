"""Prices asked for with requests, of a shop that is served by Flask and werkzeug."""

import threading
from wsgiref.types import StartResponse

import flask
import requests
from werkzeug.serving import WSGIRequestHandler, make_server

shop = flask.Flask("shop")


class Silent(WSGIRequestHandler):
    def log(self, *words):
        pass


@shop.route("/prices/<name>", methods=["GET", "POST"])
def price(name):
    if name == "fails":
        raise ValueError("hush")
    return {"name": name, "price": 12.5}


@shop.route("/moved")
def moved():
    return flask.redirect("/prices/moved")


class Counted:
    """Middleware, as many have it."""

    def __init__(self, application):
        self.application = application

    def __call__(self, environ, start_response: StartResponse):
        return self.application(environ, start_response)  #: 5 within flask.Flask.wsgi_app logic detail=...


#: within flask.Flask.wsgi_app logic detail=GET /prices/<name>
print(shop.test_client().get("/prices/pepper?key=hush").json)
shop.wsgi_app = Counted(shop.wsgi_app)
shop.logger.disabled = True
server = make_server("127.0.0.1", 0, shop, threaded=True, request_handler=Silent)
serving = threading.Thread(target=server.serve_forever)
serving.start()
address = f"127.0.0.1:{server.server_port}"
#: within requests.Session.send detail=GET http://127.0.0.1:.../prices/salt
#: within urllib3.HTTPConnectionPool.urlopen detail=/prices/salt
print(requests.get(f"http://user:hush@{address}/prices/salt?key=hush", timeout=5).json())
with requests.Session() as session:
    request = session.prepare_request(requests.Request("POST", f"http://{address}/prices/oil", data="hush"))
    #: requests.Session.send detail=POST http://127.0.0.1:.../prices/oil
    #: within urllib3.HTTPConnectionPool.urlopen detail=/prices/oil
    print(session.send(request, timeout=5).status_code)
    #: within requests.Session.send detail=GET http://127.0.0.1:.../prices/moved
    #: within requests.Session.send detail=GET http://127.0.0.1:.../moved
    #: within urllib3.HTTPConnectionPool.urlopen detail=/moved
    #: within urllib3.HTTPConnectionPool.urlopen detail=/prices/moved
    print(len(session.get(f"http://{address}/moved", timeout=5).history))
    #: within requests.Session.send detail=GET http://127.0.0.1:.../prices/fails
    #: within urllib3.HTTPConnectionPool.urlopen detail=/prices/fails
    print(session.get(f"http://{address}/prices/fails", timeout=5).status_code)
try:
    #: within requests.Session.send detail=GET http://127.0.0.1:9/ error=...
    #: within urllib3.HTTPConnectionPool.urlopen detail=/ error=...
    requests.get("http://127.0.0.1:9/", timeout=5)
except requests.ConnectionError:
    print("nobody there")
server.shutdown()
serving.join()
server.server_close()
