"""Orders in SQLite, their drawings as blobs, and settings in keyed files."""

# ruff: noqa: SIM115 (to close is a call like others)

import contextlib
import dbm.dumb
import sqlite3
import sys

connection = sqlite3.connect("orders.db", isolation_level=None)  #: sqlite3.connect detail=orders.db
with contextlib.suppress(sqlite3.OperationalError):
    sqlite3.connect("/nowhere/at/all")  #: sqlite3.connect detail=/nowhere/at/all error=OperationalError

#: sqlite3.Connection.execute detail=create table orders (id integer primary key, item text, drawing blob)
connection.execute("create table orders (id integer primary key, item text, drawing blob)")
rows = [(number, f"item {number}") for number in range(10)]
#: sqlite3.Connection.executemany detail=insert into orders (id, item) values (?, ?)
connection.executemany("insert into orders (id, item) values (?, ?)", rows)
#: sqlite3.Connection.executescript detail=update orders set drawing = zeroblob(?); create table t (x); drop table t
#: within sqlite3.Cursor.executescript detail=update orders set drawing = zeroblob(?); create table t (x); drop table t
connection.executescript("update orders set drawing = zeroblob(8); create table t (x); drop table t")

cursor = connection.cursor()
for number in range(5):
    #: 5 sqlite3.Cursor.execute detail=select item from orders where id >= ? and item <> ?
    cursor.execute("select item from orders where id >= ? and item <> 'secret'", (number,))
    assert cursor.fetchone() == (f"item {number}",)  #: 5 sqlite3.Cursor.fetchone bytes=1
    assert len(cursor.fetchmany(2)) == 2  #: 5 sqlite3.Cursor.fetchmany bytes=2
    assert len(cursor.fetchall()) == 7 - number  #: 5 sqlite3.Cursor.fetchall bytes=...
with contextlib.suppress(sqlite3.OperationalError):
    #: sqlite3.Cursor.execute detail=select * from nowhere error=OperationalError
    cursor.execute("select * from nowhere")
with contextlib.suppress(sqlite3.IntegrityError):
    #: sqlite3.Cursor.executemany detail=insert into orders (id) values (?) error=IntegrityError
    cursor.executemany("insert into orders (id) values (?)", [(20,), (20,)])
with contextlib.suppress(sqlite3.OperationalError):
    #: sqlite3.Cursor.executescript detail=select ?; nonsense error=OperationalError
    cursor.executescript("select 1; nonsense")
#: sqlite3.Cursor.executemany detail=delete from orders where id = ?
cursor.executemany("delete from orders where id = ?", [(20,)])
#: sqlite3.Cursor.executescript detail=select ?
cursor.executescript("select 1")
#: sqlite3.Cursor.execute detail=select id from orders
cursor.execute("select id from orders")
seen = 0
for _ in cursor:  #: 10 sqlite3.Cursor.__next__ bytes=1 & sqlite3.Cursor.__next__
    seen += 1
assert seen == 10
assert next(cursor, None) is None  #: sqlite3.Cursor.__next__
cursor.close()  #: sqlite3.Cursor.close
with contextlib.suppress(sqlite3.ProgrammingError):
    cursor.fetchone()  #: sqlite3.Cursor.fetchone error=ProgrammingError

#: sqlite3.Connection.execute detail=begin
connection.execute("begin")
connection.commit()  #: sqlite3.Connection.commit
#: sqlite3.Connection.execute detail=begin
connection.execute("begin")
connection.rollback()  #: sqlite3.Connection.rollback
with connection:  #: sqlite3.Connection.__exit__
    pass

with connection.blobopen("orders", "drawing", 1) as blob:  #: sqlite3.Connection.blobopen & sqlite3.Blob.__exit__
    blob.write(b"line")  #: sqlite3.Blob.write bytes=4
    blob.seek(0)  #: sqlite3.Blob.seek
    for _ in range(3):
        blob.read(2)  #: 3 sqlite3.Blob.read bytes=2
    with contextlib.suppress(ValueError):
        blob.write(b"longer than the blob")  #: sqlite3.Blob.write error=ValueError
blob = connection.blobopen("orders", "drawing", 2)  #: sqlite3.Connection.blobopen
blob.close()  #: sqlite3.Blob.close
with contextlib.suppress(sqlite3.OperationalError):
    connection.blobopen("orders", "no column", 2)  #: sqlite3.Connection.blobopen error=OperationalError

copy = sqlite3.connect(":memory:")  #: sqlite3.connect detail=:memory:
connection.backup(copy)  #: sqlite3.Connection.backup
copy.deserialize(copy.serialize())  #: sqlite3.Connection.deserialize & sqlite3.Connection.serialize
copy.close()  #: sqlite3.Connection.close
with contextlib.suppress(sqlite3.ProgrammingError):
    copy.commit()  #: sqlite3.Connection.commit error=ProgrammingError
connection.close()  #: sqlite3.Connection.close

settings = dbm.dumb.open("settings", "c")  #: dbm.dumb.open detail=settings
for key in ("colour", "size", "shape"):
    settings[key] = b"x"  #: 3 dbm.dumb.__setitem__
assert settings["colour"] == b"x"  #: dbm.dumb.__getitem__
with contextlib.suppress(KeyError):
    settings["weight"]  #: dbm.dumb.__getitem__ error=KeyError
del settings["size"]  #: dbm.dumb.__delitem__
assert sorted(settings.keys()) == [b"colour", b"shape"]  #: dbm.dumb.keys
settings.sync()  #: dbm.dumb._commit
settings.close()  #: dbm.dumb.close & within dbm.dumb._commit

if sys.version_info >= (3, 13):
    import dbm.sqlite3

    lite = dbm.sqlite3.open("settings.sqlite", "c")  #: dbm.sqlite3.open detail=settings.sqlite
    for key in ("colour", "size", "shape"):
        lite[key] = b"x"  #: 3 dbm.sqlite3.__setitem__
    assert lite["colour"] == b"x"  #: dbm.sqlite3.__getitem__
    with contextlib.suppress(KeyError):
        lite["weight"]  #: dbm.sqlite3.__getitem__ error=KeyError
    del lite["size"]  #: dbm.sqlite3.__delitem__
    assert sorted(lite.keys()) == [b"colour", b"shape"]  #: dbm.sqlite3.keys
    lite.close()  #: dbm.sqlite3.close

with contextlib.suppress(ImportError):  # not every Python is built with them
    import dbm.gnu

    table = dbm.gnu.open("settings.gnu", "c")  #: dbm.gnu.open detail=settings.gnu
    table.setdefault("colour", "red")  #: dbm.gnu.gdbm.setdefault
    table.get("colour")  #: dbm.gnu.gdbm.get
    table.nextkey(table.firstkey())  #: dbm.gnu.gdbm.firstkey & dbm.gnu.gdbm.nextkey
    table.keys()  #: dbm.gnu.gdbm.keys
    table.sync()  #: dbm.gnu.gdbm.sync
    table.close()  #: dbm.gnu.gdbm.close
with contextlib.suppress(ImportError):
    import dbm.ndbm

    table = dbm.ndbm.open("settings.new", "c")  #: dbm.ndbm.open detail=settings.new
    table.setdefault("colour", "red")  #: dbm.ndbm.dbm.setdefault
    table.get("colour")  #: dbm.ndbm.dbm.get
    table.keys()  #: dbm.ndbm.dbm.keys
    if hasattr(table, "clear"):  # 3.13
        table.clear()  #: dbm.ndbm.dbm.clear
    table.close()  #: dbm.ndbm.dbm.close
