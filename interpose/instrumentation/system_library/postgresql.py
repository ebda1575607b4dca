"""PostgreSQL: psycopg2, with types in C; psycopg 3, in C or in Python, and asyncpg, by their own methods."""

from interpose.library import Intrinsic, alike

ROW = {"bytes": "row"}
ROWS = {"bytes": "rows"}
STATEMENT = {"detail": "postgresql_statement"}
STATEMENT_ROW = {**STATEMENT, **ROW}
STATEMENT_ROWS = {**STATEMENT, **ROWS}
KEPT = {"detail": "postgresql_statement", "argument": None, "attribute": "_query"}
# To read it takes 7 us, because the driver keeps it as bytes: too long for each row that is copied.
COPIED = {"detail": "postgresql_statement", "argument": None, "attribute": "cursor._query.query"}
DSN = {"detail": "dsn"}
COMMIT = {"transaction": "ends"}
# A block ends a transaction only if it began one.
BLOCK_ENDS = {**COMMIT, "detail": "outermost", "argument": None, "attribute": "_outer_transaction"}
NESTED_ENDS = {**COMMIT, "detail": "nested", "argument": None, "attribute": "_nested"}


def psycopg(name, module):
    """A psycopg 3: its connections, cursors, transactions, copies and pipelines, `name` before each."""
    connection = (f"psycopg.{name}Connection.", f"psycopg.connection{module}:{name}Connection.")
    cursor = (f"psycopg.{name}Cursor.", f"psycopg.cursor{module}:{name}Cursor.")
    held = (f"psycopg.{name}ServerCursor.", f"psycopg._server_cursor{module}:{name}ServerCursor.")
    block = (f"psycopg.{name}Transaction.", f"psycopg.transaction:{name}Transaction.")
    pipeline = (f"psycopg.{name}Pipeline.", f"psycopg._pipeline{module}:{name}Pipeline.")
    copy = (f"psycopg.{name}Copy.", f"psycopg._copy{module}:{name}Copy.")
    following, enter, leave = "__next__", "__enter__", "__exit__"
    if name:
        following, enter, leave = "__anext__", "__aenter__", "__aexit__"
    return [
        *alike(*connection, "connect", "db", **DSN),
        *alike(*connection, "commit tpc_commit", "db", **COMMIT),
        *alike(*connection, "rollback close cancel_safe", "db"),
        *alike(*connection, "tpc_begin tpc_prepare tpc_rollback tpc_recover", "db"),
        *alike(*connection, "wait", "db idle", choice="outermost"),
        *alike(*cursor, "execute executemany copy", "db", **STATEMENT),
        *alike(*cursor, f"fetchone {following}", "db", **ROW),
        *alike(*cursor, "fetchmany fetchall", "db", **ROWS),
        *alike(*cursor, "scroll close", "db"),
        *alike(*held, "execute", "db", **STATEMENT),
        *alike(*held, f"fetchone {following}", "db", **ROW),
        *alike(*held, "fetchmany fetchall", "db", **ROWS),
        *alike(*held, "scroll close", "db"),
        *alike(*block, enter, "db"),
        *alike(*block, leave, "db", **BLOCK_ENDS),
        *alike(*pipeline, f"sync {leave}", "db"),
        *alike(*copy, "read", "db", bytes="result"),
        *alike(*copy, "write", "db", bytes="argument"),
        *alike(*copy, "read_row", "db", **ROW),
        *alike(*copy, "write_row", "db"),
        *alike(*copy, "finish", "db", **COPIED),
    ]


CONNECTION = ("psycopg2.connection.", "psycopg2._psycopg:connection.")
CURSOR = ("psycopg2.cursor.", "psycopg2._psycopg:cursor.")
LARGE = ("psycopg2.lobject.", "psycopg2._psycopg:lobject.")

PSYCOPG2 = [
    Intrinsic("psycopg2.connect", "psycopg2._psycopg:connection.__init__", "db", **DSN),
    *alike(*CONNECTION, "commit tpc_commit __exit__", "db", **COMMIT),
    *alike(*CONNECTION, "rollback close reset cancel poll", "db"),
    *alike(*CONNECTION, "tpc_begin tpc_prepare tpc_rollback tpc_recover", "db"),
    *alike(*CONNECTION, "set_session set_client_encoding lobject", "db"),
    *alike(*CURSOR, "execute executemany callproc copy_expert", "db", **STATEMENT),
    *alike(*CURSOR, "copy_from copy_to", "db", argument=1, **STATEMENT),
    *alike(*CURSOR, "fetchone __next__", "db", **ROW),
    *alike(*CURSOR, "fetchmany fetchall", "db", **ROWS),
    *alike(*CURSOR, "scroll close", "db"),
    *alike(*LARGE, "read", "db", bytes="result"),
    *alike(*LARGE, "write", "db", bytes="argument"),
    *alike(*LARGE, "seek tell truncate export unlink close", "db"),
]

AWAITED = ("asyncpg.Connection.", "asyncpg.connection:Connection.")
BLOCK = ("asyncpg.Transaction.", "asyncpg.transaction:Transaction.")
PREPARED = ("asyncpg.PreparedStatement.", "asyncpg.prepared_stmt:PreparedStatement.")
PORTAL = ("asyncpg.Cursor.", "asyncpg.cursor:Cursor.")
ITERATED = ("asyncpg.CursorIterator.", "asyncpg.cursor:CursorIterator.")

ASYNCPG = [
    Intrinsic("asyncpg.connect", "asyncpg.connect_utils:_connect", "db", **DSN),
    *alike(*AWAITED, "execute executemany fetchval prepare", "db", **STATEMENT),
    *alike(*AWAITED, "fetch fetchmany", "db", **STATEMENT_ROWS),
    *alike(*AWAITED, "fetchrow", "db", **STATEMENT_ROW),
    *alike(*AWAITED, "copy_from_query copy_from_table copy_to_table copy_records_to_table", "db", **STATEMENT),
    *alike(*AWAITED, "close reset add_listener remove_listener", "db"),
    *alike(*BLOCK, "commit __aexit__", "db", **NESTED_ENDS),
    *alike(*PREPARED, "fetch fetchmany", "db", **{**KEPT, **ROWS}),
    *alike(*PREPARED, "fetchrow", "db", **{**KEPT, **ROW}),
    *alike(*PREPARED, "fetchval executemany", "db", **KEPT),
    *alike(*PORTAL, "fetch", "db", **{**KEPT, **ROWS}),
    *alike(*PORTAL, "fetchrow", "db", **{**KEPT, **ROW}),
    *alike(*PORTAL, "forward", "db", **KEPT),
    *alike(*ITERATED, "__anext__", "db", **{**KEPT, **ROW}),
]

INTRINSICS = [*PSYCOPG2, *ASYNCPG, *psycopg("", ""), *psycopg("Async", "_async")]
