"""Prices in Redis, with redis-py."""

import contextlib
import os

import redis

store = redis.Redis(host="127.0.0.1", password=None)
#: within redis.Redis.execute_command detail=SET & within redis.Connection.connect detail=127.0.0.1
store.set("price:sesame", "secret")
store.get("price:sesame")  #: within redis.Redis.execute_command detail=GET
store.execute_command("GET price:sesame")  #: redis.Redis.execute_command detail=GET
with contextlib.suppress(redis.ResponseError):
    store.incr("price:sesame")  #: within redis.Redis.execute_command detail=INCRBY error=ResponseError
assert store.blpop("queue:sesame", timeout=0.1) is None  #: within redis.Redis.execute_command idle detail=BLPOP

pipeline = store.pipeline()
for number in range(5):
    pipeline.set(f"price:{number}", "secret")
assert pipeline.execute() == [True] * 5  #: redis.Pipeline.execute bytes=5
with store.pipeline() as watching:
    watching.watch("price:1")  #: within redis.Pipeline.immediate_execute_command detail=WATCH
    watching.get("price:1")  #: within redis.Pipeline.immediate_execute_command detail=GET
    watching.multi()
    watching.delete("price:1")
    watching.execute()  #: redis.Pipeline.execute bytes=1
#: within redis.Redis.execute_command detail=DEL
store.delete("price:sesame", *(f"price:{number}" for number in range(5)))

listener = store.pubsub()
#: within redis.PubSub.execute_command detail=SUBSCRIBE
listener.subscribe("prices")
assert listener.get_message(timeout=1)["type"] == "subscribe"  #: within redis.PubSub.parse_response
store.publish("prices", "secret")  #: within redis.Redis.execute_command detail=PUBLISH
assert listener.get_message(timeout=1)["data"] == b"secret"  #: within redis.PubSub.parse_response

nowhere = redis.Redis(unix_socket_path=os.path.abspath("nowhere"), retry=None)
with contextlib.suppress(redis.ConnectionError):
    #: within redis.Redis.execute_command detail=PING error=ConnectionError
    #: within redis.UnixDomainSocketConnection.connect detail=/cwd/nowhere error=...
    nowhere.ping()
