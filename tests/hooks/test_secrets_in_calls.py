"""No secret is in the details of calls: a program may not exist, a URL may have another one in it."""

from pathlib import Path

import pytest

SECRET = "hunter2"

PROGRAMS = """
import contextlib, os, subprocess
for line in LINES:
    for start in (
        lambda: subprocess.run([line]),
        lambda: subprocess.run(line),
        lambda: subprocess.run(line, shell=True),
        lambda: subprocess.run(["true"], cwd="/none", executable=line),
        lambda: os.system(line),
        lambda: os.posix_spawn(line, [line], {}),
        lambda: os.posix_spawnp(line, [line], {}),
        lambda: os.spawnvp(os.P_WAIT, line, [line]),
    ):
        with contextlib.suppress(OSError):
            start()
"""
LINES = [
    f"mysqlx -p{SECRET}",
    f"https://u:{SECRET}@h/",
    f"PASSWORD={SECRET} mysqlx",
    f"--password={SECRET}",
    f"-p{SECRET}",
    f"/none/curl https://u:{SECRET}@h/",
    f"a:{SECRET}@b",
    f"KEYS=({SECRET} other) mysqlx",
]


def text_below(directory: Path) -> bytes:
    """All that was written into experiments."""
    return b"".join(path.read_bytes() for path in directory.rglob("*.er/**/*") if path.is_file())


@pytest.fixture
def written(traced, tmp_path):
    """What was written of a program that has `names`, and the details of its calls, or of those to sqlite3.connect."""

    def run(source: str, **names: object) -> tuple[bytes, list[str]]:
        head = "".join(f"{name} = {value!r}\n" for name, value in names.items())
        done = traced(head + source, INTERPOSE_ARCHIVE="off")
        assert done.returncode == 0, done.stderr
        return text_below(tmp_path), done.details("sqlite3.connect" if "sqlite3" in source else "")

    return run


def test_a_program_that_does_not_exist_leaves_its_name_and_no_more(written):
    text, details = written(PROGRAMS, LINES=LINES)

    assert SECRET.encode() not in text
    assert {"mysqlx", "/none/curl", "?"} <= set(details)


URLS = """
import contextlib, http.client
for url in URLS:
    with contextlib.suppress(OSError):
        http.client.HTTPConnection("127.0.0.1", 9).request("GET", url)
"""


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("/?next=https://u:{}@h/", "/"),
        ("/r/https://u:{}@h/x", "/r/https://h/x"),
        ("/r/https://{}@h/x", "/r/https://h/x"),
        ("/r/https://u:p/{}@h/x", "/r/https://h/x"),
        ("/r/https://u:p?{}@h/x", "/r/https://h/x"),
        ("/r/https:/u:{}@h/x", "/r/https:/h/x"),
        ("/r/https:/{}@h/x", "/r/https:/h/x"),
        ("/r/https%3A%2F%2Fu%3a{}%40h%2Fx", "/r/h%2Fx"),
        ("/r//u:{}@h/x", "/r//h/x"),
        ("/u:{}@h/x", "/h/x"),
        ("https://a/https://b/https://u:{}@h/", "https://a/https://b/https://h/"),
        ("/users/ann@example.org", "/users/ann@example.org"),
        ("/@scope/name;v={}/x", "/@scope/name/x"),
        ("/a&sig={}/b", "/a"),
        ("/a%26sig%3D{}", "/a"),
        ("/r/https%3A%2F%2Fh%2Fx%3ftoken%3D{}", "/r/https%3A%2F%2Fh%2Fx"),
        ("/r/https%3A%2F%2Fh%2Fx%23access_token={}", "/r/https%3A%2F%2Fh%2Fx"),
        ("/a%3Bsid={}/b", "/a"),
        ("/a%3F{}", "/a"),
        ("/r&d/c%23/x", "/r&d/c%23/x"),
        ("/u:{};x@h/x", "//x"),
        ("/u:{}%3Fx%40h/x", "/"),
        ("/r/https%3A%2F%2Fu%3A{}%26x%3Dy%40h%2Fx", "/r/"),
        ("/a%3Fx//u:{}@h/x", "/a"),
        ("data:text/plain,{}", "data:text/plain"),
        ("DATA:a//b;base64,//u:{}@h", "DATA:a//b;base64"),
        ("https:/u:{}?x@h/x", "https:/h/x"),
        ("https:/u:{}/x@h/x", "https:/h/x"),
        ("/r/https:/u:p#{}@h/x", "/r/https:/h/x"),
        ("https://h;password={}/x", "https://h"),
        ("https://u:{}/x", "https://"),
        ("/a/password={}/x", "/a/password="),
        ("http://h:80/@scope/name?token={}", "http://h:80/@scope/name"),
        ("http://h:80/users/ann@example.org", "http://h:80/users/ann@example.org"),
        ("http://[::1]:80/ann@example.org", "http://[::1]:80/ann@example.org"),
        ("https://h/v1/x:find?mail=ann@{}", "https://h/v1/x:find"),
        ("https://h/v1/x:y/@scope/name", "https://h/v1/x:y/@scope/name"),
        ("https://h/year=2024/x", "https://h/year=2024/x"),
        ("h:443", "h:443"),
    ],
)
def test_a_url_in_a_url_has_no_user_and_no_password(written, url, kept):
    text, details = written(URLS, URLS=[url.format(SECRET)])

    assert SECRET.encode() not in text
    assert [detail for detail in details if detail.startswith("GET ")] == [f"GET {kept}"]


