"""The script that fetches interpreters: what it says without fetching any."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "pythons"


def pythons(*words, **variables):
    return subprocess.run(
        [sys.executable, str(SCRIPT), *words], capture_output=True, text=True, env={**os.environ, **variables}
    )


# Stand-ins: sources that are as small as can be, and what fetches and builds them.
CONFIGURE = r"""#!/bin/sh
for word; do case $word in --prefix=*) bin=${word#--prefix=}/bin ;; esac; done
cat >steps <<END
mkdir -p $bin
cat >$bin/python3.14t <<'PYTHON'
#!/bin/sh
# $*
exec $PYTHON "\$@"
PYTHON
chmod +x $bin/python3.14t
END
"""
COMMANDS = {
    "apt-get": 'case "$*" in *" source "*) cp "$ARCHIVE" python3.14_3.14.0.orig.tar.gz 2>&- || eval "$LACKS" ;; esac',
    "make": "exec sh ./steps",
    "cc": "",
    "xz": "",
}


# How apt-get ends that is told of a file which the mirror no longer has.
LACKS = """
echo 'E: Failed to fetch http://mirror/python3.14_3.14.0.orig.tar.xz  404  Not Found [IP: 192.0.2.1 80]'
echo 'E: Failed to fetch some archives.'
exit 100
"""


@pytest.fixture
def sources(tmp_path):
    """What makes the script fetch and build the stand-ins, for an interpreter that is the shell's word `python`."""

    def prepare(python):
        configure, commands = tmp_path / "Python-3.14.0" / "configure", tmp_path / "commands"
        header = configure.parent / "Include" / "patchlevel.h"
        for directory in (header.parent, commands):
            directory.mkdir(parents=True)
        header.write_text("#define PY_MAJOR_VERSION\t3\n#define PY_MINOR_VERSION\t14\n")
        for path, text in [(configure, CONFIGURE), *((commands / name, text) for name, text in COMMANDS.items())]:
            path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
        archive = tmp_path / "archive.tar.gz"
        with tarfile.open(archive, "w:gz") as file:
            file.add(configure.parent, configure.parent.name)
        search = f"{commands}:{os.environ['PATH']}"
        places = {"PYTHONS_CACHE": str(tmp_path / "cache"), "PATH": search, "ARCHIVE": str(archive)}
        return {**places, "PYTHON": python, "LACKS": LACKS}

    return prepare


def test_it_says_what_to_put_before_the_path(tmp_path):
    assert pythons("--path", PYTHONS_CACHE=str(tmp_path)).stdout == f"{tmp_path}/bin\n"


def test_one_that_is_there_is_not_fetched_again(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3.14").touch()

    done = pythons("3.14", PYTHONS_CACHE=str(tmp_path), PATH="")

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path}/bin/python3.14\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["three"], "three: not a version such as 3.14"),
        ([], "which version?"),
        (["3.14", "--sources", "file"], "--sources: needs one free-threaded version, such as 3.14t"),
        (["3.14t", "3.15t", "--sources", "file"], "--sources: needs one free-threaded version, such as 3.14t"),
    ],
)
def test_what_is_no_version_is_refused_by_name(words, said):
    done = pythons(*words)

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"tools/pythons: error: {said}"


def test_what_it_lacks_is_told_in_a_line_with_the_package(tmp_path):
    done = pythons("3.14", PYTHONS_CACHE=str(tmp_path), PATH=str(tmp_path))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tools/pythons: no apt-get here: install the package apt\n"
    assert not list(tmp_path.iterdir())


def test_a_free_threaded_one_is_built_without_the_lock_and_stands_beside_the_others(sources, tmp_path):
    done = pythons("3.14t", **sources(sys.executable))

    python = tmp_path / "cache" / "bin" / "python3.14t"
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{python}\n", "")
    assert "--disable-gil" in python.read_text()
    assert subprocess.run([python, "-c", "print(1)"], capture_output=True, text=True).stdout == "1\n"


def test_one_that_was_built_without_a_module_is_not_kept(sources, tmp_path):
    done = pythons("3.14t", **sources("/bin/false"))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tools/pythons: python3.14t was built without ssl: install the package libssl-dev\n"
    assert not list((tmp_path / "cache").glob("**/python3.14t"))


def test_what_the_mirror_no_longer_has_is_told_in_a_line_with_what_to_do(sources, tmp_path):
    done = pythons("3.14t", **{**sources(sys.executable), "ARCHIVE": str(tmp_path / "nowhere")})

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "tools/pythons: could not fetch http://mirror/python3.14_3.14.0.orig.tar.xz: 404 Not Found; "
        "with another archive of the sources: tools/pythons 3.14t --sources FILE\n"
    )
    assert not list((tmp_path / "cache").glob("**/python3.14t"))


def test_one_is_built_from_an_archive_that_is_given_without_asking_the_mirror(sources, tmp_path):
    variables = sources(sys.executable)
    done = pythons("3.14t", "--sources", variables["ARCHIVE"], **{**variables, "ARCHIVE": str(tmp_path / "nowhere")})

    python = tmp_path / "cache" / "bin" / "python3.14t"
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{python}\n", "")
    assert "--disable-gil" in python.read_text()


def test_sources_of_another_version_are_refused_by_both_names(sources, tmp_path):
    variables = sources(sys.executable)
    done = pythons("3.15t", "--sources", variables["ARCHIVE"], **variables)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tools/pythons: {variables['ARCHIVE']}: has the sources of Python 3.14, not of 3.15\n"


@pytest.mark.parametrize("contents", ["an archive of something else", "no archive", "nothing"])
def test_what_has_no_sources_is_refused_by_its_name(contents, sources, tmp_path):
    other = tmp_path / "other.tar.gz"
    if contents == "no archive":
        other.write_text("none")
    elif contents != "nothing":
        with tarfile.open(other, "w:gz") as file:
            file.add(__file__, "other/file.py")
    done = pythons("3.14t", "--sources", str(other), **sources(sys.executable))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"tools/pythons: {other}: ")
    assert len(done.stderr.splitlines()) == 1
    assert not list((tmp_path / "cache").iterdir())
