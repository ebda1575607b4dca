"""Children are followed, however they are started, and do not see that they are."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tracing import environment, has_own_library, of_machine, write_program

from interpose.analysis.recording.ending import ending
from interpose.analysis.recording.lineage import tree, walk
from interpose.config import state
from interpose.experiments.model.experiment import Experiment

DEBIANS = "/usr/bin/python3"
OPTIONS = ([], ["-I"], ["-E"], ["-S"], ["-I", "-S", "-E"])

# What each child is asked: its environment, where it imports from, its words, and which descriptors it has.
SAY = """
import json, os, sys
sys.stdout.write(json.dumps([dict(os.environ), sys.path, sys.argv, sorted(os.listdir("/proc/self/fd"))]))
"""

# Every way to start a program with every option of the interpreter and both environments, from one founder.
MATRIX = """
import json, os, subprocess, sys

interpreter, say, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])

def forked(start):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        start()
    os.close(writing)
    with open(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said

def spawned(words, environment):
    reading, writing = os.pipe()
    child = os.posix_spawn(interpreter, words, environment, file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1)])
    os.close(writing)
    with open(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said

results = {}
for option in options:
    words = [interpreter, *option, "-c", say, "x"]
    for name, given in (("inherited", None), ("empty", {})):
        mapping = os.environ if given is None else given
        label = f"{' '.join(option)} {name}"
        results[f"fork {label}"] = forked(lambda: os.execve(interpreter, words, mapping))
        results[f"spawn {label}"] = spawned(words, mapping)
        results[f"subprocess {label}"] = subprocess.run(words, env=given, capture_output=True, text=True).stdout
        assert mapping is os.environ or mapping == {}
print(json.dumps(results))
"""


def run(directory: Path, *words: str, **variables: str) -> subprocess.CompletedProcess:
    directory.mkdir(exist_ok=True)
    return subprocess.run(
        words,
        cwd=directory,
        env=environment(XDG_STATE_HOME=str(directory), **variables),
        capture_output=True,
        text=True,
        timeout=120,
    )


def matrix(tmp_path: Path, interpreter: str, on: bool) -> dict[str, list]:
    program = write_program(tmp_path, MATRIX)
    words = (sys.executable, str(program), interpreter, SAY, json.dumps(OPTIONS))
    done = run(tmp_path / "run", *words, **({"INTERPOSE": "1"} if on else {}))
    assert (done.returncode, done.stderr) == (0, "")
    shutil.move(tmp_path / "run", tmp_path / ("on" if on else "off"))
    results = {label: json.loads(said) for label, said in json.loads(done.stdout).items()}
    for variables, *_ in results.values():
        variables.pop("INTERPOSE", None)
    return results


def lineages(experiment: Path) -> Counter[str]:
    """How many processes there are of each lineage, without numbers."""
    return Counter(re.sub("[0-9]+", "", process.lineage) for process in Experiment(str(experiment)).processes)


def version_of(interpreter: str) -> tuple[int, ...]:
    show = "import sys; print(*sys.version_info[:2])"
    return tuple(map(int, subprocess.run([interpreter, "-c", show], capture_output=True).stdout.split()))


# Every way to start a Python, a row each: what starts it, and the lineages that come of it. `words` begin with the path
# of the interpreter, `named` with another name, by which one of a virtual environment does not find that.
FORKED = "def child(start): pid = os.fork(); pid or start(); os.waitpid(pid, 0)\n"
NEW, THEN = ["_c"], ["_f", "_f_x"]
WAYS = {
    "subprocess.run": ("subprocess.run(words)", NEW),
    "subprocess.Popen": ("subprocess.Popen(words).wait()", NEW),
    "subprocess with a function in between": ("subprocess.run(words, preexec_fn=lambda: None)", THEN),
    "subprocess with a function that calls": ("subprocess.run(words, preexec_fn=lambda: os.stat('/'))", THEN),
    "subprocess in a session of its own": ("subprocess.run(words, start_new_session=True)", NEW),
    "subprocess with executable=": ("subprocess.run(named, executable=words[0])", NEW),
    "subprocess without variables": ("subprocess.run(words, env={})", NEW),
    "subprocess through a shell": ("subprocess.run(line, shell=True)", NEW),
    "os.system": ("os.system(line)", NEW),
    "os.popen": ("os.popen(line).read()", NEW),
    "env": ("subprocess.run(['/usr/bin/env', *words])", NEW),
    "exec in a shell": ("subprocess.run(['sh', '-c', f'exec {line}'])", NEW),
    "a shell in a shell": ("subprocess.run(['sh', '-c', f'sh -c {shlex.quote(line)}; true'])", NEW),
    "os.execv": ("child(lambda: os.execv(words[0], words))", THEN),
    "os.execv by another name": ("child(lambda: os.execv(words[0], named))", THEN),
    "os.execve by another name": ("child(lambda: os.execve(words[0], named, os.environ))", THEN),
    "os.execve by another name without variables": ("child(lambda: os.execve(words[0], named, {}))", THEN),
    "os.execv by a name that is none": ("child(lambda: os.execv(words[0], ['no such name', *words[1:]]))", THEN),
    "os.execvp": ("child(lambda: os.execvp(words[0], words))", THEN),
    "os.spawnv by another name": ("os.spawnv(os.P_WAIT, words[0], named)", THEN),
    "os.spawnve by another name": ("os.spawnve(os.P_WAIT, words[0], named, os.environ)", THEN),
    "os.posix_spawn": ("os.waitpid(os.posix_spawn(words[0], words, os.environ), 0)", NEW),
    "os.posix_spawn by another name": ("os.waitpid(os.posix_spawn(words[0], named, os.environ), 0)", NEW),
    "os.fork": ("child(lambda: os._exit(0))", ["_f"]),
    "pty.fork": ("pid, _ = pty.fork(); pid or os._exit(0); os.waitpid(pid, 0)", ["_f"]),
    "pty.spawn": ("pty.spawn(words, lambda number: b'')", THEN),
    "asyncio": ("asyncio.run(started())", NEW),
    "multiprocessing, fork": ("processes('fork')", ["_f"]),
    "multiprocessing, spawn": ("processes('spawn')", NEW),
}
STARTS = FORKED + """
async def started():
    await (await asyncio.create_subprocess_exec(*words)).wait()

def processes(method):
    process = multiprocessing.get_context(method).Process(target=os.getpid)
    process.start()
    process.join()
"""
OF_THE_HELPER = {"multiprocessing, spawn": 1}  # the tracker of resources
# What other programs start reads no start-up file with -S (docs/limits.md); what comes first is forked with the
# variables that its program is to have.
WITHOUT_SITE = {
    "subprocess with a function in between": ["_f", "_c"],
    "subprocess with a function that calls": ["_f", "_c"],
    "subprocess through a shell": [],
    "os.system": [],
    "os.popen": [],
    "env": [],
    "exec in a shell": [],
    "a shell in a shell": [],
}


@pytest.fixture(scope="module")
def needs_its_name() -> bool:
    """Is the interpreter where it was not built for, so that it finds its library by its own name alone?"""
    words = ["no such name", "-c", "1"]
    return bool(subprocess.run(words, executable=sys.executable, env={}, capture_output=True).stderr)


@pytest.mark.parametrize("options", [[], ["-I"], ["-S", "-E"]], ids=" ".join)
@pytest.mark.parametrize("way", WAYS)
def test_a_python_is_followed_whichever_way_it_is_started(tmp_path, way, options, needs_its_name):
    if needs_its_name and way.endswith(("that is none", "name without variables")):
        pytest.skip("the interpreter does not find its library so")
    start, expected = WAYS[way]
    expected = WITHOUT_SITE.get(way, expected) if "-S" in options else expected
    imports = "import asyncio, multiprocessing, os, pty, shlex, subprocess, sys\n"
    words = f"words = [sys.executable, *{options}, '-c', '1']\nnamed, line = ['python', *words[1:]], shlex.join(words)"
    program = write_program(tmp_path, f"{imports}{words}\n{STARTS}\nif __name__ == '__main__':\n    {start}\n")

    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"  # where another name may lead to as well
    done = run(tmp_path, sys.executable, str(program), INTERPOSE="1", PATH=path)

    assert (done.returncode, done.stderr) == (0, "")
    experiment = Experiment(str(tmp_path / "test.1.er"))
    found = lineages(tmp_path / "test.1.er") - Counter([""])
    assert found == Counter(expected) + Counter({"_c": OF_THE_HELPER.get(way, 0)})
    followed = {process.log.pid for process in experiment.processes}
    left_out = [node.pid for _, node in walk(tree(experiment)) if not node.is_followed]
    assert not followed & set(left_out)
    assert "unseen" not in {ending(process).state for process in experiment.processes}


@pytest.fixture
def debians() -> str:
    if not os.path.exists(DEBIANS) or not os.path.exists("/etc/debian_version"):
        pytest.skip("not a Debian with a python3 of its own")
    return DEBIANS


def test_every_child_is_followed_and_sees_nothing_of_it(tmp_path):
    off, on = matrix(tmp_path, sys.executable, on=False), matrix(tmp_path, sys.executable, on=True)

    assert on == off
    assert lineages(tmp_path / "on" / "test.1.er") == {"": 1, "_f": 10, "_f_x": 10, "_c": 20}
    assert not (tmp_path / "on" / "interpose").exists()


def test_an_interpreter_that_has_no_interpose_is_followed_too(tmp_path, debians):
    if version_of(debians) != sys.version_info[:2]:
        pytest.skip(f"{debians} is of another version")
    off, on = matrix(tmp_path, debians, on=False), matrix(tmp_path, debians, on=True)

    assert on == off
    assert lineages(tmp_path / "on" / "test.1.er") == {"": 1, "_f": 10, "_f_x": 10, "_c": 20}


def test_a_python_for_which_nothing_is_compiled_runs_undisturbed(tmp_path, monkeypatch, debians):
    if version_of(debians) == sys.version_info[:2]:
        pytest.skip(f"{debians} is of our own version")
    if has_own_library():
        pytest.skip(f"{debians} has another C library than we: the boot library is not preloaded into it")
    off, on = matrix(tmp_path, debians, on=False), matrix(tmp_path, debians, on=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "on"))

    assert on == off
    assert lineages(tmp_path / "on" / "test.1.er") == {"": 1, "_f": 10}
    assert " has no interpose; install it there: " in state.not_recorded()[-1].reason


# --- environments

CLEARED = """
import os, subprocess, sys
copied = {**os.environ, "INTERPOSE": "0"}
show = f"{sys.executable} -c 'import os, sys; sys.exit(len(os.environ))'"
os.environ.clear()
print(os.waitstatus_to_exitcode(os.system(show)), dict(os.environ))
print(subprocess.run(show, shell=True).returncode)
print(subprocess.run(show, shell=True, env=copied).returncode == len(copied))
print(os.spawnve(os.P_WAIT, sys.executable, show.replace("'", "").split(" ", 2), {"A": "1"}))
"""


def test_what_is_started_after_the_environment_was_cleared_is_followed(traced):
    off = traced(CLEARED, INTERPOSE="0")
    done = traced(CLEARED)

    assert (done.stdout, done.stderr) == (off.stdout, "")
    assert [process.lineage for process in done.experiment.processes] == ["", "_c1", "_c2", "_f1", "_f1_x1"]


def test_grandchildren_are_followed_through_a_shell(traced):
    done = traced("""
        import subprocess, sys
        inner = f"{sys.executable} -c 'import os; print(sorted(os.environ))'"
        outer = f'import subprocess; subprocess.run(["sh", "-c", {inner!r}], env={{}})'
        subprocess.run([sys.executable, "-c", outer], env={})
    """)

    assert done.stdout == "['LC_CTYPE', 'PWD']\n" or "INTERPOSE" not in done.stdout
    assert [process.lineage for process in done.experiment.processes] == ["", "_c1", "_c1_c1"]


BAD_ARGUMENTS = """
import _posixsubprocess, os, sys

class Mapping:
    def __getitem__(self, key):
        raise KeyError(key)
    def keys(self):
        print("keys")
        return ["A"]
    def values(self):
        return ["b"]
    def __len__(self):
        return 1

def attempt(function, *arguments, **keywords):
    try:
        print(function.__name__, function(*arguments, **keywords))
    except BaseException as error:
        print(function.__name__, type(error), error)

WRONG = [{1: "b"}, {"A": 1}, {"A=B": "c"}, {"": "c"}, {"A": "b\\0"}, {"A\\0": "b"}]
for given in (None, 1, [], [b"A=1"], *WRONG, Mapping()):
    attempt(os.execve, "/none", ["none"], given)
    attempt(os.execve, "/none", ["none"], env=given)
    attempt(os.execve, path="/none", argv=["none"], env=given)
    attempt(os.posix_spawn, "/none", ["none"], given)
    attempt(os.posix_spawnp, "none", ["none"], given)
    attempt(os.execve, "/none", (), given)
attempt(os.execve, "/none")
attempt(os.execv, "/none", [])
attempt(os.execv, "/none", 5)
attempt(os.system)
attempt(os.system, "a\\0")
attempt(_posixsubprocess.fork_exec)
print(sorted(name for name in os.environ if name.startswith("INTERPOSE_")))
"""


def test_bad_arguments_are_what_they_were(traced):
    off = traced(BAD_ARGUMENTS, INTERPOSE="0")
    done = traced(BAD_ARGUMENTS)

    assert (done.stdout, done.stderr, done.returncode) == (off.stdout, off.stderr, off.returncode)


def test_what_the_user_preloads_stays_and_comes_first(traced):
    show = "import os; print(os.environ.get('LD_PRELOAD'), 'libinterpose_boot' in open('/proc/self/maps').read())"
    done = traced(f"""
        import subprocess, sys
        for preload in ("", "libm.so.6"):
            subprocess.run([sys.executable, "-S", "-c", {show!r}], env={{"LD_PRELOAD": preload}})
    """)

    assert (done.stdout, done.stderr) == (" True\nlibm.so.6 True\n", "")


@pytest.mark.parametrize("options", [["-X", "dev"], ["-i"], ["-O"], ["-X", "frozen_modules=off"]])
@pytest.mark.parametrize("given", [{}, {"PYTHONMALLOC": "debug"}, {"PYTHONMALLOC": "malloc"}])
def test_whatever_the_interpreter_allocates_with_it_ends_as_ever(traced, options, given):
    words = [sys.executable, "-S", *options, "-c", "print(1)"]
    program = f"import subprocess; print(subprocess.run({words!r}, env={given!r}, stdin=-3).returncode)"
    done, off = traced(program), traced(program, INTERPOSE="0")

    assert (done.stdout, done.stderr) == (off.stdout, off.stderr)
    assert len(Experiment(str(done.directory / "test.1.er")).processes) == 2


# --- what cannot be followed


def test_a_static_program_and_one_under_seccomp_run_undisturbed(traced, tmp_path):
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc")
    (tmp_path / "python3").write_text("")  # it is called like an interpreter
    source = tmp_path / "static.c"
    source.write_text(
        '#include <stdio.h>\n#include <unistd.h>\n#include <linux/seccomp.h>\n#include <sys/prctl.h>\n'
        "int main(void) { extern char **environ; int n = 0; while (environ[n]) puts(environ[n++]); fflush(stdout);"
        " prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); write(1, \"strict\\n\", 7); _exit(0); }\n"
    )
    built = subprocess.run([compiler, "-w", "-static", str(source), "-o", str(tmp_path / "python3")])
    if built.returncode:
        pytest.skip("nothing can be linked statically here")
    done = traced("""
        import subprocess
        done = subprocess.run(["./python3", "-S"], env={"A": "1"}, capture_output=True, text=True)
        print([line for line in done.stdout.splitlines() if "INTERPOSE" not in line], done.returncode, done.stderr)
    """)

    assert done.stdout.startswith("['A=1'")
    assert "PRELOAD" not in done.stdout
    assert done.stderr == ""


SECCOMP = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
class Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("first", ctypes.POINTER(Instruction))]
def confine():  # every call is allowed but socket(2), which fails with EACCES
    program = (Instruction * 4)(
        Instruction(0x20, 0, 0, 0), Instruction(0x15, 0, 1, {socket}), Instruction(0x06, 0, 0, 0x0005000D),
        Instruction(0x06, 0, 0, 0x7FFF0000),
    )
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(Filter(4, program))) == 0
def confine_strictly():  # nothing is allowed but read, write and exit
    assert libc.prctl(22, 1) == 0
"""
NUMBERS = {"x86_64": (41, 60), "aarch64": (198, 93)}  # of socket(2) and exit(2)


@pytest.fixture
def seccomp() -> str:
    if os.uname().machine not in NUMBERS:
        pytest.skip("no numbers of system calls known here")
    return SECCOMP.replace("{socket}", str(NUMBERS[os.uname().machine][0]))


def test_children_under_a_seccomp_filter_are_followed_undisturbed(traced, seccomp, interpose):
    source = seccomp + """
import os, socket, subprocess, sys
show = "import os, sys, socket\\ntry: socket.socket()"
show += "\\nexcept OSError as error: print(type(error).__name__, sys.argv)"
def told(**options):
    done = subprocess.run([sys.executable, "-S", "-c", show, "x"], capture_output=True, text=True, **options)
    return done.returncode, done.stdout, done.stderr
child = os.fork()
if child == 0:
    confine()
    try: socket.socket()
    except PermissionError: os.write(1, b"refused\\n")
    print(told(), told(env={}), flush=True)
    os._exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), told(env={}, preexec_fn=confine))
"""
    off = traced(source, INTERPOSE="0")
    done = traced(source)

    assert (done.returncode, done.stdout, done.stderr) == (0, off.stdout, "")
    assert off.stdout.count("PermissionError") == 3
    assert lineages(Path(done.path)) == {"": 1, "_f": 2, "_f_c": 2, "_c": 1}
    assert "   complete\n" in interpose("report", done.path).stdout
    (child,) = [process for process in done.experiment.processes if process.lineage == "_f1"]
    assert child.started_as.exit_status == 5


def test_a_forked_child_that_is_confined_strictly_ends_as_ever_and_is_listed(traced, seccomp):
    source = seccomp + """
import os
child = os.fork()
if child == 0:
    os.stat("/")
    write, call = libc.write, libc.syscall
    confine_strictly()
    write(1, b"strict\\n", 7)
    call({exit}, 7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    source = source.replace("{exit}", str(NUMBERS[os.uname().machine][1]))
    off = traced(source, INTERPOSE="0")
    done = traced(source)

    assert off.stdout == "strict\n7\n"
    assert (done.stdout, done.stderr) == (off.stdout, off.stderr)
    assert [process.lineage for process in done.experiment.processes] == ["", "_f1"]
    assert len(done.events("os.stat", done.experiment.processes[1])) == 1


def test_a_program_with_the_address_sanitizer_runs_undisturbed_and_is_listed(traced, tmp_path, interpose):
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc")
    program = tmp_path / "checked"
    (tmp_path / "checked.c").write_text(
        "#include <stdlib.h>\n#include <stdio.h>\n#include <string.h>\n"
        "int main(int n, char **words) { extern char **environ; int i = 0;"
        ' char *p = malloc(10); for (; environ[i]; i++) if (!strstr(environ[i], "INTERPOSE")) puts(environ[i]);'
        " p[n > 1 ? 10 : 0] = 1; free(p); return 3; }\n"
    )
    built = subprocess.run([compiler, "-w", "-fsanitize=address", f"{program}.c", "-o", program], capture_output=True)
    if built.returncode or subprocess.run([program], env={}, capture_output=True).returncode != 3:
        pytest.skip("no address sanitizer here")
    source = """
        import os, subprocess
        for words in (["./checked"], ["./checked", "beyond"]):
            for variables in ({}, {"A": "1"}):
                done = subprocess.run(words, env=variables, capture_output=True, text=True)
                told = done.stderr.lower()
                print(done.returncode, done.stdout, "heap-buffer-overflow" in told, "preload" in told)
        print(os.waitstatus_to_exitcode(os.system("./checked >/dev/null")))
    """
    off = traced(source, INTERPOSE="0")
    done = traced(source)

    assert (done.stdout, done.stderr) == (off.stdout, "")
    assert off.stdout.count("True False") == 2
    found = done.experiment.founder.not_followed
    why = of_machine("address sanitizer")
    assert [(Path(each.command).name, each.why) for each in found[:4]] == [("checked", why)] * 4
    assert [each.exit_status for each in found[:4]] == [3, 3, 1, 1]
    assert why in interpose("report", done.path).stdout


def test_a_library_that_is_not_there_is_not_preloaded(tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = str(venv / "bin" / "python")
    (site,) = venv.glob("lib/python*/site-packages")
    import interpose

    shutil.copytree(os.path.dirname(interpose.__file__), site / "interpose")
    shutil.copy(Path(interpose.__file__).parents[1] / "interpose.pth", site)
    os.unlink(site / "interpose" / "cext" / "libinterpose_boot.so")
    program = "import subprocess, sys; print(subprocess.run([sys.executable, '-S', '-c', 'print(1)']).returncode)"
    done = run(tmp_path / "run", python, "-c", program, INTERPOSE="1")

    assert (done.stdout, done.stderr) == ("1\n0\n", "")
    assert lineages(tmp_path / "run" / "test.1.er") == {"": 1}


# --- which are followed

FAMILY = """
import os, subprocess, sys
if os.fork() == 0:
    subprocess.run([sys.executable, "-c", "1", "inner"])
    os._exit(0)
os.wait()
subprocess.run([sys.executable, "-c", "1", "outer"])
deep = "import subprocess, sys; subprocess.run([sys.executable, '-c', '1', 'deep'])"
subprocess.run([sys.executable, "-c", deep])
"""


@pytest.mark.parametrize(
    ("follow", "expected"),
    [
        ("on", ["", "_c1", "_c2", "_c2_c1", "_f1", "_f1_c1"]),
        ("off", [""]),
        ("=outer$", ["", "_c2"]),
        ("=deep$|inner$", ["", "_c1", "_c4"]),
        ("=program|_f1", ["", "_f1", "_f1_c1"]),
        ("=_f1$", ["", "_f1"]),
        ("=_c2$", ["", "_c2"]),
    ],
)
def test_those_that_match_are_followed(traced, follow, expected):
    done = traced(FAMILY, INTERPOSE_FOLLOW=follow)
    processes = done.experiment.processes

    assert (done.returncode, done.stderr) == (0, "")
    assert [process.lineage for process in processes] == expected
    assert processes[0].unrecorded_children == 0


def test_who_is_not_followed_sees_nothing_of_it(traced):
    show = "import os; print(sorted(name for name in os.environ if name.startswith('INTERPOSE')))"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {show!r}], env={{'INTERPOSE_X': ''}})"
    for follow in ("off", "=nothing"):
        done = traced(program, INTERPOSE_FOLLOW=follow)

        assert done.stdout == "['INTERPOSE_X']\n"
        assert len(done.experiment.processes) == 1


# --- ranks of MPI

LAUNCHER = """
import os, subprocess, sys
child = "import os, subprocess, sys; subprocess.run([sys.executable, '-c', '1']); os.fork() or os._exit(0); os.wait()"
ranks = [
    subprocess.Popen([sys.executable, "-c", child], env={**os.environ, sys.argv[1]: str(rank), "SLURM_STEP_ID": "0"})
    for rank in range(2)
]
for rank in ranks:
    rank.wait()
"""
RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")


@pytest.mark.parametrize("variable", RANKS)
def test_ranks_of_mpi_are_named_by_their_numbers(traced, variable):
    done = traced(LAUNCHER, variable)

    each = ["M_r0", "M_r0_c1", "M_r0_f1", "M_r1", "M_r1_c1", "M_r1_f1"]
    assert [process.lineage for process in done.experiment.processes] == ["", *each]


def test_what_a_rank_starts_is_no_rank(traced):
    done = traced(
        "import subprocess, sys; subprocess.run([sys.executable, '-c', '1'])", PMI_RANK="3", SLURM_PROCID="3"
    )

    assert [process.lineage for process in done.experiment.processes] == ["", "_c1"]


def test_ranks_may_be_all_that_there_is(interpose, tmp_path):
    words = "for rank in 0 1; do PMI_RANK=$rank $PYTHON -c 'print(1)'; done"
    done = interpose("run", "sh", "-c", words, variables={"PYTHON": sys.executable})
    shown = interpose("report")

    processes = Experiment(str(tmp_path / "work" / "test.1.er")).processes
    assert (done.stdout, done.stderr) == ("1\n1\n", "")
    assert [process.lineage for process in processes] == ["M_r0", "M_r1"]
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "2 processes" in shown.stdout


# --- programs as there are

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 256)
        os.chdir("/")
        time.sleep(0.01)
        os._exit(0)
    os._exit(0)
os.wait()
"""

POOLS = """
import concurrent.futures, multiprocessing, os, sys, time

def work(number):
    time.sleep(0.001)
    return number

if __name__ == "__main__":
    way = sys.argv[1]
    context = multiprocessing.get_context(way)
    process = context.Process(target=work, args=(1,))
    process.start()
    process.join()
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        print(list(pool.map(work, range(3))))
"""

PREFORK = """
import os, signal, socket, time

listener = socket.create_server(("127.0.0.1", 0))
ready, begun = os.pipe()
workers = []
for _ in range(3):
    worker = os.fork()
    if worker == 0:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        os.write(begun, b"!")
        while True:
            connection, _ = listener.accept()
            connection.sendall(str(os.getpid()).encode())
            connection.close()
    workers.append(worker)
answered = set()
deadline = time.monotonic() + 60
for _ in workers:
    os.read(ready, 1)
while len(answered) < 2 and time.monotonic() < deadline:
    with socket.create_connection(listener.getsockname()) as client:
        answered.add(int(client.recv(100)))
for worker in workers:
    os.kill(worker, signal.SIGTERM)
    os.waitpid(worker, 0)
print(answered <= set(workers))
"""


def test_a_daemon_that_forks_twice_is_followed(traced):
    done = traced(DAEMON)
    deadline = time.monotonic() + 30
    while len(done.experiment.processes) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)

    assert [process.lineage for process in done.experiment.processes] == ["", "_f1", "_f1_f1"]


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("fork", {"": 1, "_f": 2}),
        ("spawn", {"": 1, "_c": 3}),  # the two, and the tracker of semaphores
        ("forkserver", {"": 1, "_c": 2, "_c_f": 2}),
    ],
)
def test_processes_of_multiprocessing_are_followed(traced, way, expected):
    done = traced(POOLS, way)

    assert (done.stdout, done.stderr, done.returncode) == ("[0, 1, 2]\n", "", 0)
    assert lineages(Path(done.path)) == expected


def test_the_workers_of_a_server_are_followed(traced):
    done = traced(PREFORK)

    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)
    assert [process.lineage for process in done.experiment.processes] == ["", "_f1", "_f2", "_f3"]
