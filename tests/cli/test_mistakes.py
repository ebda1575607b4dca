"""Mistakes on the command line and in settings are answered in one line, with what was probably meant."""

import argparse
import subprocess
import sys

import pytest

from interpose.cli.main import load_commands, make_parser
from interpose.experiments.model.experiment import Experiment
from tests.build import Build


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["reprot"], "reprot is not a command. Did you mean report?"),
        (["app.py"], "app.py is not a command. Did you mean interpose run app.py?"),
        (["xyzzy"], "xyzzy is not a command; interpose --help lists them"),
        (["report", "--fromat", "json"], "--fromat is not an option. Did you mean --format? (interpose report --help)"),
        (["report", "--xyzzy"], "--xyzzy is not an option (interpose report --help)"),
        (["run", "--kind=db", "app.py"], "--kind is not an option. Did you mean --kinds? (interpose run --help)"),
        (["report", "--by", "lnie"], "--by: lnie is not a choice. Did you mean line? (interpose report --help)"),
        (
            ["report", "--by", "intrinsics"],
            "--by: intrinsics is not a choice. Did you mean intrinsic? (interpose report --help)",
        ),
        (["coverage", "raport"], "WHAT: raport is not a choice. Did you mean report? (interpose coverage --help)"),
        ([], "a command is missing, for example: interpose run app.py (interpose --help lists all)"),
        (["help"], "help is not a command: type interpose --help"),
        (["help", "report"], "help is not a command: type interpose report --help"),
        (["record", "app.py"], "record is not a command. Did you mean run?"),
        (["diff"], "diff is not a command. Did you mean compare?"),
        (["--vresion"], "--vresion is not an option of interpose. Did you mean --version? (interpose --help)"),
        (["--by", "line"], "--by is not an option of interpose; options follow the command (interpose --help)"),
        (["report", "--limit", "ten"], "--limit: 'ten' is not a positive integer (interpose report --help)"),
        (["attach", "abc"], "PID: 'abc' is not a positive integer (interpose attach --help)"),
        (["detach", "-5"], "PID: '-5' is not a positive integer (interpose detach --help)"),
        (["top", "--every", "x"], "--every: 'x' is not a number of seconds (interpose top --help)"),
        (["sql"], "the following arguments are required: QUERY (interpose sql --help)"),
        (["flame", "a.er", "b.er", "c.er"], "flame takes one experiment, or two to compare, not 3"),
        (["check", "--in-place", "a.er"], "-o and --in-place need --repair"),
        (["attach"], "the following arguments are required: PID (interpose attach --help)"),
        (["attach", "1", "--wait", "x"], "--wait: 'x' is not a number of seconds (interpose attach --help)"),
    ],
)
def test_a_mistake_is_answered_in_one_line(interpose_here, words, told):
    done = interpose_here(*words)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"interpose: {told}\n")


def test_the_help_of_attach_has_no_settings_that_it_refuses(interpose_here):
    run, attach = (interpose_here(command, "--help").stdout for command in ("run", "attach"))

    assert "--coverage" in run and "--lines" in run
    assert "--record" in attach and "--coverage" not in attach and "--lines" not in attach


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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--filter", "knd=db"], "--filter knd=db: 'knd' is not one of kind, event, "),
        (["--control", "nothere"], "--control nothere: No such file or directory"),
        (["--group", "nothere"], "--group nothere: no such directory"),
        (["--collectors", "nobody"], "INTERPOSE_COLLECTORS: collector:named:nobody is not used: no such data"),
        (["--xl", "nobody"], "INTERPOSE_XL: xl:nobody is not used: no such library"),
        (["--unsat", "nobody"], "INTERPOSE_UNSAT: nobody is not used: no library has such a function"),
        (["--levels", "sqlite=count"], "--levels sqlite=count: no intrinsic is called sqlite. Did you mean sqlite3?"),
    ],
)
def test_what_is_only_a_warning_of_the_report_is_told_before_the_program_starts(interpose, words, told):
    done = interpose("run", *words, "-m", "platform")

    assert done.returncode == 0
    assert done.stderr.splitlines()[0].startswith(f"interpose: {told}")


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"INTERPOSE_COLLECTORS": "nobody"}, "no such data collector (INTERPOSE_COLLECTORS)"),
        ({"INTERPOSE_UNSAT": "nobody"}, "nobody is not used: no library has such a function (INTERPOSE_UNSAT)"),
    ],
)
def test_what_is_named_and_is_not_there_is_a_warning_of_the_report(traced, interpose_here, variables, told):
    done = traced("print('goes on')", **variables)

    report = interpose_here("report", done.experiment.directory).stdout
    assert done.stdout == "goes on\n"
    assert told in " ".join(report.split())


@pytest.mark.parametrize("name", ["sqlite3", "os.stat", "system", "interpose.statement", "libc.read", "psycopg2"])
def test_a_level_of_a_name_that_is_there_is_not_doubted(interpose, name):
    done = interpose("run", "--levels", f"{name}=count", "-m", "platform")

    assert (done.returncode, "is called" in done.stderr) == (0, False)


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
    assert warnings == ["INTERPOSE_KIND is not a setting; interpose doctor lists them"]


