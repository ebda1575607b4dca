"""Prices in Redis, awaited, with redis-py."""

import asyncio
import contextlib
import os

import redis.asyncio as redis


async def main():
    store = redis.Redis(host="127.0.0.1", password=None)
    #: within redis.asyncio.Redis.execute_command detail=SET & within redis.asyncio.Connection.connect detail=127.0.0.1
    await store.set("price:sesame", "secret")
    await store.get("price:sesame")  #: within redis.asyncio.Redis.execute_command detail=GET
    with contextlib.suppress(redis.ResponseError):
        #: within redis.asyncio.Redis.execute_command detail=INCRBY error=ResponseError
        await store.incr("price:sesame")
    #: within redis.asyncio.Redis.execute_command idle detail=BLPOP
    assert await store.blpop("queue:sesame", timeout=0.1) is None
    pipeline = store.pipeline()
    for number in range(5):
        pipeline.set(f"price:{number}", "secret")
    assert await pipeline.execute() == [True] * 5  #: redis.asyncio.Pipeline.execute bytes=5
    async with store.pipeline() as watching:
        await watching.watch("price:1")  #: within redis.asyncio.Pipeline.immediate_execute_command detail=WATCH
        await watching.get("price:1")  #: within redis.asyncio.Pipeline.immediate_execute_command detail=GET
        watching.multi()
        watching.delete("price:1")
        await watching.execute()  #: redis.asyncio.Pipeline.execute bytes=1
    #: within redis.asyncio.Redis.execute_command detail=DEL
    await store.delete("price:sesame", *(f"price:{number}" for number in range(5)))
    listener = store.pubsub()
    #: within redis.asyncio.PubSub.execute_command detail=SUBSCRIBE
    await listener.subscribe("prices")
    #: within redis.asyncio.PubSub.parse_response
    assert (await listener.get_message(timeout=1))["type"] == "subscribe"
    nowhere = redis.Redis(unix_socket_path=os.path.abspath("nowhere"), retry=None)
    with contextlib.suppress(redis.ConnectionError):
        #: within redis.asyncio.Redis.execute_command detail=PING error=ConnectionError
        #: within redis.asyncio.UnixDomainSocketConnection.connect detail=/cwd/nowhere error=...
        await nowhere.ping()
    await listener.aclose()
    await store.aclose()


asyncio.run(main())
