/* The functions of database clients that are timed, as calls of the kind db, in programs that are not Python: the drivers of
   Python record the same themselves. Their wrappers are in program/program_databases.c; from this list are made the
   declarations (interpose/instrumentation/native.py).

   The columns: the library; the function; what is kept of the call and what tells how much it moved, in the words of
   hooks/slot.h. A call within another one of the list is part of that. */
#pragma once

#define A_POSTGRESQL "postgresql_statement"
#define A_SQLITE "sqlite_statement"
#define A_MYSQL "mysql_statement"

#define DATABASE_CALLS(X) \
    X(libpq,      PQconnectdb,            "",           "") \
    X(libpq,      PQconnectdbParams,      "",           "") \
    X(libpq,      PQsetdbLogin,           "",           "") \
    X(libpq,      PQexec,                 A_POSTGRESQL, "") \
    X(libpq,      PQexecParams,           A_POSTGRESQL, "") \
    X(libpq,      PQprepare,              A_POSTGRESQL, "") \
    X(libpq,      PQexecPrepared,         "",           "") \
    X(libpq,      PQsendQuery,            A_POSTGRESQL, "") \
    X(libpq,      PQsendQueryParams,      A_POSTGRESQL, "") \
    X(libpq,      PQsendPrepare,          A_POSTGRESQL, "") \
    X(libpq,      PQsendQueryPrepared,    "",           "") \
    X(libpq,      PQgetResult,            A_POSTGRESQL, "") \
    X(libpq,      PQputCopyData,          "",           "result") \
    X(libpq,      PQputCopyEnd,           "",           "") \
    X(libpq,      PQgetCopyData,          "",           "result") \
    X(libsqlite3, sqlite3_open,           "database",   "") \
    X(libsqlite3, sqlite3_open_v2,        "database",   "") \
    X(libsqlite3, sqlite3_exec,           A_SQLITE,     "") \
    X(libsqlite3, sqlite3_get_table,      A_SQLITE,     "") \
    X(libsqlite3, sqlite3_prepare,        A_SQLITE,     "") \
    X(libsqlite3, sqlite3_prepare_v2,     A_SQLITE,     "") \
    X(libsqlite3, sqlite3_prepare_v3,     A_SQLITE,     "") \
    X(libsqlite3, sqlite3_step,           A_SQLITE,     "row") \
    X(libsqlite3, sqlite3_backup_step,    "",           "") \
    X(libsqlite3, sqlite3_close,          "",           "") \
    X(libsqlite3, sqlite3_close_v2,       "",           "") \
    X(libmysql,   mysql_real_connect,     "",           "") \
    X(libmysql,   mysql_query,            A_MYSQL,      "") \
    X(libmysql,   mysql_real_query,       A_MYSQL,      "") \
    X(libmysql,   mysql_send_query,       A_MYSQL,      "") \
    X(libmysql,   mysql_read_query_result, A_MYSQL,     "") \
    X(libmysql,   mysql_store_result,     "",           "") \
    X(libmysql,   mysql_commit,           "",           "") \
    X(libmysql,   mysql_rollback,         "",           "") \
    X(libmysql,   mysql_stmt_prepare,     A_MYSQL,      "") \
    X(libmysql,   mysql_stmt_execute,     A_MYSQL,      "") \
    X(libmysql,   mysql_stmt_store_result, "",          "") \
    X(libhiredis, redisConnect,           "",           "") \
    X(libhiredis, redisCommand,           "word",       "") \
    X(libhiredis, redisCommandArgv,       "word",       "") \
    X(libhiredis, redisGetReply,          "",           "")

#define NUMBER_OF_DATABASE(library, name, ...) DATABASE_##name,
enum database_number { DATABASE_CALLS(NUMBER_OF_DATABASE) DATABASE_COUNT };
