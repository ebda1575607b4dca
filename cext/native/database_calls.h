/* The functions of database clients that are timed, as calls of the kind db, in programs that are not Python: the drivers of
   Python record the same themselves. Their wrappers are in program/program_databases.c and program_messages.c; from this list are made the
   declarations (interpose/instrumentation/native.py).

   What waits for messages that others send is idle meanwhile. A topic of messages is kept where a database would be.

   The columns: the library; the function; what is kept of the call and what tells how much it moved, in the words of
   hooks/slot.h. A call within another one of the list is part of that. */
#pragma once

#define A_POSTGRESQL "postgresql_statement"
#define A_SQLITE "sqlite_statement"
#define A_MYSQL "mysql_statement"

#define DATABASE_CALLS(X) SQL_CALLS(X) MESSAGE_CALLS(X)
#define MESSAGE_CALLS(X) ACTING_MESSAGE_CALLS(X) WAITING_MESSAGE_CALLS(X)

#define SQL_CALLS(X) \
    X(libpq,      PQconnectdb,            "",           "") \
    X(libpq,      PQconnectdbParams,      "",           "") \
    X(libpq,      PQsetdbLogin,           "",           "") \
    X(libpq,      PQexec,                 A_POSTGRESQL, "") \
    X(libpq,      PQexecParams,           A_POSTGRESQL, "") \
    X(libpq,      PQprepare,              A_POSTGRESQL, "") \
    X(libpq,      PQexecPrepared,         A_POSTGRESQL, "") \
    X(libpq,      PQdescribePrepared,     A_POSTGRESQL, "") \
    X(libpq,      PQsendQuery,            A_POSTGRESQL, "") \
    X(libpq,      PQsendQueryParams,      A_POSTGRESQL, "") \
    X(libpq,      PQsendPrepare,          A_POSTGRESQL, "") \
    X(libpq,      PQsendQueryPrepared,    A_POSTGRESQL, "") \
    X(libpq,      PQsendDescribePrepared, A_POSTGRESQL, "") \
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
    X(libmysql,   mysql_store_result,     A_MYSQL,      "") \
    X(libmysql,   mysql_use_result,       A_MYSQL,      "") \
    X(libmysql,   mysql_next_result,      A_MYSQL,      "") \
    X(libmysql,   mysql_fetch_row,        A_MYSQL,      "row") \
    X(libmysql,   mysql_commit,           "",           "") \
    X(libmysql,   mysql_rollback,         "",           "") \
    X(libmysql,   mysql_stmt_prepare,     A_MYSQL,      "") \
    X(libmysql,   mysql_stmt_execute,     A_MYSQL,      "") \
    X(libmysql,   mysql_stmt_store_result, A_MYSQL,     "") \
    X(libmysql,   mysql_stmt_fetch,       A_MYSQL,      "row") \
    X(libhiredis, redisConnect,           "",           "") \
    X(libhiredis, redisCommand,           "word",       "") \
    X(libhiredis, redisvCommand,          "word",       "") \
    X(libhiredis, redisCommandArgv,       "word",       "") \
    X(libhiredis, redisGetReply,          "",           "")

#define ACTING_MESSAGE_CALLS(X) \
    X(librdkafka, rd_kafka_new,                     "",         "") \
    X(librdkafka, rd_kafka_produce,                 "database", "result") \
    X(librdkafka, rd_kafka_produce_batch,           "database", "") \
    X(librdkafka, rd_kafka_producev,                "database", "result") \
    X(librdkafka, rd_kafka_produceva,               "",         "") \
    X(librdkafka, rd_kafka_flush,                   "",         "") \
    X(librdkafka, rd_kafka_subscribe,               "",         "") \
    X(librdkafka, rd_kafka_commit,                  "",         "") \
    X(librdkafka, rd_kafka_commit_message,          "database", "") \
    X(librdkafka, rd_kafka_committed,               "",         "") \
    X(librdkafka, rd_kafka_metadata,                "database", "") \
    X(librdkafka, rd_kafka_query_watermark_offsets, "",         "") \
    X(librdkafka, rd_kafka_consumer_close,          "",         "") \
    X(librdkafka, rd_kafka_init_transactions,       "",         "") \
    X(librdkafka, rd_kafka_commit_transaction,      "",         "") \
    X(librdkafka, rd_kafka_abort_transaction,       "",         "")

#define WAITING_MESSAGE_CALLS(X) \
    X(librdkafka, rd_kafka_poll,                    "",         "") \
    X(librdkafka, rd_kafka_queue_poll,              "",         "") \
    X(librdkafka, rd_kafka_consumer_poll,           "database", "result") \
    X(librdkafka, rd_kafka_consume,                 "database", "result")

#define NUMBER_OF_DATABASE(library, name, ...) DATABASE_##name,
enum database_number { DATABASE_CALLS(NUMBER_OF_DATABASE) DATABASE_COUNT };
