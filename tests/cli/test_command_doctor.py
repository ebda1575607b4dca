"""`interpose doctor`: what it finds, and what it says is in the way."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from interpose.config.schema import SETTINGS
from interpose.timing import kernel
from interpose.timing.sampler import try_process

pytestmark = pytest.mark.every_python


@pytest.fixture
def examine(interpose):
    """A function that gives what doctor finds, and its exit code."""

    def examine(*words: str, **options) -> tuple[dict, int]:
        done = interpose("doctor", "--format", "json", *words, **options)
        assert done.stderr == ""
        return json.loads(done.stdout), done.returncode

    return examine


def test_a_whole_install_has_a_clock_costs_and_nothing_in_the_way(examine):
    found, code = examine()

    assert found["obstacles"] == []
    assert code == 0
    assert found["clock"]["kind"] in ("tsc", "rseq", "perf", "syscall")
    assert found["clock"]["why"]
    assert int(found["clock"]["read_ns"]) > 0
    assert found["cost"]["call_ns"] > found["cost"]["inside_ns"] >= 0
    assert found["interposed"] == {"by": "place", "why": ""}
    assert found["intrinsics"] > 200
    assert all(why == "this Python has no such name" for why in found["not_interposed"].values())
    startup_files = ["interpose.pth", "interpose.start"][: 2 if sys.version_info >= (3, 18) else 1]
    assert [Path(path).name for path in found["interpreter"]["startup_files"]] == startup_files
    assert found["notes"] == ["INTERPOSE is not set: only what `interpose run` starts is recorded"]


@pytest.mark.any_python
def test_the_clock_is_the_one_that_was_wanted(examine):
    found, _ = examine(variables={"INTERPOSE_CLOCK": "syscall"})

    assert found["clock"]["kind"] == "syscall"


def test_it_says_whether_programs_can_be_sampled(examine):
    found, _ = examine()

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        first = int(Path(f"/proc/{child.pid}/maps").read_text().partition("-")[0], 16)
        why_not, has_clock = try_process(child.pid, first)
        child.communicate(b"\n")
    assert found["sampling"].startswith("not possible: " if why_not else "possible: ")
    assert why_not or ("perf event" in found["sampling"] and ("exact" in found["sampling"]) == has_clock)


@pytest.mark.any_python
def test_a_package_that_interpose_needs_is_said_to_be_missing(examine, tmp_path):
    (tmp_path / "zstandard.py").write_text("raise ImportError('no zstandard')\n")

    found, code = examine(variables={"PYTHONPATH": str(tmp_path)})

    assert code == 1
    assert found["sampling"] == "not possible: no zstandard"
    (obstacle,) = found["obstacles"]
    assert "has no package zstandard: nothing is compressed or sampled" in obstacle


@pytest.mark.any_python
def test_settings_are_shown_with_where_they_came_from(examine, tmp_path):
    file = tmp_path / "work" / "pyproject.toml"
    file.write_text('[tool.interpose]\nname = "mine"\n')

    found, _ = examine(variables={"INTERPOSE": "1", "INTERPOSE_STACK": "none"})

    defaults = {setting.variable: (setting.default, "default") for setting in SETTINGS}
    assert {row["variable"]: (row["value"], row["origin"]) for row in found["settings"]} == defaults | {
        "INTERPOSE": ("calls", "environment"),
        "INTERPOSE_DIR": (str(tmp_path / "work"), "default"),
        "INTERPOSE_NAME": ("mine", f"{file}:2"),
        "INTERPOSE_STACK": ("none", "environment"),
    }
    assert found["notes"] == []


@pytest.mark.long
def test_data_collectors_of_a_program_are_listed_and_not_run(examine, tmp_path):
    good, bad = (tmp_path / "work" / f"interpose_{name}.py" for name in ("good", "bad"))
    for file, mode in ((good, 0o600), (bad, 0o666)):
        file.write_text("raise SystemExit(9)\n")
        file.chmod(mode)

    found, code = examine(variables={"INTERPOSE_COLLECTORS": f"{good},{bad},nowhere"})

    assert found["collectors"][0] == f"path:interpose_good  {good}"
    assert found["collectors"][1].startswith(f"path:interpose_bad  {bad}  not used: ")
    assert found["collectors"][2] == "named:nowhere  not used: no such data collector"
    assert code == 0
    assert examine(variables={"INTERPOSE_COLLECTORS": "off"})[0]["collectors"] == []


@pytest.mark.any_python
def test_a_setting_that_means_nothing_is_in_the_way(examine):
    found, code = examine(variables={"INTERPOSE_CLOCK": "sundial"})

    assert found["obstacles"] == ["INTERPOSE_CLOCK=sundial: not one of auto, tsc, rseq, perf, syscall"]
    assert code == 1


@pytest.mark.any_python
def test_being_switched_off_is_in_the_way(examine):
    found, _ = examine(variables={"INTERPOSE": "0"})

    assert found["obstacles"] == ["INTERPOSE is 0 (environment): nothing is recorded"]


@pytest.mark.any_python
def test_a_variable_that_is_no_setting_is_noted(examine):
    found, _ = examine(variables={"INTERPOSE": "1", "INTERPOSE_CLOK": "rseq"})

    assert found["notes"] == ["INTERPOSE_CLOK is not a setting. Did you mean INTERPOSE_CLOCK?"]


@pytest.mark.any_python
def test_a_directory_in_which_nothing_can_be_made_is_in_the_way(examine, tmp_path):
    (tmp_path / "file").touch()

    found, _ = examine(variables={"INTERPOSE_DIR": str(tmp_path / "file")})

    assert found["obstacles"] == [
        f"{tmp_path}/file is not writable; experiments go to {tmp_path}/state/interpose/experiments"
    ]


@pytest.mark.any_python
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-m", "pip", "list"], "pip"),
        ([sys.executable, "-X", "dev", "-m", "tox"], "are not recorded"),
        (["ls"], "/ls is not Python"),
        (["nosuch-command"], "nosuch-command: command not found"),
    ],
)
def test_what_is_in_the_way_of_a_command_is_said(examine, words, said):
    found, code = examine("--", *words)

    assert len(found["obstacles"]) == 1
    assert said in found["obstacles"][0]
    assert code == 1


def test_without_start_up_files_a_library_is_preloaded(examine):
    found, code = examine("--", sys.executable, "-S", "app.py")

    assert (found["obstacles"], code) == ([], 0)
    assert found["interpreter"]["preloaded"]
    assert found["intrinsics"] > 100


def test_of_a_free_threaded_interpreter_it_says_what_is_not_recorded_there(interpose, tmp_path):
    """A stand-in says that it is one."""
    python = tmp_path / "python3.14t"
    changed = "import sys; sys.abiflags = 't'; exec(sys.argv[1])"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{changed}" "$2"\n')
    python.chmod(0o755)

    done = interpose("doctor", "--", str(python), "app.py")

    assert " free-threaded, interpose " in done.stdout
    assert "only calls and transactions are recorded; native, lines, coverage, profile, heap, what" in done.stdout
    assert "not yet in a free-threaded interpreter" in done.stdout


@pytest.mark.any_python
def test_a_script_is_examined_by_its_first_line(examine, tmp_path):
    script = tmp_path / "tool"
    script.write_text(f"#!{sys.executable} -I\n")
    script.chmod(0o755)

    found, code = examine("--", str(script), "--format", "text")

    assert found["interpreter"]["executable"] == sys.executable
    assert found["obstacles"] == []
    assert code == 0


@pytest.mark.any_python
def test_the_last_reasons_why_nothing_was_recorded_are_shown(examine, tmp_path):
    state = tmp_path / "state" / "interpose"
    state.mkdir(mode=0o700, parents=True)
    notes = "".join(f"86400\t{pid}\tapp.py\tno room\t/data\n" for pid in range(9))
    (state / "not-recorded").write_text(notes + "garbled\n")

    found, _ = examine()

    assert [line.partition(",")[2].partition(",")[0] for line in found["not_recorded"]] == [
        f" process {pid}" for pid in range(4, 9)
    ]


def test_the_text_says_the_same_without_control_characters(interpose, tmp_path):
    script = tmp_path / "\x1b[2Jtool"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)

    done = interpose("doctor", "--", os.fspath(script))

    assert "in the way" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.returncode == 1


@pytest.mark.any_python
def test_it_says_whether_system_calls_can_be_watched(examine):
    found, _ = examine()

    try:
        kernel.measured_costs(has_stacks=False)
    except OSError:
        assert found["system_calls"].startswith("not possible: the kernel ")
    else:
        assert re.fullmatch(r"possible: interpose kernel; each call costs \d+ ns more", found["system_calls"])
