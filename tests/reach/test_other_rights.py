"""Programs with other rights than their caller's, and other users' directories: nobody gets what is not theirs."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from tracing import environment

import interpose

pytestmark = [
    pytest.mark.slow,
    pytest.mark.reach,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root becomes other users"),
]

USER = 50_000
BOOT = next(Path(interpose.__file__).parent.rglob("*interpose_boot*.so"))
# Of a program of another user's: what is its, and whether anything of ours is in it.
PROGRAM = """
import os, sys
os.stat("/")
child = os.fork()
if not child:
    os.stat("/")
    os._exit(0)
os.waitpid(child, 0)
print(os.geteuid(), os.getegid(), "interpose.timing.shims" in sys.modules)
"""


@pytest.fixture
def place():
    """A directory that every user reaches, and in it one of the user's own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        own = directory / "own"
        own.mkdir()
        os.chown(own, USER, USER)
        yield directory


def interpreter(directory, owner, mode):
    """An interpreter with the rights of its owner, in an environment that has us."""
    made = directory / "python"
    (made / "bin").mkdir(parents=True)
    shutil.copy(os.path.realpath(sys.executable), made / "bin" / "python")
    os.chown(made / "bin" / "python", owner, owner)
    (made / "bin" / "python").chmod(mode)
    (made / "lib").symlink_to(Path(sys.prefix) / "lib")
    (made / "pyvenv.cfg").write_text(f"home = {Path(os.path.realpath(sys.executable)).parent}\n")
    return made / "bin" / "python"


def hostile(own):
    """Settings by which somebody might have another's program do, load or write something."""
    (own / "evil").mkdir()
    (own / "evil" / "sitecustomize.py").write_text(f"open({str(own / 'executed')!r}, 'w')\n")
    (own / "libraries.py").write_text(f"open({str(own / 'executed')!r}, 'w')\n")
    (own / "pyproject.toml").write_text(f"[tool.interpose]\nlibraries = [{str(own / 'libraries.py')!r}]\n")
    (own / "control").write_text("INIT\n")
    link = own / "linked"
    link.symlink_to("/etc")
    switched_on = {"INTERPOSE": "1", "XDG_STATE_HOME": str(own), "HOME": str(own)}
    yield switched_on
    yield {**switched_on, "INTERPOSE_DIR": str(own)}
    yield {**switched_on, "INTERPOSE_DIR": str(link)}
    yield {**switched_on, "INTERPOSE_DIR": "/", "INTERPOSE_NAME": "canary"}
    yield {**switched_on, "INTERPOSE_DIR": str(own), "INTERPOSE_CONTROL": str(own / "control")}
    yield {**switched_on, "INTERPOSE_DIR": str(own), "INTERPOSE_LIBRARIES": str(own / "libraries.py")}
    yield {**switched_on, "INTERPOSE_DIR": str(own), "INTERPOSE_COLLECTORS": str(own / "libraries.py")}
    yield {**switched_on, "INTERPOSE_LINEAGE": f"1 {own}/test.1.er _f1"}
    yield {**switched_on, "INTERPOSE": "lines", "INTERPOSE_DIR": str(own)}
    yield {**switched_on, "INTERPOSE": "coverage", "INTERPOSE_DIR": str(own)}
    yield {**switched_on, "LD_PRELOAD": str(BOOT), "INTERPOSE_ADDED": "LD_PRELOAD"}
    yield {**switched_on, "INTERPOSE_GROUP_READS": "1", "INTERPOSE_DIR": str(own)}



RIGHTS = {
    "set-user-ID": (0, 0o4755, []),
    "set-group-ID": (0, 0o2755, ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]),
    "set-user-ID of another user": (50_001, 0o4755, []),
    "capabilities": (0, 0o755, []),
}


