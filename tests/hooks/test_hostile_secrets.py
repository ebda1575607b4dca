"""Passwords in whatever shape a user may mistype them: no part of one is in any file of the experiment, and the calls
of the program get what they were given."""

import json
import sys
from pathlib import Path

import pytest
from contents import contents_of
from tracing import run_in, write_program

pytestmark = pytest.mark.any_python

FIRST, SECOND = "hunter{:03}q", "swordfish{:03}q"  # of each shape its own, so that what is found tells which it was

# X and Y are the parts of a password. Each is given for a URL, a path, a host, a port and a database.
ADDRESSES = [
    *("https://u:X@h", "https://u:X?Y@h/x", "https://u:X#Y@h/x", "https://u:X/Y@h/x", "https://u:X\\Y@h/x"),
    *("https:/u:X@h", "https:/u:X?Y@h", "https:/u:X#Y@h/x", "https:/u:X/Y@h/x", "https:/u:X;Y@h/x"),
    *("https:u:X@h", "https:u:X?Y@h", "https:u:X/Y@h/x", "https:///u:X?Y@h", "https:\\\\u:X@h/x", "https:\\u:X?Y@h"),
    *("u:X@h/x", "u:X?Y@h/x", "u:X/Y@h/x", "//u:X?Y@h/x", "/u:X/Y@h/x", "/u:X?Y@h", "HTTPS:/u:X?Y@h", ":X@h"),
    *("u:X#Y@h", "https://u:X/Y?X@h/x", "https:/u:X#Y/X@h"),
    *("https://u:X@Y@h/x", "https://u:X:Y@h/x", "https://u:X%3FY@h/x", "https:/u:X%2FY@h/x", "https:/u%3aX%3FY%40h"),
    *("https://u%3aX%40h/x", "https%3a/u:X?Y@h", "https%3a%2Fu%3aX%2FY%40h%2Fx", "https:/u:X?Y%40h", "https://u:X&b=Y@h"),
    *("https://u:X", "http:/u:X", "https://u:12?X@h/x", "https:/u:12?X/Y@h/x", "https://[u:X@h]/", "https://u:X??Y@h"),
    *("https:/\u00fc:X?Y@h/\u00e4", "https:/u:\u00e4X?Y@h", "https://u:X\tY@h/", " https:/u:X?Y@h", "https://u:X Y@h"),
    *("https:/r/https:/u:X?Y@h/x", "/r/https:/u:X/Y@h/x", "/r/https:/u:X?Y@h/x", "/tmp/https:/u:X@h/x"),
    *("postgresql://u:X@h/d", "postgresql:/u:X?Y@h/d", "mysql:/u:X/Y@h/d", "mssql+pyodbc://u:X@h/d?password=Y"),
    *("redis://:X@h", "redis:/:X?Y@h", "redis:/:X#Y@h/0", "rediss://u:X@h:6379/0", "amqp://u:X@h/%2F", "amqp:/u:X/Y@h"),
    *("mongodb://u:X@h1,u:Y@h2/d", "mongodb+srv:/u:X?Y@h/d", "s3:/X:Y@bucket/x", "ftp:/u:X?Y@h/x", "ldap://u:X?Y@h"),
    *("jdbc:oracle:thin:u/X@h:1521/x", "jdbc:sqlserver://h:1433;user=u;password=X/Y", "jdbc:mysql://u:X/Y@h/d"),
]
PARAMETERS = [
    *("https://h/x?password=X&token=Y", "https://h/x#access_token=X", "https://h/x;sid=X?b=Y", "https://h?token=X"),
    *("/x?api_key=X", "/x%3Ftoken=X", "/x&sig=X", "/token=X/x", "/x,password=X/Y", "https://h/secret=X", "//h;token=X"),
    *("https://h&password=X/x", "https://h%3Ftoken%3DX/x", "https://h:80?X", "https://h:80#X", "/api_key=X&b=Y"),
    *("data:text/plain,X", "data:;base64,X/Y"),
]
CONNECTIONS = [
    *("host=h password=X", "host = h password = 'X Y'", "host=h;PWD=X;UID=u", "user=u passwd=X", "x password=X"),
    *("pw=X", "dbname=d password=X host=h", "Server=h;Database=d;User Id=u;Password=X;", "DRIVER={x};PWD={X Y}"),
]
COMMANDS = [
    *("mysql --password=X", "mysql -pX", "mysql -p X", "psql postgresql://u:X?Y@h/d", "psql 'host=h password=X'"),
    *("PGPASSWORD=X psql", "PGPASSWORD='X Y' psql", 'PGPASSWORD="X Y" psql', "env PGPASSWORD=X psql", "A=X B=Y true"),
    *("curl -u u:X https://h", "curl https:/u:X?Y@h", "curl -H 'Authorization: Bearer X'", "curl --user=u:X h"),
    *("curl -d token=X h", "sshpass -pX ssh h", "redis-cli -a X", "openssl -passin pass:X", "echo X | cat", "<<<X cat"),
    *("export PASSWORD=X; true", "u:X@h", "https:/u:X?Y@h", "PASSWORD=X", "PASSWORD=(X Y) true"),
    *("true\nPASSWORD=X", "true -k X", "true --token X", "true --dsn=amqp:/u:X?Y@h", "true DATABASE_URL=redis:/:X@h"),
]
HEADERS = [
    *({"Authorization": "Bearer X"}, {"Authorization": "Basic X"}, {"Cookie": "session=X; token=Y"}),
    *({"X-Api-Key": "X"}, {"Referer": "https:/u:X?Y@h"}, {"traceparent": "00-X"}),
    *({"tracestate": "a=X"}, {"baggage": "password=X"}),
]
METHODS = ["https:/u:X?Y@h", "token=X", "GET /x?X"]
SHAPES = [*ADDRESSES, *PARAMETERS, *CONNECTIONS, *COMMANDS, *HEADERS, *METHODS]

