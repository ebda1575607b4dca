"""MySQL and MariaDB: mysqlclient, with connections and results in C, and PyMySQL."""

from interpose.library import Intrinsic, alike

CONNECTION = ("MySQLdb.connection.", "MySQLdb._mysql:connection.")
RESULT = ("MySQLdb.result.", "MySQLdb._mysql:result.")
PYTHONS = ("pymysql.Connection.", "pymysql.connections:Connection.")
UNBUFFERED = ("pymysql.SSCursor.", "pymysql.cursors:SSCursor.")

MYSQLCLIENT = [
    Intrinsic("MySQLdb.connect", "MySQLdb._mysql:connection.__init__", "db", detail="server"),
    *alike(*CONNECTION, "query send_query", "db", detail="mysql_statement"),
    *alike(*CONNECTION, "store_result use_result", "db", bytes="cursor"),
    *alike(*CONNECTION, "commit", "db", transaction="ends"),
    *alike(*CONNECTION, "rollback autocommit close ping select_db change_user", "db"),
    *alike(*CONNECTION, "read_query_result next_result discard_result set_character_set kill stat", "db"),
    *alike(*RESULT, "fetch_row", "db", bytes="rows"),
    *alike(*RESULT, "discard", "db"),
]

PYMYSQL = [
    Intrinsic("pymysql.connect", "pymysql.connections:Connection.__init__", "db", detail="server"),
    *alike(*PYTHONS, "query", "db", detail="mysql_statement"),
    *alike(*PYTHONS, "commit", "db", transaction="ends"),
    *alike(*PYTHONS, "rollback begin autocommit close ping select_db next_result kill", "db"),
    *alike(*UNBUFFERED, "read_next", "db", bytes="row"),
]

INTRINSICS = [*MYSQLCLIENT, *PYMYSQL]