@pytest.mark.parametrize("rights", RIGHTS)
def test_what_has_other_rights_writes_nothing_and_loads_nothing(place, tally, rights):
    owner, mode, options = RIGHTS[rights]
    python = interpreter(place, owner, mode)
    if rights == "capabilities":
        if not shutil.which("setcap"):
            pytest.skip("setcap is not installed")
        subprocess.run(["setcap", "cap_dac_override,cap_dac_read_search+ep", python], check=True)
    words = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *options, str(python), "-c", PROGRAM]
    own = place / "own"
    plain = subprocess.run(words, cwd=own, env=environment(), capture_output=True, text=True)
    if plain.returncode:
        pytest.skip(f"no such program runs here: {plain.stderr[-200:]}")
    seeds = list(hostile(own))
    before = {str(each) for each in own.rglob("*")}
    in_root = set(os.listdir("/"))
    in_etc = set(os.listdir("/etc"))

    for variables in seeds * tally.times(5):
        done = subprocess.run(words, cwd=own, env=environment(**variables), capture_output=True, text=True)
        made = {str(each) for each in own.rglob("*")} - before
        elsewhere = set(os.listdir("/")) - in_root | set(os.listdir("/etc")) - in_etc

        held = (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr)
        tally.check(held and not made and not elsewhere, f"{variables}: {done}, {made}, {elsewhere}")
        for each in made:
            shutil.rmtree(each, ignore_errors=True)
    tally.end()


def test_root_takes_nothing_from_a_directory_of_another_user(place, tally):
    own = place / "own"
    seeds = list(hostile(own))
    for path in own.rglob("*"):
        os.chown(path, USER, USER, follow_symlinks=False)

    for variables in seeds[4:7] * tally.times(5):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=own, env=environment(**variables), capture_output=True, text=True
        )
        tally.check(done.returncode == 0 and not (own / "executed").exists(), f"{variables}: {done}")
    tally.end()


# Whoever sees a directory or file of attaching's puts links in its place, files beside it, or takes it away.
HOSTILE = """
import os, sys, time
place, act = sys.argv[1:]
print(flush=True)
seen = 0
end_s = time.monotonic() + 20
while time.monotonic() < end_s:
    for name in os.listdir(place):
        if name == "own":
            continue
        path = os.path.join(place, name)
        seen += 1
        try:
            if act == "read":
                for each in os.listdir(path):
                    open(os.path.join(path, each)).close()
                    print("read", path, each, flush=True)
            elif act == "write":
                open(os.path.join(path, "script"), "w").close()
                print("wrote", path, flush=True)
            elif act == "replace":
                os.rename(path, path + ".old")
                os.mkdir(path)
                print("replaced", path, flush=True)
            elif act == "remove":
                os.unlink(path)
                print("removed", path, flush=True)
        except OSError:
            pass
"""
WAITING = """
import os, select, sys
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0.005)[0]:
    os.stat("/")
"""


@pytest.mark.parametrize("act", ["read", "write", "replace", "remove"])
def test_another_user_gets_into_nothing_of_attaching(place, tally, act):
    shared = place / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    lent = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    words = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    if subprocess.run([*words, python, "-c", ""], capture_output=True).returncode:
        words = [*words, *lent]
    hostile = subprocess.Popen(
        [*words, python, "-c", HOSTILE, str(shared), act], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    said = []
    assert hostile.stdout.readline() == "\n"
    reader = threading.Thread(target=lambda: said.extend(hostile.stdout))
    reader.start()
    own = environment(TMPDIR=str(shared), XDG_STATE_HOME=str(place / "state"), INTERPOSE_DIR=str(place))
    try:
        end_s = time.monotonic() + 15
        while time.monotonic() < end_s:
            waiting = subprocess.Popen(
                [sys.executable, "-c", WAITING],
                cwd=place,
                env=own,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            waiting.stdout.readline()
            attach = [sys.executable, "-m", "interpose", "attach", str(waiting.pid)]
            attached = subprocess.run(attach, cwd=place, env=own, capture_output=True, text=True, timeout=60)
            waiting.communicate("\n", timeout=60)
            modes = {stat.S_IMODE(each.stat().st_mode) & 0o077 for each in place.rglob("*.er")}
            held = (attached.returncode, waiting.returncode) == (0, 0) and modes <= {0} and not said
            tally.check(held, f"{attached}, {waiting.returncode}, {modes}, {said}")
    finally:
        hostile.kill()
        hostile.wait()
        reader.join()
        hostile.stdout.close()
        hostile.stderr.close()
    assert not list(shared.iterdir())
    tally.end()