PROGRAM = """
import contextlib, dbm, http.client, json, os, pathlib, socket, socketserver, sqlite3, subprocess, sys, threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

given = json.load(sys.stdin)
heard = []

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        heard.append([self.path, *[self.headers.get(name) for name in self.headers if name in given["names"]]])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *words):
        pass

def attempt(call, *words, **options):
    with contextlib.suppress(Exception):
        return call(*words, **options)

server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()

def ask(method, target, headers={}):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    connection._validate_path = lambda path: None
    connection._validate_method = lambda method: None
    connection._encode_request = lambda request: request.encode()
    connection.request(method, target, headers=headers)
    connection.getresponse().read()
    connection.close()

for each in given["addresses"]:
    attempt(ask, "GET", each)
    attempt(urllib.request.urlopen, each)
    for call in (open, os.stat, os.listdir, pathlib.Path.exists, dbm.open, socket.gethostbyname):
        attempt(call, pathlib.Path(each) if call is pathlib.Path.exists else each)
    attempt(os.stat, pathlib.Path(each))
    attempt(os.stat, os.path.abspath(each))
    attempt(socket.getaddrinfo, each, 80)
    attempt(socket.getaddrinfo, "127.0.0.1", each)
    attempt(socket.create_connection, (each, 80))
    attempt(socket.socket(socket.AF_UNIX).connect, each)
for each in given["parameters"]:
    attempt(ask, "GET", each)
    attempt(urllib.request.urlopen, each)
    if "://" in each:
        attempt(os.stat, each)
        attempt(os.stat, pathlib.Path(each))
for each in given["connections"]:
    attempt(socket.gethostbyname, each)
for each in given["databases"]:
    attempt(sqlite3.connect, each)
    attempt(sqlite3.connect, each, uri=True)
for each in given["commands"]:
    quiet = dict(stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    attempt(subprocess.run, each, **quiet)
    attempt(subprocess.run, each, shell=True, **quiet)
    attempt(subprocess.run, ["sh", "-c", each], **quiet)
    attempt(subprocess.run, ["true"], executable=each, **quiet)
    attempt(subprocess.run, ["true"], env={"PASSWORD": each}, **quiet)
    attempt(os.system, "{ " + each + "\\n} >/dev/null 2>&1 </dev/null")
    attempt(os.posix_spawnp, each, [each], {})
    heard.append(subprocess.run(["echo", *each.split()], capture_output=True, text=True).stdout)
for each in given["headers"]:
    attempt(ask, "GET", "/headers", each)
for each in given["methods"]:
    attempt(ask, each, "/")
subprocess.run([sys.executable, "-c", "pass", *[word for each in given["commands"] for word in each.split()]])
print(json.dumps(heard))
"""


def filled(shape, number: int):
    """The shape with the two parts of its password."""
    if isinstance(shape, dict):
        return {name: filled(value, number) for name, value in shape.items()}
    return shape.replace("X", FIRST.format(number)).replace("Y", SECOND.format(number))


def run(directory: Path, variables: dict[str, str]):
    """What the program saw of its own calls."""
    shapes = iter([filled(shape, number) for number, shape in enumerate(SHAPES)])
    groups = {
        "addresses": ADDRESSES,
        "parameters": PARAMETERS,
        "connections": CONNECTIONS,
        "commands": COMMANDS,
        "headers": HEADERS,
        "methods": METHODS,
    }
    given = {name: [next(shapes) for _ in group] for name, group in groups.items()}
    # SQLite looks for a file with such a name, directory by directory: natively, these are calls with paths.
    given["databases"] = [] if variables.get("INTERPOSE") == "native" else given["addresses"] + given["connections"]
    given["names"] = [name for header in HEADERS for name in header]
    program = write_program(directory, PROGRAM)
    done = run_in(directory, [sys.executable, str(program)], input=json.dumps(given), timeout_s=300, **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def is_in(everything: bytes, parts: tuple[str, ...]) -> bool:
    return any(part.encode() in everything for part in parts)


@pytest.mark.long
@pytest.mark.parametrize(
    "settings",
    [{"INTERPOSE": "1"}, {"INTERPOSE": "native"}, {"INTERPOSE": "1", "INTERPOSE_CONSOLIDATE": "1"}],
    ids=["usual", "native", "consolidated"],
)
def test_no_part_of_a_password_is_in_any_file_and_calls_get_all_of_it(tmp_path, settings):
    (tmp_path / "plain").mkdir()
    (tmp_path / "traced").mkdir()
    plain = run(tmp_path / "plain", {})

    traced = run(tmp_path / "traced", settings)

    files = [path for path in (tmp_path / "traced").rglob("*.er/**/*") if path.is_file()]
    everything = b"\n".join(content for path in files for content in contents_of(path))
    secrets = [(FIRST.format(number), SECOND.format(number)) for number in range(len(SHAPES))]
    found = [shape for shape, parts in zip(SHAPES, secrets, strict=True) if is_in(everything, parts)]
    assert len(SHAPES) > 60
    assert b"http.client" in everything
    assert traced == plain
    assert not found
