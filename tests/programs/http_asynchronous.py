"""Prices asked for with httpx and aiohttp, of a shop that is served by aiohttp."""

import asyncio

import aiohttp
import aiohttp.web
import httpx


async def price(request):
    await asyncio.sleep(0.01)
    return aiohttp.web.json_response({"name": request.match_info["name"], "price": 12.5})


async def talk(request):
    socket = aiohttp.web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str(message.data.upper())
    return socket


async def ask(shop):
    async with httpx.AsyncClient() as client:
        #: within httpx.AsyncClient.send detail=GET http://127.0.0.1:.../prices/salt
        print((await client.get(f"http://user:hush@{shop}/prices/salt?key=hush")).json())
        request = client.build_request("POST", f"http://{shop}/prices/oil", content="hush")
        #: httpx.AsyncClient.send detail=POST http://127.0.0.1:.../prices/oil
        print((await client.send(request)).status_code)
        #: within httpx.AsyncClient.send detail=GET http://127.0.0.1:.../prices/pepper
        async with client.stream("GET", f"http://{shop}/prices/pepper") as answer:
            print([piece async for piece in answer.aiter_bytes()])
    async with aiohttp.ClientSession() as session:
        #: within aiohttp.ClientSession.request detail=GET http://127.0.0.1:.../prices/salt
        async with session.get(f"http://user:hush@{shop}/prices/salt?key=hush") as answer:
            print(await answer.read())  #: aiohttp.ClientResponse.read
        #: within aiohttp.ClientSession.request detail=POST http://127.0.0.1:.../prices/oil
        answer = await session.post(f"http://{shop}/prices/oil", data="hush")
        print(answer.status)
        answer.release()
        #: within aiohttp.ClientSession.ws_connect detail=http://127.0.0.1:.../talk
        #: within aiohttp.ClientSession.request detail=GET http://127.0.0.1:.../talk
        async with session.ws_connect(f"http://{shop}/talk") as socket:
            await socket.send_str("salt")
            print(await socket.receive_str())
        try:
            #: within aiohttp.ClientSession.request detail=GET http://127.0.0.1:9/ error=ClientConnectorError...
            await session.get("http://127.0.0.1:9/")
        except aiohttp.ClientError:
            print("nobody there")


async def main():
    shop = aiohttp.web.Application()
    shop.router.add_route("*", "/prices/{name}", price)
    shop.router.add_get("/talk", talk)
    runner = aiohttp.web.AppRunner(shop)
    await runner.setup()
    site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    await ask(f"127.0.0.1:{port}")
    #: within httpx.Client.send detail=GET http://127.0.0.1:.../prices/thread
    print(await asyncio.to_thread(lambda: httpx.get(f"http://127.0.0.1:{port}/prices/thread?key=hush").status_code))
    await runner.cleanup()


#: 7 within aiohttp.web.Application.handle logic detail=...
asyncio.run(main())
