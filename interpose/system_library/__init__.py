"""The system library: what interpose ships, searched last. A module for each kind of thing that is called."""

from interpose.system_library import databases, files, mysql, network, postgresql, processes, redis, screens, waits

INTRINSICS = [
    *databases.INTRINSICS,
    *postgresql.INTRINSICS,
    *mysql.INTRINSICS,
    *redis.INTRINSICS,
    *screens.INTRINSICS,
    *files.INTRINSICS,
    *network.INTRINSICS,
    *processes.INTRINSICS,
    *waits.INTRINSICS,
]
