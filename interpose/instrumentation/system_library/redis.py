"""Redis: redis-py, for programs that wait and for those that await. Of a command its name is kept, nothing else.

What waits for what others will put there (BLPOP, messages that were subscribed to) is idle.
"""

from interpose.library import alike

COMMAND = {"detail": "word", "choice": "blocking"}


def redis(name, module, connections, host):
    """A client: its commands one by one, those of a pipeline in one, its connections and subscriptions."""
    client = (f"redis.{name}Redis.", f"{module}:Redis.")
    pipeline = (f"redis.{name}Pipeline.", f"{module}:Pipeline.")
    subscription = (f"redis.{name}PubSub.", f"{module}:PubSub.")
    connection = (f"redis.{name}Connection.", f"{connections}:Connection._")
    local = (f"redis.{name}UnixDomainSocketConnection.", f"{connections}:UnixDomainSocketConnection._")
    return [
        *alike(*client, "execute_command", "db idle", **COMMAND),
        *alike(*pipeline, "immediate_execute_command", "db idle", **COMMAND),
        *alike(*pipeline, "execute", "db", bytes="rows"),
        *alike(*subscription, "execute_command", "db", detail="word"),
        *alike(*subscription, "parse_response", "idle"),
        *alike(*connection, "connect", "db", detail="path", argument=None, attribute=host),
        *alike(*local, "connect", "db", detail="path", argument=None, attribute="path"),
    ]


def cluster(name, module):
    """A client of a cluster: what it asks of one of the nodes after the other is in the command that it is for."""
    client = (f"redis.{name}RedisCluster.", f"{module}:RedisCluster.")
    pipeline = (f"redis.{name}ClusterPipeline.", f"{module}:ClusterPipeline.")
    return [
        *alike(*client, "execute_command", "db idle", **COMMAND),
        *alike(*pipeline, "execute", "db", bytes="rows"),
    ]


WATCHED = ("redis.ClusterPipeline.", "redis.cluster:TransactionStrategy._")
SUBSCRIPTION = ("redis.ClusterPubSub.", "redis.cluster:ClusterPubSub.")

INTRINSICS = [
    *redis("", "redis.client", "redis.connection", "_host"),
    *redis("asyncio.", "redis.asyncio.client", "redis.asyncio.connection", "host"),
    *cluster("", "redis.cluster"),
    *alike(*WATCHED, "immediate_execute_command", "db idle", **COMMAND),
    *alike(*SUBSCRIPTION, "execute_command", "db", detail="word"),
    *cluster("asyncio.", "redis.asyncio.cluster"),
]