WHERE_ELSE = (
    "it is empty: a program that may not write there records into ~/.local/state/interpose/experiments of its user "
    "(in its container, if it has one)"
)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (
            ["report", "."],
            1,
            "work: not an experiment: log.xml is missing; interpose list . lists the experiments in it",
        ),
        (["report", "else"], 1, f"else: not an experiment: log.xml is missing; {WHERE_ELSE}"),
        (["report", "wrong.er"], 1, "wrong.er/log.xml: not the log of an experiment"),
        (["cp", "order.1.er", "new.er"], 1, "order.1.er: no such experiment. Did you mean orders.1.er?"),
        (["report", "../work/gone.er"], 1, "../work/gone.er: no such experiment"),
        (["report", ""], 1, "'': no such experiment"),
        (["display", "zwr", "gone"], 1, "gone: no such file"),
        (["display", "zwr", "else"], 1, "else: not a file"),
        (["consolidate", "-o", "orders.1.er", "orders.1.er"], 1, "orders.1.er: already exists"),
        (
            ["report", "../work/order.1.er"],
            1,
            "../work/order.1.er: no such experiment. Did you mean ../work/orders.1.er?",
        ),
        (["rm", "order.1.er"], 1, "order.1.er: no such experiment. Did you mean orders.1.er?"),
        (["rm", "packed.er.tar.zst"], 1, "packed.er.tar.zst: is an archive: rm of the system removes it"),
        (["archive", "-m", "app", "-F", "orders.1.er"], 2, "-F copies everything again: leave out -m and -n"),
        (["archive", "-n", "-F", "orders.1.er"], 2, "-F copies everything again: leave out -m and -n"),
        (["notes", "--add", " ", "orders.1.er"], 2, "--add needs a text"),
        (["notes", "--edit", "orders.1.er"], 2, "--edit needs a terminal, or EDITOR; --add TEXT needs neither"),
        (
            ["control", "orders.1.er", "puase"],
            2,
            "puase is not an action: use start, resume, pause, sample, save, filter, status. Did you mean pause?",
        ),
        (["export", "--to", "parquet", "orders.1.er"], 2, "--to parquet writes a directory: name it with -o DIRECTORY"),
        (["consolidate", "-o", "new", "orders.1.er"], 2, "-o new: its name must end with .er"),
    ],
)
def test_a_mistake_about_an_experiment_is_answered_in_one_line(
    interpose_here, tmp_path, monkeypatch, words, code, told
):
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    work = tmp_path / "work"
    Build(work / "orders.1.er").write()
    (work / "else").mkdir()
    (work / "packed.er.tar.zst").touch()
    (work / "wrong.er").mkdir()
    (work / "wrong.er" / "log.xml").write_text("<page/>")

    done = interpose_here(*words)

    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"interpose: {told}\n")


def test_an_editor_that_is_not_there_is_named(interpose_here, tmp_path):
    Build(tmp_path / "work" / "orders.1.er").write()

    done = interpose_here("notes", "--edit", "orders.1.er", variables={"VISUAL": "/no/editor"})

    told = "/no/editor: No such file or directory; EDITOR names another editor"
    assert (done.returncode, done.stderr) == (1, f"interpose: {told}\n")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["ordres.py"], 2, "ordres.py: no such file. Did you mean orders.py?"),
        (["shop/ordres.py"], 2, "shop/ordres.py: no such file. Did you mean shop/orders.py?"),
        (["xyzzy.py"], 2, "xyzzy.py: no such file"),
        (["nowhere/orders.py"], 2, "nowhere/orders.py: no such file"),
        (["shop"], 1, "shop: a directory without __main__.py"),
        (["-m", "xyzzy.commands"], 1, f"-m xyzzy.commands: no such module in {sys.executable}"),
        (["-m", "orders.py"], 1, "-m orders.py: no such module. Did you mean interpose run orders.py?"),
        (["xyzzy"], 127, "xyzzy: command not found"),
        (["./xyzzy"], 127, "./xyzzy: No such file or directory"),
        (["manage"], 127, "manage: command not found; if it is Python: interpose run python manage"),
    ],
)
def test_a_program_that_cannot_run_is_answered_in_one_line_with_pythons_exit_code(
    interpose, tmp_path, words, code, told
):
    shop = tmp_path / "work" / "shop"
    shop.mkdir()
    for directory in shop.parent, shop:
        (directory / "orders.py").write_text("")
    (shop.parent / "manage").write_text("")

    done = interpose("run", *words)

    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"interpose: {told}\n")
    assert not list(shop.parent.glob("*.er"))


def test_a_directory_with_a_main_module_is_run(interpose, tmp_path):
    shop = tmp_path / "work" / "shop"
    shop.mkdir()
    (shop / "__main__.py").write_text("print('run')")

    done = interpose("run", "shop")

    assert (done.returncode, done.stdout) == (0, "run\n")


def every_choice():
    """The parser of each command, and of each below it, with its options that have choices."""
    parsers = [make_parser(load_commands())]
    for parser in parsers:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
            elif action.choices:
                yield pytest.param(parser, action, id=f"{parser.prog} {'/'.join(action.option_strings) or action.dest}")


@pytest.mark.parametrize(("parser", "action"), list(every_choice()))
def test_each_choice_of_each_option_is_found_from_a_typing_error(parser, action):
    def answer(word):
        with pytest.raises(argparse.ArgumentError) as refused:
            parser._check_value(action, word)
        return refused.value.message

    words = [str(each) for each in action.choices]
    for word in [each for each in words if len(each) > 3]:
        mistyped = f"{word[:2]}{word[3]}{word[2]}{word[4:]}q"
        assert answer(mistyped) == f"{mistyped} is not a choice. Did you mean {word}?"
    assert answer("1234") == f"1234 is not a choice; choose from {', '.join(words)}"
