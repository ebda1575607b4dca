"""The system library: what interpose ships, searched last. A module for each kind of thing that is called."""

from interpose.system_library import (
    databases,
    files,
    http,
    mysql,
    network,
    postgresql,
    processes,
    redis,
    screens,
    tasks,
    terminals,
    threaded,
    waits,
    web,
)

INTRINSICS = [
    *databases.INTRINSICS,
    *postgresql.INTRINSICS,
    *mysql.INTRINSICS,
    *redis.INTRINSICS,
    *screens.INTRINSICS,
    *terminals.INTRINSICS,
    *files.INTRINSICS,
    *threaded.INTRINSICS,
    *network.INTRINSICS,
    *http.INTRINSICS,
    *web.INTRINSICS,
    *tasks.INTRINSICS,
    *processes.INTRINSICS,
    *waits.INTRINSICS,
]
