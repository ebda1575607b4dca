"""Programs that nobody here wrote do under the tracer what they do without it, and are recorded in full."""

import gzip
import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from tracing import Traced, environment, write_program

pytestmark = pytest.mark.any_python

PYTHON = sys.executable
THEN_S = 1_000_000_000
OFF, ON = "0", "1"
Act = Callable[[subprocess.Popen], object]


class Done(NamedTuple):
    """What anybody sees of a program that has ended."""

    returncode: int
    stdout: str
    stderr: str
    files: dict[str, bytes]


def write(directory: Path, name: str, text: str) -> None:
    """A file whose time is always the same: archives have it in them."""
    path = directory / name
    path.write_text(text)
    os.utime(path, (THEN_S, THEN_S))


def files_in(directory: Path) -> dict[str, bytes]:
    """What is in a directory; of compiled code only that it is there, for it has times in it."""
    paths = {str(path.relative_to(directory)): path for path in directory.rglob("*")}
    return {
        name: path.read_bytes() if path.is_file() and path.suffix != ".pyc" else b""
        for name, path in sorted(paths.items())
    }


def settled(text: str) -> str:
    """The text without times and addresses, the lines of a server's log in one order."""
    text = re.sub(r"in [\d.]+s|0x[0-9a-f]+", "", text)
    logged = re.compile(r"^127\.0\.0\.1 - - \[.*?\] (.*)$", re.MULTILINE)
    return "\n".join([logged.sub("", text), *sorted(logged.findall(text))])


