"""Mistakes on the command line and in settings are answered in one line, with what was probably meant."""

import subprocess
import sys

import pytest

from interpose.experiments.model.experiment import Experiment
from tests.build import Build

pytestmark = pytest.mark.any_python


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["reprot"], "reprot is not a command. Did you mean report?"),
        (["app.py"], "app.py is not a command. Did you mean interpose run app.py?"),
        (["xyzzy"], "xyzzy is not a command; interpose --help lists them"),
        (["report", "--fromat", "json"], "--fromat is not an option. Did you mean --format? (interpose report --help)"),
        (["report", "--xyzzy"], "--xyzzy is not an option (interpose report --help)"),
        (["run", "--kind=db", "app.py"], "--kind is not an option. Did you mean --kinds? (interpose run --help)"),
        (
            ["report", "--by", "intrinsics"],
            "--by: intrinsics is not a choice. Did you mean intrinsic? (interpose report --help)",
        ),
        (["coverage", "raport"], "WHAT: raport is not a choice. Did you mean report? (interpose coverage --help)"),
        (["attach"], "the following arguments are required: PID (interpose attach --help)"),
    ],
)
def test_a_mistake_is_answered_in_one_line(interpose_here, words, told):
    done = interpose_here(*words)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"interpose: {told}\n")


def test_a_key_of_the_file_that_is_no_setting_is_answered_with_the_nearest(interpose_here, tmp_path):
    (tmp_path / "work" / "pyproject.toml").write_text('[tool.interpose]\nstack-abov = "1ms"\n')

    done = interpose_here("run", "app.py")

    told = f"{tmp_path}/work/pyproject.toml:2: stack-abov is not a setting. Did you mean stack-above?"
    assert (done.returncode, done.stderr) == (2, f"interpose: {told}\n")


def test_an_experiment_that_is_not_there_is_answered_with_the_nearest(interpose_here, tmp_path):
    Build(tmp_path / "work" / "orders.1.er").write()

    done = interpose_here("report", "order.1.er")

    assert (done.returncode, done.stderr) == (
        1,
        "interpose: order.1.er: no such experiment. Did you mean orders.1.er?\n",
    )


def test_a_variable_that_is_no_setting_is_told_before_the_program_starts(interpose):
    done = interpose("run", "-m", "platform", variables={"INTERPOSE_KIND": "db", "INTERPOSE_XYZZY": "1"})

    assert done.returncode == 0
    assert done.stderr.splitlines()[:2] == [
        "interpose: INTERPOSE_KIND is not a setting. Did you mean INTERPOSE_KINDS?",
        "interpose: INTERPOSE_XYZZY is not a setting",
    ]


def test_a_variable_that_is_no_setting_is_told_in_the_experiment_and_not_by_the_program(own_environment, tmp_path):
    variables = {"INTERPOSE": "yes", "INTERPOSE_KIND": "db"}
    done = subprocess.run(
        [sys.executable, "-c", "import time; time.sleep(0)"],
        env={**own_environment, **variables},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    warnings = [each.text for each in Experiment(str(tmp_path / "test.1.er")).founder.log.events if each.text]
    assert (done.stdout, done.stderr) == ("", "")
    assert warnings == ["INTERPOSE_KIND is not a setting"]
