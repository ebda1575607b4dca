"""Why a process may not be traced: what ptrace(2) names, each told by what /proc says."""

import os
import subprocess
import sys

import pytest

from interpose.attach import rights

pytestmark = pytest.mark.any_python
ALL, WITHOUT_TRACE = "1ffffffffff", f"{0x1FFFFFFFFFF & ~(1 << 19):x}"
ME = f"{os.geteuid()}\t" * 4
OTHER = f"{os.geteuid() + 1}\t" * 4


@pytest.mark.parametrize(
    ("scope", "own", "tracer", "users", "its", "why"),
    [
        ("0", "0", 7, ME, "0", "process 7 traces it already"),
        ("3", ALL, 0, ME, "0", "ptrace_scope is 3"),
        ("1", "0", 0, ME, "0", "ptrace_scope is 1; CAP_SYS_PTRACE helps"),
        ("1", ALL, 0, ME, ALL, "another user namespace, or a security module"),
        ("", "0", 0, "65534\t" * 4, "0", "user of another user namespace"),
        ("", WITHOUT_TRACE, 0, OTHER, "0", "it belongs to another user"),
        ("", WITHOUT_TRACE, 0, ME, ALL, "docker run --cap-add SYS_PTRACE"),
        ("", "0", 0, ME, "0", "PR_SET_DUMPABLE"),
    ],
)
def test_the_reason_is_the_one_that_ptrace_has(monkeypatch, scope, own, tracer, users, its, why):
    told = {
        "/proc/sys/kernel/yama/ptrace_scope": scope,
        "/proc/sys/kernel/overflowuid": "65534",
        "/proc/self/status": f"Name:\tpython\nCapEff:\t{own}\nCapPrm:\t{own}\n",
        "/proc/5/status": f"Uid:\t{users}\nTracerPid:\t{tracer}\nCapPrm:\t{its}\n",
    }
    monkeypatch.setattr(rights, "_read", told.__getitem__)

    assert why in rights.why_no_right(5)


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_another_user_is_told_to_use_the_process_s_user():
    ask = "import os, sys; from interpose.attach.rights import why_no_right; os.setuid(50_001);"
    ask += " print(why_no_right(os.getppid()))"

    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)

    assert "it belongs to another user; use its user, or root" in done.stdout or "ptrace_scope" in done.stdout
