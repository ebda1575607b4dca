"""How transactions continue in other threads: in copies of their context (contextvars), and in the tasks they start.

asyncio.to_thread, anyio.to_thread and asgiref.sync_to_async run functions in threads in this way.
"""

from interpose.library import Intrinsic

INTRINSICS = [
    Intrinsic("contextvars.copy_context", "_contextvars:copy_context", "logic", argument="result", effect="carry"),
    Intrinsic("asyncio.Task", "_asyncio:Task.__init__", "logic", keyword="coro", effect="carry"),
    Intrinsic(
        "contextvars.Context.run",
        "_contextvars:Context.run",
        "logic",
        effect="continue",
        transaction="continues",
    ),
]
