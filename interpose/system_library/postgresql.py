"""PostgreSQL: psycopg2, whose types are C."""

from interpose.library import Intrinsic, alike

CONNECTION = ("psycopg2.connection.", "psycopg2._psycopg:connection.")
CURSOR = ("psycopg2.cursor.", "psycopg2._psycopg:cursor.")
LARGE = ("psycopg2.lobject.", "psycopg2._psycopg:lobject.")

PSYCOPG2 = [
    Intrinsic("psycopg2.connect", "psycopg2._psycopg:connection.__init__", "db", detail="dsn"),
    *alike(*CONNECTION, "commit rollback close reset cancel poll __exit__", "db"),
    *alike(*CONNECTION, "tpc_begin tpc_prepare tpc_commit tpc_rollback tpc_recover", "db"),
    *alike(*CONNECTION, "set_session set_client_encoding lobject", "db"),
    *alike(*CURSOR, "execute executemany callproc", "db", detail="statement"),
    *alike(*CURSOR, "copy_expert", "db", detail="statement"),
    *alike(*CURSOR, "copy_from copy_to", "db", detail="statement", argument=1),
    *alike(*CURSOR, "fetchone __next__", "db", bytes="row"),
    *alike(*CURSOR, "fetchmany fetchall", "db", bytes="rows"),
    *alike(*CURSOR, "scroll close", "db"),
    *alike(*LARGE, "read", "db", bytes="result"),
    *alike(*LARGE, "write", "db", bytes="argument"),
    *alike(*LARGE, "seek tell truncate export unlink close", "db"),
]

INTRINSICS = [*PSYCOPG2]