class Both:
    """Runs a program without the tracer and with it, each time in a new directory of the same name."""

    def __init__(self, tmp_path: Path, interpose: Callable[..., subprocess.CompletedProcess]) -> None:
        self.interpose = interpose
        self.work = tmp_path / "foreign"
        self.experiments = tmp_path / "experiments"
        self.state = tmp_path / "state"

    def __call__(
        self, prepare: Callable[[Path], object], *words: str, through_run: bool = False, act: Act = lambda _: None
    ) -> tuple[Done, Traced]:
        """What it gave, which is the same both times, and its experiment. `act` is given the process as it runs."""
        off = self.once(prepare, [PYTHON, *words], OFF, act)
        command = [PYTHON, "-m", "interpose", "run", *words] if through_run else [PYTHON, *words]
        on = self.once(prepare, command, ON, act)
        assert on == off
        traced = Traced(self.experiments, subprocess.CompletedProcess([], on.returncode, on.stdout, on.stderr))
        self.check_report(traced)
        return on, traced

    def once(self, prepare: Callable[[Path], object], words: list[str], recording: str, act: Act) -> Done:
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        prepare(self.work)
        process = subprocess.Popen(
            words,
            cwd=self.work,
            env=environment(
                INTERPOSE=recording,
                INTERPOSE_DIR=str(self.experiments),
                XDG_STATE_HOME=str(self.state),
                PYTHONHASHSEED="0",
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            act(process)
            stdout, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
        return Done(process.returncode, settled(stdout), settled(stderr), files_in(self.work))

    def check_report(self, traced: Traced) -> None:
        """The experiment is complete, of all its processes, and can be reported."""
        report = self.interpose("report", traced.path, variables={"COLUMNS": "120"})
        assert (report.returncode, report.stderr) == (0, "")
        assert "   complete\n" in report.stdout
        assert "incomplete" not in report.stdout
        assert not any(process.lost_calls or process.unrecorded_children for process in traced.experiment.processes)
        assert not any(thread.record.dropped for process in traced.experiment.processes for thread in process.threads)
        assert not self.state.exists()


@pytest.fixture
def both(tmp_path: Path, interpose_here: Callable[..., subprocess.CompletedProcess]) -> Both:
    return Both(tmp_path, interpose_here)


def nothing(work: Path) -> None:
    """The program needs no files."""


def some_files(work: Path) -> None:
    rows = "".join(f"{number},name{number % 7},{number * 1.5}\n" for number in range(2000))
    write(work, "data.csv", f"id,name,amount\n{rows}")
    write(work, "data.json", '{"b": [1, 2.5, null], "a": "ü"}')
    write(work, "module.py", "def f(x):\n    return x + 1\n")
    with zipfile.ZipFile(work / "archive.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(work / "data.csv", "below/data.csv")
        archive.write(work / "module.py", "module.py")
    (work / "data.csv.gz").write_bytes(gzip.compress(rows.encode(), mtime=0))


SHIPPED = {
    "zipfile, list": ["zipfile", "-l", "archive.zip"],
    "zipfile, test": ["zipfile", "-t", "archive.zip"],
    "zipfile, extract": ["zipfile", "-e", "archive.zip", "out"],
    "zipfile, create": ["zipfile", "-c", "made.zip", "data.csv", "module.py"],
    "tarfile, create": ["tarfile", "-c", "made.tar", "data.csv", "module.py"],
    "gzip": ["gzip", "-d", "data.csv.gz"],
    "json.tool": ["json.tool", "data.json", "made.json"],
    "compileall": ["compileall", "."],
    "ast": ["ast", "module.py"],
    "dis": ["dis", "module.py"],
    "pydoc": ["pydoc", "json"],
    "unittest, nothing there": ["unittest", "no_such_module"],
    "base64": ["base64", "-e", "data.csv"],
    "venv": ["venv", "--without-pip", "made"],
}


@pytest.mark.parametrize("tool", SHIPPED)
def test_what_python_ships_with(tool, both):
    _, traced = both(some_files, "-m", *SHIPPED[tool])

    assert traced.experiment.founder.threads


@pytest.mark.long
def test_sqlite_utils(both):
    pytest.importorskip("sqlite_utils")
    tool = os.path.join(os.path.dirname(PYTHON), "sqlite-utils")
    question = "select name, count(*), sum(amount) from t group by name order by name"

    def load(work: Path) -> None:
        some_files(work)
        insert = [PYTHON, tool, "insert", "made.db", "t", "data.csv", "--csv"]
        subprocess.run(insert, cwd=work, env=environment(), check=True)

    loaded, _ = both(some_files, tool, "insert", "made.db", "t", "data.csv", "--csv")
    asked, _ = both(load, tool, "query", "made.db", question)

    assert (loaded.returncode, asked.returncode) == (0, 0)
    assert '"count(*)": 286' in asked.stdout


def write_wheel(work: Path) -> None:
    """A wheel, as a build makes it."""
    about = "demo-1.0.dist-info"
    with zipfile.ZipFile(work / "demo-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in (
            ("demo.py", "def main():\n    print('demo')\n"),
            (f"{about}/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"),
            (f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
            (f"{about}/entry_points.txt", "[console_scripts]\ndemo = demo:main\n"),
            (f"{about}/RECORD", ""),
        ):
            wheel.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), text)


QUIET = ("--isolated", "--disable-pip-version-check", "--no-input")
WHEEL = ("--no-index", "--no-deps", "./demo-1.0-py3-none-any.whl")


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("install", *QUIET, "--target", "made", *WHEEL),
        ("download", *QUIET, "-d", "made", *WHEEL),
        ("install", *QUIET, "--no-index", "nosuch"),
    ],
    ids=["version", "install", "download", "what is not there"],
)
def test_pip_where_run_was_told_to_run_it(words, both):
    if not find_spec("pip"):
        pytest.skip("no pip here")

    both(write_wheel, "-m", "pip", *words, through_run=True)


