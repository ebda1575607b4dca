"""Prices in a cluster of Redis, with redis-py: by who waits and by who awaits."""

import asyncio
import contextlib
import sys

import redis
import redis.asyncio

cluster = redis.RedisCluster(host="127.0.0.1", port=int(sys.argv[1]))
cluster.set("price:sesame", "secret")  #: within redis.RedisCluster.execute_command detail=SET
cluster.get("price:sesame")  #: within redis.RedisCluster.execute_command detail=GET
with contextlib.suppress(redis.ResponseError):
    cluster.incr("price:sesame")  #: within redis.RedisCluster.execute_command detail=INCRBY error=ResponseError
#: within redis.RedisCluster.execute_command idle detail=BLPOP
assert cluster.blpop("queue:sesame", timeout=0.1) is None
pipeline = cluster.pipeline()
for number in range(5):
    pipeline.set(f"price:{number}", "secret")
assert pipeline.execute() == [True] * 5  #: redis.ClusterPipeline.execute bytes=5
with cluster.pipeline(transaction=True) as watching:
    watching.watch("price:1")  #: within redis.ClusterPipeline.immediate_execute_command detail=WATCH
    watching.multi()
    watching.delete("price:1")
    watching.execute()  #: redis.ClusterPipeline.execute bytes=1
listener = cluster.pubsub()
listener.subscribe("prices")  #: within redis.ClusterPubSub.execute_command detail=SUBSCRIBE
assert listener.get_message(timeout=1)["type"] == "subscribe"
listener.close()
cluster.close()


async def main():
    cluster = redis.asyncio.RedisCluster(host="127.0.0.1", port=int(sys.argv[1]))
    await cluster.set("price:sesame", "secret")  #: within redis.asyncio.RedisCluster.execute_command detail=SET
    #: within redis.asyncio.RedisCluster.execute_command detail=GET
    assert await asyncio.gather(cluster.get("price:sesame")) == [b"secret"]
    with contextlib.suppress(redis.ResponseError):
        #: within redis.asyncio.RedisCluster.execute_command detail=INCRBY error=ResponseError
        await cluster.incr("price:sesame")
    pipeline = cluster.pipeline()
    for number in range(5):
        pipeline.set(f"price:{number}", "secret")
    assert await pipeline.execute() == [True] * 5  #: redis.asyncio.ClusterPipeline.execute bytes=5
    await cluster.aclose()


asyncio.run(main())
