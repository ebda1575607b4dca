"""The system library: what interpose ships, searched last."""

from interpose.library import Intrinsic

INTRINSICS = [
    Intrinsic("sqlite3.Cursor.execute", "_sqlite3:Cursor.execute", "db", detail="statement"),
    Intrinsic("os.write", "posix:write", "file", detail="descriptor", bytes="result"),
    Intrinsic("time.sleep", "time:sleep", "sleep"),
]