HOSTS = """
import contextlib, socket
for host in HOSTS:
    with contextlib.suppress(OSError):
        socket.getaddrinfo(host, 80)
"""


def test_a_url_given_for_a_host_has_no_parameters(written):
    text, details = written(HOSTS, HOSTS=[f"http://h/x?token={SECRET}", f"h#{SECRET}", f"u:{SECRET}@h?{SECRET}"])

    assert SECRET.encode() not in text
    assert {"[http://h/x]:80", "h:80"} <= set(details)


DATABASES = """
import contextlib, sqlite3
for path in PATHS:
    with contextlib.suppress(sqlite3.Error):
        sqlite3.connect(path, uri=True)
"""


def test_a_database_keeps_its_path_and_nothing_of_a_connection_string(written, tmp_path):
    (tmp_path / "y=1").mkdir()
    paths = {
        str(tmp_path / "y=1" / "a.db"): str(tmp_path / "y=1" / "a.db"),
        "region=eu.db": "region=eu.db",
        f"file:x.db?mode=memory&key={SECRET}": "file:x.db",
        f"file:x.db?key={SECRET}": "file:x.db",
        "file://localhost/tmp/x.db": "file://localhost/tmp/x.db",
        f"file://u:{SECRET}@h/x.db": "",
        f"x.db?key={SECRET}": "",
        f"x.db?sig={SECRET}": "x.db",
        f"postgresql://u:{SECRET}@h/d": "",
        f"host=h password = {SECRET}": "",
        f"host=h;PWD={SECRET}": "",
        f"user_pw={SECRET}": "",
    }
    text, details = written(DATABASES, PATHS=list(paths))

    assert SECRET.encode() not in text
    assert details == list(paths.values())


STATEMENTS = """
import contextlib, sqlite3
shop = sqlite3.connect(":memory:", uri=True)
shop.execute("create table t(a)")
for statement in STATEMENTS:
    for run in (shop.execute, shop.executescript):
        with contextlib.suppress(sqlite3.Error):
            run(statement)
shop.execute("select ?", (SECRET,))
shop.execute("select :a", {"a": SECRET})
shop.executemany("insert into t values(?)", [(SECRET,)])
"""


def test_parameters_pragmas_and_attached_files_leave_nothing(written):
    forms = [
        *("attach 'file:x?key={}' as a", 'attach "file:x?key={}" as b', "attach [file:x?key={}] as c"),
        *("attach `file:x?key={}` as d", "attach ('file:' || '{}') as e", "attach 'x' as g key {}"),
        *("pragma key='{}'", "pragma key={}", "pragma hexkey={}", "pragma key({})", "pragma main.key = {}"),
        *('pragma "key"={}', "explain pragma key={}", "/* c */ pragma rekey={}", "-- x\npragma cipher_salt={}"),
        *("pragma temp_store_directory='{}'", "vacuum into '{}'", "select load_extension('{}')"),
        'vacuum into "file:x?key={}"',
    ]
    text, _ = written(STATEMENTS, STATEMENTS=[form.format(SECRET) for form in forms], SECRET=SECRET)

    assert SECRET.encode() not in text