def test_a_web_server_and_its_clients(both):
    asked = ["/data.csv", "/data.json", "/", "/nowhere"] * 20

    def fetch(port: int, path: str) -> tuple[int, int]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, len(answer.read())

    answers = []

    def ask(process: subprocess.Popen) -> None:
        port = int(process.stdout.readline().split()[5])
        with ThreadPoolExecutor(8) as clients:
            answers.append(list(clients.map(lambda path: fetch(port, path), asked)))
        process.send_signal(signal.SIGINT)

    done, _ = both(some_files, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", act=ask)

    assert answers[0] == answers[1]
    assert [status for status, _ in answers[0][:4]] == [200, 200, 200, 404]
    assert done.returncode == 0


def test_unittest(both):
    def tests(work: Path) -> None:
        write(
            work,
            "test_small.py",
            "import time, unittest\n"
            "class Small(unittest.TestCase):\n"
            "    def test_passes(self): time.sleep(0.001)\n"
            "    def test_fails(self): self.assertEqual(1, 2)\n"
            "    @unittest.skip('not now')\n"
            "    def test_skipped(self): pass\n"
            "    def test_error(self): open('/nowhere')\n"
            "    def test_parts(self):\n"
            "        for number in range(3):\n"
            "            with self.subTest(number=number): self.assertLess(number, 2)\n",
        )

    done, traced = both(tests, "-m", "unittest", "-v", "test_small")

    assert "failures=2, errors=1, skipped=1" in done.stderr
    assert traced.events("time.sleep")


ECHO = """
import asyncio

async def echo(reader, writer):
    while line := await reader.readline():
        writer.write(line)
        await writer.drain()
    writer.close()

async def talk(port, name):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    said = []
    for turn in range(20):
        writer.write(f"{name} {turn}\\n".encode())
        await writer.drain()
        said.append(await reader.readline())
        await asyncio.sleep(0.001)
    writer.close()
    await writer.wait_closed()
    return b"".join(said).decode()

async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        for said in await asyncio.gather(*(talk(port, name) for name in "abcdefgh")):
            print(said, end="")
    print(await asyncio.to_thread(sum, range(1000)))
    process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    print(await process.communicate(b"through a child"), process.returncode)

asyncio.run(main())
"""

POOL = """
import contextlib, multiprocessing, os, sqlite3, sys, time

def work(number):
    time.sleep(0.001)
    # Closed here: what is left to the collector warns wherever that runs, also in a loop over a module's names.
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        return connection.cursor().execute("select ? * ?", (number, number)).fetchone()[0]

def fail(number):
    raise ValueError(number)

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        print(pool.map(work, range(40)))
        print(pool.apply_async(work, (7,)).get())
        try:
            pool.map(fail, [1])
        except ValueError as error:
            print("failed", error)
        pool.close()
        pool.join()
    queue, lock = context.Queue(), context.Lock()
    process = context.Process(target=queue.put, args=("said",))
    process.start()
    print(queue.get(), lock.acquire(), process.join(), process.exitcode)
"""

FUTURES = """
import concurrent.futures, sys, time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed

def work(number):
    time.sleep(0.001)
    if number == 13:
        raise ValueError(number)
    return number * number

if __name__ == "__main__":
    for executor in (ThreadPoolExecutor, ProcessPoolExecutor):
        with executor(3) as pool:
            print(list(pool.map(work, range(10))))
            futures = [pool.submit(work, number) for number in range(10, 20)]
            print(sorted(future.result() for future in as_completed(futures) if not future.exception()))
            print([repr(future.exception()) for future in futures if future.exception()])
"""


def program(source: str) -> Callable[[Path], object]:
    return lambda work: write_program(work, source)


def test_an_asyncio_server_and_its_clients(both):
    done, _ = both(program(ECHO), "program.py")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 8 * 20 + 2


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_multiprocessing_pool(method, both):
    pytest.importorskip("_multiprocessing")
    done, traced = both(program(POOL), "program.py", method)

    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "said True None 0"
    calls = sum(len(traced.events("time.sleep", process)) for process in traced.experiment.processes)
    assert calls == 41


def test_concurrent_futures(both):
    done, traced = both(program(FUTURES), "program.py")

    assert done.returncode == 0
    calls = sum(len(traced.events("time.sleep", process)) for process in traced.experiment.processes)
    assert calls == 40
