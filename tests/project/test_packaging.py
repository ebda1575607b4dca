"""Building and installing, in every way there is: what lies where, and what is left afterwards."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import interpose.cext

pytestmark = pytest.mark.every_python

TOP = Path(__file__).parents[2]
STARTUP_SOURCES = ("interpose.pth", "interpose.start")
STARTUP_FILES = STARTUP_SOURCES if sys.version_info >= (3, 18) else STARTUP_SOURCES[:1]
FOLDERS = ("timing", "experiments", "cext")
NOT_COPIED = (
    "build",
    "dist",
    ".git",
    ".tox",
    "*.egg-info",
    "*.er",
    "*.so",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
)

BUILT = """
import interpose.analysis.consolidation.consolidator, interpose.timing.clocks, interpose.timing.shims, os, sys
import interpose.cext
names = os.listdir(os.path.dirname(interpose.cext.__file__))
print("libinterpose.so" in names and any(name.startswith("libinterpose_cpython.") for name in names))
"""


def plain_environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name == "INTERPOSE_BUILD_WERROR" or not name.startswith(("INTERPOSE", "PYTHONPATH"))
    }


def run(*words: object, **options) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [str(word) for word in words],
        **{"env": plain_environment(), **options},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def copy_of_the_checkout(path: Path) -> Path:
    """The checkout without what was built in it."""
    return Path(shutil.copytree(TOP, path, ignore=shutil.ignore_patterns(*NOT_COPIED)))


class Venv:
    """A virtual environment of the interpreter that runs the tests."""

    def __init__(self, path: Path) -> None:
        run(sys.executable, "-m", "venv", path)
        self.python = path / "bin" / "python"
        self.command = path / "bin" / "interpose"
        self.site = next(path.glob("lib/python*/site-packages"))

    def pip(self, *words: object) -> None:
        run(self.python, "-m", "pip", "--disable-pip-version-check", *words)

    def ours(self) -> list[str]:
        """What lies of us at the top of site-packages, start-up files aside."""
        return sorted(
            path.name for path in self.site.iterdir() if "interpose" in path.name or path.name in FOLDERS
        )


@pytest.fixture
def venv(tmp_path) -> Venv:
    return Venv(tmp_path / "venv")


def build_wheel(source: Path, place: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", place, source)
    (wheel,) = place.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def made_once(tmp_path_factory) -> Callable[[str, Callable[[Path], object]], Path]:
    """A function that gives a directory, made by whichever worker needs it first."""
    base = tmp_path_factory.getbasetemp()
    top = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str, make: Callable[[Path], object]) -> Path:
        with open(top / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (top / name).exists():
                unfinished = top / f"{name}.unfinished"
                shutil.rmtree(unfinished, ignore_errors=True)
                make(unfinished)
                unfinished.rename(top / name)
        return top / name

    return made


@pytest.fixture(scope="session")
def wheel(made_once) -> Path:
    """The wheel that pip builds from the checkout; beside it lies the C that Cython made meanwhile."""

    def make(place: Path) -> None:
        source = copy_of_the_checkout(place / "source")
        build_wheel(source, place)
        (source / "build" / "generated").rename(place / "generated")
        shutil.rmtree(source)

    (built,) = made_once("wheel", make).glob("*.whl")
    return built


@pytest.fixture
def source(wheel, tmp_path) -> Path:
    """A checkout in which nothing is built yet; what Cython makes of it, which takes long, is there."""
    copy = copy_of_the_checkout(tmp_path / "source")
    shutil.copytree(wheel.with_name("generated"), copy / "build" / "generated")
    return copy


@pytest.fixture(scope="session")
def builder(made_once) -> Callable[..., subprocess.CompletedProcess]:
    """A function that runs Python with all that setup.py needs."""
    needed = ("setuptools>=77", "cython>=3.1")
    place = made_once("needed", lambda path: run(sys.executable, "-m", "pip", "install", "--target", path, *needed))

    def build(*words: object, **options) -> subprocess.CompletedProcess:
        return run(sys.executable, *words, env={**plain_environment(), "PYTHONPATH": str(place)}, **options)

    return build


def test_the_start_up_file_is_one_line_that_looks_into_the_environment_first():
    (line,) = (TOP / "interpose.pth").read_text().splitlines()

    assert line.startswith('import os; os.environ.get("INTERPOSE", "0") in ("", "0") or ')
    assert (TOP / "interpose.start").read_text() == "interpose.boot:boot\n"


def test_the_start_up_line_imports_nothing_where_nothing_is_recorded():
    program = "import os, sys; before = set(sys.modules); exec(sys.argv[1]); print(set(sys.modules) - before)"

    for value in ("", "0"):
        environment = {**plain_environment(), "INTERPOSE": value}
        done = run(sys.executable, "-S", "-c", program, (TOP / "interpose.pth").read_text(), env=environment)

        assert done.stdout == "set()\n"


@pytest.mark.any_python
@pytest.mark.skipif(not shutil.which("nm"), reason="nm is not installed")
def test_our_names_are_nobody_elses():
    """A program or library with a name that ours had as well would be given ours, or we its own."""
    libraries = [*Path(interpose.cext.__file__).parent.glob("*.so")]
    shown = [subprocess.check_output(["nm", "-D", "--defined-only", each], text=True) for each in libraries]
    names = [line.split()[-1] for each in shown for line in each.splitlines()]

    assert len(names) > 200
    assert [name for name in names if not name.startswith("interpose_")] == []


@pytest.mark.slow
def test_a_wheel_has_one_package_and_the_start_up_files(wheel):
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()

    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"interpose", *STARTUP_FILES}
    assert "interpose/cext/libinterpose.so" in names
    assert f"interpose/cext/libinterpose_cpython{sysconfig.get_config_var('EXT_SUFFIX')}" in names
    assert "interpose/py.typed" in names
    assets = {str(path.relative_to(TOP)) for path in TOP.glob("interpose/reports/page/assets/*")}
    assert assets and assets <= set(names)
    sources = [name for name in names if name.endswith((".c", ".h", ".pyx"))]
    assert sources == ["interpose/include/interpose_collector.h"]  # what data collectors in C include


@pytest.mark.slow
def test_a_wheel_is_small_and_its_libraries_are_stripped(wheel):
    with zipfile.ZipFile(wheel) as packed:
        libraries = {name: packed.read(name) for name in packed.namelist() if name.endswith(".so")}

    assert wheel.stat().st_size < 3_000_000
    assert libraries
    assert not [name for name, data in libraries.items() if b".debug_info" in data or b".symtab" in data]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("aarch64-linux-gnu-gcc"), reason="no compiler for arm64 here")
def test_all_of_it_compiles_for_arm64_without_a_warning(source, builder, tmp_path, monkeypatch):
    for name, value in {"CC": "", "LDSHARED": " -shared"}.items():
        monkeypatch.setenv(name, f"aarch64-linux-gnu-gcc{value}")
    monkeypatch.setenv("INTERPOSE_BUILD_WERROR", "1")
    builder("setup.py", "build_ext", "--build-lib", tmp_path / "out", "--build-temp", tmp_path / "temp", cwd=source)

    heads = {path.name.partition(".")[0]: path.read_bytes()[:20] for path in (tmp_path / "out").rglob("*.so")}
    assert {"libinterpose", "libinterpose_cpython", "libinterpose_boot", "shims", "lines", "coverage"} <= set(heads)
    assert {int.from_bytes(head[18:20], "little") for head in heads.values()} == {183}  # EM_AARCH64


@pytest.mark.slow
def test_a_source_archive_has_all_that_a_wheel_is_built_from(source, builder, tmp_path):
    builder("setup.py", "sdist", "--dist-dir", tmp_path, cwd=source)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as sources:
        names = {name.partition("/")[2] for name in sources.getnames()}
        sources.extractall(tmp_path / "again", filter="data")

    kept = [*source.glob("cext/**/*.[ch]"), *source.glob("**/*.py[xd]"), *source.glob("docs/*.md")]
    kept += source.glob("interpose/reports/page/assets/*")
    kept += [source / name for name in (*STARTUP_SOURCES, "LICENSE", "README.md", "tox.ini")]
    assert {str(path.relative_to(source)) for path in kept} <= names
    (again,) = (tmp_path / "again").iterdir()
    assert build_wheel(again, tmp_path / "wheel").exists()


@pytest.mark.slow
@pytest.mark.parametrize("editable", [None, "lenient", "strict", "compat"])
def test_an_install_works_outside_the_checkout_and_leaves_nothing(request, venv, tmp_path, editable):
    if editable:
        how = ["-e", request.getfixturevalue("source"), "--config-settings", f"editable_mode={editable}"]
    else:
        how = [request.getfixturevalue("wheel")]
    venv.pip("install", *how)

    assert run(venv.python, "-c", BUILT, cwd=tmp_path).stdout == "True\n"
    assert run(venv.command, "--version", cwd=tmp_path).stdout.startswith("interpose ")
    assert not [name for name in venv.ours() if name in FOLDERS]
    (record,) = venv.site.glob("interpose-*.dist-info/RECORD")
    listed = [line.partition(",")[0] for line in record.read_text().splitlines()]
    for name in STARTUP_FILES:
        assert (venv.site / name).exists()
        assert name in listed

    venv.pip("uninstall", "-y", "interpose")

    assert venv.ours() == []


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 14), reason="what is not known yet is like the newest")
def test_on_a_python_that_is_not_known_yet_calls_of_c_functions_are_recorded(source, venv, tmp_path):
    """Built as for a version that came after this was written."""
    run(
        *(venv.python, "-m", "pip", "install", "-q", source),
        env={**plain_environment(), "CFLAGS": "-DINTERPOSE_UNKNOWN_VERSION"},
    )
    program = tmp_path / "program.py"
    program.write_text(
        "import asyncio, os, threading\n"
        "def look():\n"
        "    return os.stat('/')\n"
        "look()\n"
        "print(asyncio.run(asyncio.sleep(0.01, 'slept')), threading.Event().wait(0.01))\n"
    )

    recording = {**plain_environment(), "INTERPOSE": "calls,lines,coverage", "INTERPOSE_DIR": str(tmp_path)}
    done = run(venv.python, program, cwd=tmp_path, env=recording)
    (experiment,) = tmp_path.glob("*.er")
    told = run(venv.command, "report", "--by", "site", experiment)
    why = f"CPython 3.{sys.version_info[1]} is not supported yet: calls of C functions only"

    assert done.stdout == "slept False\n"
    assert not done.stderr
    assert re.search(r"os\.stat +\S*program\.py:3 +look ", told.stdout)
    assert (experiment / "log.xml").read_text().count(why) == 3  # calls, lines, coverage


@pytest.mark.slow
def test_without_a_compiler_the_install_says_so_in_a_line(source, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", tmp_path, source],
        env={**plain_environment(), "CC": "/nonexistent"},
        capture_output=True,
        text=True,
    )

    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "a C compiler (gcc or clang) and Python's headers" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_changed_header_is_built_again(source, builder):
    def compiled() -> int:
        build = builder("setup.py", "build_ext", "--inplace", cwd=source)
        return (build.stdout + build.stderr).count(" -c ")

    first = compiled()
    probe_only = compiled()
    os.utime(source / "cext" / "core" / "fields.h")

    assert probe_only == 1
    assert first > probe_only
    assert compiled() > probe_only
