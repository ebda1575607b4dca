"""Pages served by Django, Starlette and FastAPI, without a server and by uvicorn."""

import asyncio
import socket
import threading

import django
import fastapi
import httpx
import uvicorn
from django.conf import settings
from django.http import HttpResponse
from django.test import AsyncClient, Client
from django.urls import path

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="hush")
django.setup()


def page(request, name):
    return HttpResponse(f"page {name}")


urlpatterns = [path("pages/<name>", page)]
#: within django.core.handlers.BaseHandler.get_response logic detail=GET /pages/<name>
print(Client().get("/pages/one?key=hush").content)
#: within django.core.handlers.BaseHandler.get_response_async logic detail=GET /pages/<name>
print(asyncio.run(AsyncClient().get("/pages/two?key=hush")).content)

shop = fastapi.FastAPI()


@shop.get("/prices/{name}")
async def price(name: str):
    await asyncio.sleep(0.01)
    return {"name": name}


@shop.get("/in-a-thread/{name}")
def in_a_thread(name: str):
    return {"name": name}


listening = socket.socket()
listening.bind(("127.0.0.1", 0))
server = uvicorn.Server(uvicorn.Config(shop, log_level="critical", lifespan="off"))
serving = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
serving.start()
with httpx.Client(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}") as client:
    client.get("/prices/salt?key=hush")  #: within httpx.Client.send detail=GET http://127.0.0.1:.../prices/salt
    print(client.get("/in-a-thread/oil").json())  #: within httpx.Client.send detail=...
server.should_exit = True
serving.join()
