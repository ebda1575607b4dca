"""What cannot be followed, or runs under rules of its own, runs undisturbed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from families import lineages, run
from machine import SECCOMP_TYPES
from tracing import of_machine

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


SECCOMP = SECCOMP_TYPES + """
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


@pytest.mark.long
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
