"""trio: what its tasks wait for, as asyncio's do."""

from interpose.library import Intrinsic, alike

LIMITER = ("trio.CapacityLimiter.", "trio._sync:CapacityLimiter.")
RECEIVER = ("trio.MemoryReceiveChannel.", "trio._channel:MemoryReceiveChannel.")
SENDER = ("trio.MemorySendChannel.", "trio._channel:MemorySendChannel.")

INTRINSICS = [
    Intrinsic("trio.sleep", "trio._timeouts:sleep", "sleep idle"),
    *alike("trio.Lock.", "trio._sync:_LockImpl.", "acquire", "sync idle", waits=True),
    *alike("trio.Event.", "trio._sync:Event.", "wait", "sync idle", waits=True),
    *alike("trio.Condition.", "trio._sync:Condition.", "wait", "sync idle", waits=True),
    *alike("trio.Semaphore.", "trio._sync:Semaphore.", "acquire", "sync idle", waits=True),
    *alike(*LIMITER, "acquire_on_behalf_of", "sync idle", waits=True),
    *alike(*RECEIVER, "receive", "idle sync", choice="stock", waits=True),
    *alike(*SENDER, "send", "sync idle", waits=True),
]
