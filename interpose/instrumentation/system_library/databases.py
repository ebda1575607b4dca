"""Databases: SQLite, and the keyed files of dbm."""

from interpose.library import Intrinsic, alike

CONNECTION = ("sqlite3.Connection.", "_sqlite3:Connection.")
CURSOR = ("sqlite3.Cursor.", "_sqlite3:Cursor.")
BLOB = ("sqlite3.Blob.", "_sqlite3:Blob.")
DUMB = ("dbm.dumb.", "dbm.dumb:_Database.")
LITE = ("dbm.sqlite3.", "dbm.sqlite3:_Database.")
KEYED = "__getitem__ __setitem__ __delitem__ keys close"

INTRINSICS = [
    Intrinsic("sqlite3.connect", "_sqlite3:Connection.__init__", "db", detail="database"),
    *alike(*CONNECTION, "execute executemany executescript", "db", detail="sqlite_statement"),
    *alike(*CONNECTION, "commit __exit__", "db", transaction="ends"),
    *alike(*CONNECTION, "rollback close backup serialize deserialize", "db"),
    Intrinsic("sqlite3.Connection.blobopen", "_sqlite3:Connection.blobopen", "db"),
    *alike(*CURSOR, "execute executemany executescript", "db", detail="sqlite_statement"),
    *alike(*CURSOR, "fetchone __next__", "db", bytes="row"),
    *alike(*CURSOR, "fetchmany fetchall", "db", bytes="rows"),
    *alike(*CURSOR, "close", "db"),
    *alike(*BLOB, "read", "db", bytes="result"),
    *alike(*BLOB, "write", "db", bytes="argument"),
    *alike(*BLOB, "seek close __exit__", "db"),
    Intrinsic("dbm.ndbm.open", "_dbm:open", "db", detail="path"),
    *alike("dbm.ndbm.dbm.", "_dbm:dbm.", "get keys setdefault clear close", "db"),
    Intrinsic("dbm.gnu.open", "_gdbm:open", "db", detail="path"),
    *alike("dbm.gnu.gdbm.", "_gdbm:gdbm.", "get keys setdefault firstkey nextkey sync close", "db"),
    Intrinsic("dbm.dumb.open", "dbm.dumb:open", "db", detail="path"),
    *alike(*DUMB, f"{KEYED} _commit", "db"),
    Intrinsic("dbm.sqlite3.open", "dbm.sqlite3:open", "db", detail="path"),
    *alike(*LITE, KEYED, "db"),
]
