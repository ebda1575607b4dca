"""`interpose map`, and what commands say of libraries."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from interpose.timing import shims
from tests.instrumentation.test_libraries import GETTING, LIBRARY, Place, libraries, place

__all__ = ["place"]

DECLARED = """
    from interpose.library import Intrinsic

    def get(wrapped, instance, args, kwargs):
        return wrapped(*args, **kwargs)

    INTRINSICS = [
        Intrinsic("shop.Client.get", "shop.db:Client.get", "db", wrapper=get),
        Intrinsic("shop.Client.*", "shop.db:Client.no*", "db"),
        Intrinsic("shop.x", "shop.db:x*", "db"),
        Intrinsic("elsewhere.get", "no_such_package.db:get", "db"),
        Intrinsic("time.sleep", "time:sleep", "sleep", wrapper=get),
        MORE
    ]
"""
GONE = 'Intrinsic("shop.gone", "shop.db:gone", "db"),'


def command(place: Place, *words: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "interpose", *words],
        cwd=cwd or place.project,
        env=place.environment(COLUMNS="200", **variables),
        capture_output=True,
        text=True,
        timeout=60,
    )


def rows(done: subprocess.CompletedProcess[str]) -> dict[str, dict]:
    return {row["name"]: row for row in json.loads(done.stdout)}


def test_each_intrinsic_has_its_library_and_what_that_passes_on_to(place):
    place.write(place.group / "orders.py", DECLARED.replace("MORE", ""))
    place.write(place.account / "mine.py", LIBRARY.format(name="mine"))

    done = command(place, "map", "--format", "json")

    found = rows(done)
    assert (done.returncode, done.stderr) == (0, "")
    shown = {
        name: [found[name][each] for each in ("library", "passes_on", "by", "why")]
        for name in found
        if name.startswith(("shop", "time", "elsewhere", "sqlite3.Cursor.__next__")) and name != "shop.Client.nothing"
    }
    assert shown == {
        "shop.Client.get (group:orders)": ["group:orders", "account:mine", "function", ""],
        "shop.Client.get": ["account:mine", "real", "function", ""],
        "shop.x": ["group:orders", "", "", "it stands for nothing"],
        "elsewhere.get": ["group:orders", "", "", "absent"],
        "time.sleep (group:orders)": ["group:orders", "system", "method table", ""],
        "time.sleep": ["system", "", "method table", ""],
        "sqlite3.Cursor.__next__": ["system", "", "slot", ""],
    }
    assert found["shop.Client.nothing"]["library"] == "group:orders"
    assert found["shop.Client.nothing"]["installed"]
    assert found["shop.Client.get (group:orders)"]["target"] == "shop.db:Client.get"
    assert found["shop.Client.get (group:orders)"]["place"] == f"{place.group / 'orders.py'}:8"


@pytest.mark.long
def test_one_is_asked_for_by_name_or_target(place):
    place.write(place.group / "orders.py", DECLARED.replace("MORE", ""))

    def named(target):
        return list(rows(command(place, "map", target, "--format", "json")))

    assert named("time.sleep") == ["time.sleep (group:orders)", "time.sleep"]
    assert named("shop.db:Client.get") == ["shop.Client.get"]
    assert named("os.[flv]*stat") == named("os.?stat") == ["os.fstat", "os.lstat"]
    nobody = command(place, "map", "no.body")
    assert (nobody.returncode, nobody.stdout) == (1, "")
    assert nobody.stderr == "interpose: no.body: no library declares it\n"


def test_native_calls_are_listed_if_they_are_recorded(place):
    native = rows(command(place, "map", "--format", "json", INTERPOSE="calls,native"))
    calls = rows(command(place, "map", "--format", "json"))

    listed = {name for name in native if name.startswith("libc.")}
    direct = [(library, name) for library, name, *_, is_buffer in shims.native_calls() if not is_buffer]
    assert listed == {f"libc.{name}" for library, name in direct if library == "libc"}
    assert not [name for name in calls if name.startswith("lib")]
    sleep = native["libc.sleep"]
    assert (sleep["kind"], sleep["by"], sleep["installed"]) == ("sleep", "import table", True)
    assert native["libsqlite3.sqlite3_step"]["why"] == "only in programs that are not Python"


def test_a_native_call_is_asked_for_by_its_function(place):
    for name in ("sleep", "libc.sleep"):
        asked = command(place, "map", name, "--format", "json", INTERPOSE="calls,native")
        assert list(rows(asked)) == ["libc.sleep"]
    script = place.write(place.project / "app.py", "import time\ntime.sleep(0.001)\n")
    done = place.run(script.name, INTERPOSE="calls,native")

    kept = rows(command(place, "map", "--experiment", str(done.path), "sleep", "--format", "json"))

    assert {name: row["kind"] for name, row in kept.items()} == {"libc.sleep": "sleep"}


@pytest.mark.long
def test_what_a_program_would_get_is_looked_for_from_there_and_it_is_not_run(place):
    place.write(place.group / "orders.py", LIBRARY.format(name="group"))
    script = place.write(place.project / "app.py", "raise SystemExit('it was run')\n" + GETTING)

    there = command(place, "map", "--for", str(script), "shop", cwd=place.home)
    here = command(place, "map", "shop", cwd=place.home)

    assert there.stdout.splitlines()[1].split() == ["shop.Client.get", "group:orders", "real", "function", "yes"]
    assert here.returncode == 1
    for wrong in ("nowhere.py", "no-such-command", "sh"):
        assert command(place, "map", "--for", wrong).returncode == 2


@pytest.mark.long
def test_a_name_that_is_not_there_is_an_error_of_map_and_run_unless_there_is_a_catch_all(place):
    place.write(place.group / "orders.py", DECLARED.replace("MORE", GONE))
    place.write(place.project / "app.py", GETTING)
    told = f"interpose: {place.group / 'orders.py'}:13: group:orders: shop.db:gone: its module has no such name\n"

    mapped = command(place, "map")
    run = command(place, "run", "app.py")
    bare = place.run("app.py")

    assert (mapped.returncode, mapped.stderr) == (2, told)
    assert (run.returncode, run.stdout, run.stderr) == (2, "", told)
    assert (bare.returncode, bare.stdout) == (0, "8\n")
    assert bare.experiment.founder.not_interposed == {"shop.gone": "its module has no such name"}
    assert command(place, "map", INTERPOSE_UNSAT="skip").returncode == 0
    assert command(place, "run", "app.py", INTERPOSE_UNSAT="skip").stdout == "8\n"
    nobodys = command(place, "run", "app.py", INTERPOSE_UNSAT="anything")
    assert nobodys.returncode == 2
    assert "INTERPOSE_UNSAT: anything is not used: no library has such a function" in nobodys.stderr


def test_run_says_in_a_line_each_what_is_wrong_and_runs(place):
    place.write(place.group / "bad.py", "x = (\n")
    place.write(place.group / "good.py", LIBRARY.format(name="good"))
    place.write(place.project / "app.py", GETTING)

    done = command(place, "run", "app.py")

    assert done.stdout.splitlines() == ["good before", "good after", "8"]
    why = "SyntaxError: '(' was never closed"
    assert done.stderr == f"interpose: {place.group / 'bad.py'}:1: group:bad is not used: {why}\n"


@pytest.mark.long
def test_report_doctor_and_the_map_of_an_experiment_tell_what_failed(place):
    text = LIBRARY.format(name="group").replace('print("group after")', "1 / 0")
    path = place.write(place.group / "orders.py", text)
    place.write(place.group / "bad.py", "raise OSError(2, 'no')\n")
    place.program(GETTING)

    report = command(place, "report").stdout
    mapped = command(place, "map", "--experiment", "test.1.er", "shop")
    doctor = json.loads(command(place, "doctor", "--format", "json").stdout)

    assert " library  group:bad is not used: FileNotFoundError: [Errno 2] no" in report
    assert " library  group:orders: shop.db:Client.get: its wrapper raised ZeroDivisionError" in report
    assert mapped.returncode == 0
    assert f"{path}:7: group:orders: shop.db:Client.get: its wrapper raised ZeroDivisionError" in mapped.stderr
    assert doctor["libraries"] == [
        f"group:orders  {path}",
        f"{place.group / 'bad.py'}:1: group:bad is not used: FileNotFoundError: [Errno 2] no",
    ]


# --- what only commands resolve


@pytest.mark.long
def test_libraries_that_a_project_file_names_are_used_once_a_command_has_read_it(place):
    place.write(place.project / "tools" / "interposing.py", LIBRARY.format(name="tool"))
    project = place.write(place.project / "pyproject.toml", """
        [tool.interpose]
        stack = "own"
        libraries = [
            "tools/interposing.py",  # a [list]
        ]
        clock = "syscall"
    """)  # fmt: skip
    text = "no interpose command has looked at {} since it changed: any of them does, as interpose doctor"

    before = place.program(GETTING)
    listed = command(place, "list")
    after = place.program(GETTING)
    project.write_text(project.read_text() + "# changed\n")
    stale = place.program(GETTING)
    doctor = json.loads(command(place, "doctor", "--format", "json").stdout)

    assert listed.returncode == 0
    why = f"interposing was not used until now: {project} changed, and no command had looked at it"
    assert doctor["libraries"] == [f"group:interposing  {place.project / 'tools' / 'interposing.py'}", why]
    assert before.stdout == "8\n"
    assert libraries(before) == {"group:pyproject.toml": text.format(project)}
    assert after.stdout.splitlines()[0] == "tool before"
    assert after.experiment.founder.log.clock["kind"] == "syscall"
    assert stale.stdout == "8\n"
    assert libraries(stale) == {"group:interposing": text.format(project)}
    resolved = place.home / "state" / "interpose" / "libraries"
    assert resolved.stat().st_mode & 0o777 == 0o600


def test_libraries_that_packages_give_are_searched_behind_the_accounts(place):
    packages = place.home / "lib" / "site-packages"
    place.write(packages / "shopping" / "__init__.py", "raise SystemExit('it was imported')")
    place.write(packages / "shopping" / "tracing.py", LIBRARY.format(name="package").replace("INTRINSICS", "DECLARED"))
    metadata = packages / "shopping-1.0.dist-info"
    place.write(metadata / "METADATA", "Metadata-Version: 2.1\nName: shopping\nVersion: 1.0\n")
    place.write(metadata / "entry_points.txt", "[interpose.libraries]\nshopping = shopping.tracing:DECLARED\n")
    place.write(place.account / "mine.py", LIBRARY.format(name="mine"))
    place.write(place.project / "app.py", GETTING)
    path = {"PYTHONPATH": str(packages)}

    unknown = place.run("app.py", **path)
    command(place, "list", **path)
    known = place.run("app.py", **path)
    elsewhere = place.run("app.py")
    ours = place.run("app.py", **path, INTERPOSE_LIB="S")
    (packages / "another").mkdir()
    stale = place.run("app.py", **path)

    assert unknown.stdout.splitlines() == ["mine before", "mine after", "8"]
    assert known.stdout.splitlines() == ["mine before", "package before", "package after", "mine after", "8"]
    assert elsewhere.stdout.splitlines() == ["mine before", "mine after", "8"]
    assert ours.stdout == "8\n"
    assert stale.stdout.splitlines() == ["mine before", "mine after", "8"]
    assert "since it changed" in libraries(stale)["package:shopping"]


@pytest.mark.parametrize("mode", [0o620, 0o644])
def test_what_was_resolved_is_not_believed_where_others_could_have_written_it(place, mode):
    place.write(place.project / "tools" / "interposing.py", LIBRARY.format(name="tool"))
    place.write(place.project / "pyproject.toml", '[tool.interpose]\nlibraries = ["tools/interposing.py"]\n')
    command(place, "list")
    (place.home / "state" / "interpose" / "libraries").chmod(mode)

    done = place.program(GETTING)

    assert done.stdout == "8\n"


def test_nothing_is_kept_for_programs_where_there_is_no_such_library(place):
    command(place, "list")

    assert not (place.home / "state" / "interpose" / "libraries").exists()


@pytest.mark.parametrize("named", ['"tools"', "[1]", "[", "{}"])
def test_a_list_that_is_none_is_told(place, named):
    place.write(place.project / "pyproject.toml", f"[tool.interpose]\nlibraries = {named}\n")
    place.write(place.project / "app.py", GETTING)

    done = command(place, "run", "app.py")

    assert done.returncode == 2
    assert done.stderr.startswith(f"interpose: {place.project / 'pyproject.toml'}: libraries")
    assert len(done.stderr.splitlines()) == 1
