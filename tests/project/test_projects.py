"""The tests of other people's packages end as they do without the tracer, every single one."""

import os
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import pytest
import suites
from servers import need_server

pytestmark = pytest.mark.every_python

# The package, and what of its sources is to be run.
PROJECTS = {
    "flask": ("tests",),
    "requests": ("tests",),
    "click": ("tests",),
    "jinja2": ("tests",),
    "aiosqlite": ("aiosqlite/tests/smoke.py",),
    "itsdangerous": ("tests",),
    "werkzeug": ("tests", "--ignore", "tests/live_apps", "-k", "not dev_server"),
    "psycopg2": ("tests",),
    "greenlet": ("--pyargs", *(f"greenlet.tests.test_{part}" for part in ("gc", "generator", "greenlet", "weakref"))),
    "sqlalchemy": ("test/engine", "test/base", "-p", "no:xdist"),
}
INSTALLED_AS = {"psycopg2": "psycopg2-binary"}
SERVERS = {"psycopg2": "postgresql"}
AT = {"": "test", "_HOST": "127.0.0.1", "_USER": "postgres", "_PASSWORD": "sesame"}  # where psycopg2's tests look
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--continue-on-collection-errors")


@pytest.fixture(scope="session")
def downloads(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("downloads")


def sources_of(package: str, directory: Path) -> Path:
    """The sources of the version that is installed, as its authors distribute them; they carry the tests."""
    try:
        version = metadata.version(INSTALLED_AS.get(package, package))
    except metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    done = subprocess.run([*words, f"{package}=={version}"], cwd=directory, capture_output=True, text=True, check=False)
    found = sorted(directory.glob(f"{package}-*.tar.gz"))
    if not found:
        pytest.skip(f"the sources of {package} cannot be had: {done.stderr.strip()[-200:]}")
    with tarfile.open(found[0]) as archive:
        archive.extractall(directory, filter="data")
    return directory / os.path.basename(found[0]).removesuffix(".tar.gz")


@pytest.mark.slow
@pytest.mark.projects
@pytest.mark.parametrize("package", PROJECTS)
def test_every_test_of_a_package_ends_as_without_the_tracer(package, downloads, monkeypatch):
    if package in SERVERS:
        need_server(SERVERS[package])
    for name, value in AT.items():
        monkeypatch.setenv(f"PSYCOPG2_TESTDB{name}", value)
    words = (sys.executable, *PYTEST, *PROJECTS[package], "--junit-xml")
    comparison = suites.compare(suites.Suite(package, words, sources=sources_of(package, downloads)))
    print(comparison)

    assert not comparison.why_not()
    assert len(comparison.off[0].outcomes) > 20
    assert not comparison.differences(), "\n".join(map(str, comparison.differences()))
