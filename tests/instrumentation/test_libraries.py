"""Libraries of one's own: where they are found, which are trusted, in which order they are searched."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tracing import Traced, environment

from interpose.instrumentation import search

PACKAGE = """
    class Client:
        def get(self, key):
            return key * 2

        @property
        def other(self):
            return Client()

        def fails(self):
            raise ValueError("original")

        def nothing(self):
            return None

        def _hidden(self):
            return 1

    def plain(n):
        return n
"""
GETTING = "from shop.db import Client\nprint(Client().get(4))"
LIBRARY = """
    from interpose.library import Intrinsic

    def get(wrapped, instance, args, kwargs):
        print("{name} before")
        result = wrapped(*args, **kwargs)
        print("{name} after")
        return result

    INTRINSICS = [Intrinsic("shop.Client.get", "shop.db:Client.get", "db", wrapper=get)]
"""


class Place:
    """A project with a package, a home with its own configuration, and programs to be run there."""

    def __init__(self, directory: Path) -> None:
        self.project = directory / "home" / "project"
        self.home = directory / "home"
        self.account = self.home / ".config" / "interpose" / "interpose.d"
        self.group = self.project / "interpose.d"
        self.write(self.project / "shop" / "__init__.py", "")
        self.write(self.project / "shop" / "db.py", PACKAGE)

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(textwrap.dedent(text))
        path.chmod(0o600)
        return path

    def environment(self, **variables: str) -> dict[str, str]:
        plain = environment(HOME=str(self.home), XDG_STATE_HOME=str(self.home / "state"), **variables)
        plain.pop("XDG_CONFIG_HOME", None)
        return plain

    def run(self, *words: str, cwd: Path | None = None, **variables: str) -> Traced:
        directory = cwd or self.project
        done = subprocess.run(
            [sys.executable, *words],
            cwd=directory,
            env=self.environment(**{"INTERPOSE": "1", **variables}),
            capture_output=True,
            text=True,
            timeout=60,
        )
        return Traced(directory, done)

    def program(self, text: str, name: str = "app.py", **variables: str) -> Traced:
        self.write(self.project / name, text)
        return self.run(name, **variables)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def libraries(traced: Traced) -> dict[str, str]:
    """The libraries of an experiment, and why each was not used."""
    return {each.name: each.why_not for each in traced.experiment.founder.libraries}


def failures(traced: Traced) -> list[tuple[str, str, str]]:
    """What failed in wrappers: target, file and line, why."""
    found = traced.experiment.founder.failures
    return [(each.target, os.path.basename(each.place), each.why) for each in found]


def test_a_call_goes_through_group_account_and_system_to_the_real_one(place):
    sqlite = '"sqlite3.Cursor.execute", "sqlite3:Cursor.execute"'
    executing = LIBRARY.replace('"shop.Client.get", "shop.db:Client.get"', sqlite)
    place.write(place.group / "orders.py", executing.format(name="group"))
    place.write(place.account / "mine.py", executing.format(name="account"))

    done = place.program("import sqlite3; print(sqlite3.connect(':memory:').cursor().execute('select 7').fetchone())")

    assert done.stdout.splitlines() == ["group before", "account before", "account after", "group after", "(7,)"]
    founder = done.experiment.founder
    calls = [event for event in done.events() if "Cursor.execute" in founder.intrinsic(event.intrinsic).name]
    assert [founder.intrinsic(event.intrinsic).library for event in calls] == ["group:orders", "account:mine", "system"]
    assert [event.parent for event in calls] == [0, calls[0].call, calls[1].call]
    assert founder.string(calls[2].detail) == "select ?"
    assert [founder.own_line(event.stack).file for event in calls] == [str(place.project / "app.py")] * 3
    passes_on = [founder.intrinsic(event.intrinsic).passes_on for event in calls]
    assert passes_on == ["account:mine", "system", ""]


@pytest.mark.parametrize(
    ("lib", "said"),
    [("G", ["group", "account"]), ("P", ["account"]), ("S", [])],
)
def test_how_many_are_searched_is_a_setting(place, lib, said):
    place.write(place.group / "orders.py", LIBRARY.format(name="group"))
    place.write(place.account / "mine.py", LIBRARY.format(name="account"))

    done = place.program(GETTING, INTERPOSE_LIB=lib)

    assert [line.split()[0] for line in done.stdout.splitlines() if "before" in line] == said
    assert done.stdout.splitlines()[-1] == "8"


def test_an_explicit_order_goes_before_the_usual_one(place):
    place.write(place.group / "orders.py", LIBRARY.format(name="group"))
    place.write(place.account / "mine.py", LIBRARY.format(name="account"))
    elsewhere = place.write(place.home / "lent.py", LIBRARY.format(name="lent"))

    done = place.program(GETTING, INTERPOSE_LIB="S", INTERPOSE_XL=f"mine, {elsewhere}, nobody, group:orders")

    assert [line.split()[0] for line in done.stdout.splitlines() if "before" in line] == ["account", "lent", "group"]
    assert libraries(done)["xl:nobody"] == "no such library"


def test_the_group_is_looked_for_upward_and_never_above_the_repository_or_the_home(place):
    place.write(place.home.parent / "interpose.d" / "outer.py", LIBRARY.format(name="outer"))
    place.write(place.home / "interpose.d" / "home.py", LIBRARY.format(name="home"))
    below = place.project / "tools" / "deep" / "app.py"
    place.write(below, "import sys; sys.path.insert(0, sys.argv[1])\n" + GETTING)

    at_home = place.run(str(below), str(place.project))
    (place.project / ".git").mkdir()
    stopped = place.run(str(below), str(place.project))
    (place.home / "interpose.d" / "home.py").unlink()
    (place.home / "interpose.d").rmdir()
    (place.project / ".git").rmdir()
    not_above = place.run(str(below), str(place.project))

    assert at_home.stdout.splitlines()[0] == "home before"
    assert stopped.stdout == "8\n"
    assert not_above.stdout == "8\n"


def test_for_a_module_and_an_installed_command_it_is_the_working_directory(place):
    place.write(place.group / "orders.py", LIBRARY.format(name="group"))
    other = place.home / "other"
    place.write(other / "interpose.d" / "other.py", LIBRARY.format(name="other"))
    command = place.write(place.home / ".local" / "bin" / "shopping", GETTING)
    place.write(place.project / "shopping.py", GETTING)

    for words in (["-m", "shopping"], [str(command)], ["-c", GETTING]):
        done = place.run(*words, cwd=other, PYTHONPATH=str(place.project))
        assert done.stdout.splitlines()[0] == "other before", (words, done.stderr)
    script = place.run(str(place.project / "shopping.py"), cwd=other)
    assert script.stdout.splitlines()[0] == "group before"


def test_children_have_the_libraries_of_their_founder(place):
    place.write(place.group / "orders.py", LIBRARY.format(name="group"))
    program = """
        import multiprocessing, os, subprocess, sys
        from shop.db import Client
        if __name__ == "__main__":
            getting = "import sys; sys.path.insert(0, sys.argv[1]); import shop.db; shop.db.Client().get(1)"
            words = [sys.executable, "-c", getting]
            where = os.path.dirname(__file__)
            for environment in (None, dict(os.environ)):
                done = subprocess.run([*words, where], cwd="/", env=environment, capture_output=True, text=True)
                print(done.stdout.splitlines(), done.stderr)
            process = multiprocessing.get_context("spawn").Process(target=Client().get, args=(1,))
            process.start()
            process.join()
            print("INTERPOSE_GROUP" in os.environ)
    """
    place.write(place.project / "app.py", program)

    done = place.run(str(place.project / "app.py"), cwd=place.home)

    told = "['group before', 'group after'] "
    assert done.stdout.splitlines() == [told, told, "group before", "group after", "False"], done.stderr


def test_a_pattern_stands_for_the_functions_and_methods_that_are_there(place):
    place.write(place.group / "orders.py", """
        from interpose.library import Intrinsic
        INTRINSICS = [
            Intrinsic("shop.Client.get", "shop.db:Client.get", "db"),
            Intrinsic("shop.Client.*", "shop.db:Client.*", "file"),
            Intrinsic("shop.*", "shop.db:pl*n", "net"),
        ]
    """)

    done = place.program("""
        from shop.db import Client, plain
        client = Client()
        client.get(1), client.nothing(), client._hidden(), client.other, plain(1)
    """)

    founder = done.experiment.founder
    named = [founder.intrinsic(event.intrinsic) for event in done.events()]
    assert [(each.name, each.kind) for each in named if each.library == "group:orders"] == [
        ("shop.Client.get", "db"), ("shop.Client.nothing", "file"), ("shop.plain", "net"),
    ]  # fmt: skip


def test_what_a_library_says_of_transactions_and_the_terminal_is_in_the_map(place):
    place.write(place.group / "orders.py", """
        from interpose.library import Intrinsic
        INTRINSICS = [
            Intrinsic("shop.Client.get", "shop.db:Client.get", "db", transaction="begins"),
            Intrinsic("shop.plain", "shop.db:plain", "screen", transaction="ends", terminal=True),
        ]
    """)

    done = place.program("from shop.db import Client, plain\nClient().get(1), plain(2)")

    founder = done.experiment.founder
    named = {intrinsic.name: intrinsic for event in done.events() if (intrinsic := founder.intrinsic(event.intrinsic))}
    assert named["shop.Client.get"].transaction == "begins"
    assert (named["shop.plain"].transaction, named["shop.plain"].terminal) == ("ends", "line")


# --- trust


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_not_loaded(place, mode):
    path = place.write(place.group / "orders.py", LIBRARY.format(name="group"))
    path.chmod(mode)

    done = place.program(GETTING)

    assert done.stdout == "8\n"
    whose = "others" if mode & 0o002 else "its group"
    assert libraries(done) == {"group:orders": f"{path} is writable by {whose}"}


def test_nor_one_in_a_directory_that_others_may_write(place):
    place.write(place.group / "orders.py", LIBRARY.format(name="group"))
    place.project.chmod(0o777)

    done = place.program(GETTING)

    assert done.stdout == "8\n"
    assert libraries(done) == {"group:orders": f"{place.project} is writable by others"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_nor_one_of_another_user(place):
    path = place.write(place.group / "orders.py", LIBRARY.format(name="group"))
    os.chown(path, 12345, 12345)

    done = place.program(GETTING)

    assert done.stdout == "8\n"
    assert libraries(done) == {"group:orders": f"{path} belongs to another user"}


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_nothing_is_run_that_a_project_file_of_another_user_names(place):
    place.write(place.home / "mine.py", LIBRARY.format(name="mine"))
    project_file = place.write(place.project / "pyproject.toml", f"""
        [tool.interpose]
        libraries = ["{place.home}/mine.py"]
    """)
    os.chown(project_file, 12345, 12345)

    place.run("-m", "interpose", "map", INTERPOSE="0")
    done = place.program(GETTING)

    assert done.stdout == "8\n"
    assert libraries(done) == {"group:pyproject.toml": f"{project_file} belongs to another user"}


def test_no_libraries_are_looked_for_above_a_directory_that_others_can_write(place):
    place.write(place.group / "orders.py", LIBRARY.format(name="group"))
    shared = place.project / "shared"
    shared.mkdir()
    shared.chmod(0o1777)

    assert search.find_group(str(shared), "") == ""
    shared.chmod(0o755)
    assert search.find_group(str(shared), "") == str(place.project)


def test_a_link_is_followed_and_what_it_leads_to_is_looked_at_as_well(place):
    lent = place.write(place.home / "lent" / "lent.py", LIBRARY.format(name="lent"))
    place.group.mkdir(parents=True)
    (place.group / "orders.py").symlink_to("../../lent/lent.py")
    (place.group / "round.py").symlink_to("round.py")

    trusted = place.program(GETTING)
    lent.parent.chmod(0o777)
    untrusted = place.program(GETTING)

    assert trusted.stdout.splitlines()[0] == "lent before"
    assert libraries(trusted)["group:round"].endswith("round.py: too many links")
    assert untrusted.stdout == "8\n"
    assert libraries(untrusted)["group:orders"] == f"{lent.parent} is writable by others"


def test_what_is_no_file_is_not_waited_for(place):
    place.group.mkdir(parents=True)
    os.mkfifo(place.group / "pipe.py", 0o600)
    (place.group / "directory.py").mkdir(0o700)

    done = place.program(GETTING)

    assert done.stdout == "8\n"
    assert libraries(done) == {
        "group:directory": f"{place.group / 'directory.py'} is not a file",
        "group:pipe": f"{place.group / 'pipe.py'} is not a file",
    }


# --- bad input


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("x = (\n", 1, "SyntaxError: '(' was never closed"),
        ("\n\nraise RuntimeError('no')\n", 3, "RuntimeError: no"),
        ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
        ("from nowhere_at_all import this\n", 1, "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("\nINTRINSICS = 7\n", None, "INTRINSICS is not a list of Intrinsic"),
        ("# nothing\n", None, "INTRINSICS is not a list of Intrinsic"),
        ("\0\n", 1, "SyntaxError: source code string cannot contain null bytes"),
    ],
)
def test_a_library_that_cannot_be_loaded_is_named_and_the_others_are(place, text, line, why):
    path = place.write(place.group / "bad.py", text)
    place.write(place.group / "good.py", LIBRARY.format(name="good"))

    done = place.program(GETTING)

    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == "good before"
    assert libraries(done) == {"group:bad": why, "group:good": ""}
    found = done.experiment.founder.libraries[0]
    assert found.place == (f"{path}:{line}" if line else str(path))


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("name=5", "its name is not text"),
        ("name=''", "it has no name"),
        ("target='shop.db'", "'shop.db' is not module:name"),
        ("target=':plain'", "':plain' is not module:name"),
        ("detail=None", "its detail is not text"),
        ("attribute=('a',)", "its attribute is not text"),
        ("layer=5", "its layer is not text"),
        ("by='magic'", "'magic' is not a way to interpose"),
        ("waits='often'", "its waits is not True or False"),
        ("wrapper=5", "its wrapper cannot be called"),
    ],
)
def test_a_declaration_that_is_none_is_told_with_its_line_and_leaves_the_rest(place, bad, why):
    place.write(place.group / "bad.py", f"""
        from interpose.library import Intrinsic
        what = dict(name="shop.plain", target="shop.db:plain", kinds="db")
        INTRINSICS = [
            Intrinsic("shop.Client.get", "shop.db:Client.get", "db"),
            Intrinsic(**{{**what, **dict({bad})}}),
            Intrinsic("shop.Client.fails", "shop.db:Client.fails", "db"),
        ]
    """)
    place.write(place.group / "good.py", LIBRARY.format(name="good"))

    done = place.program(GETTING + "\nfrom shop.db import plain\nprint(plain(3))")

    assert (done.stdout, done.stderr) == ("8\n3\n", "")
    assert libraries(done) == {"group:bad": "", "group:good": ""}
    assert [(where, said) for _, where, said in failures(done)] == [("bad.py:6", why)]
    assert len(done.events("shop.Client.get")) == 1
    assert not done.events("shop.plain")


def test_a_declaration_of_what_is_not_there_leaves_the_rest(place):
    place.write(place.group / "orders.py", """
        from interpose.library import Intrinsic
        INTRINSICS = [
            Intrinsic("shop.gone", "shop.db:gone", "db"),
            Intrinsic("shop.odd", "shop.db:plain", "nonsense"),
            Intrinsic("nobody.at_all", "nobody:at_all", "db"),
            Intrinsic("shop.Client.get", "shop.db:Client.get", "db"),
        ]
    """)

    done = place.program(GETTING)

    assert (done.stdout, done.stderr) == ("8\n", "")
    assert len(done.events("shop.Client.get")) == 1
    assert done.experiment.founder.not_interposed == {
        "shop.gone": "its module has no such name",
        "shop.odd": "'nonsense' means nothing here",
    }


def test_a_catch_all_is_told_of_what_is_not_there_and_may_say_what_to_take(place):
    place.write(place.group / "orders.py", """
        from interpose.library import Intrinsic
        INTRINSICS = [Intrinsic("shop.Client.fetch", "shop.db:Client.fetch", "db")]
        def renamed(library, target):
            print(library, target)
            return "shop.db:Client.get"
    """)

    done = place.program(GETTING, INTERPOSE_UNSAT="renamed")

    assert done.stdout.splitlines() == ["group:orders shop.db:Client.fetch", "8"]
    assert len(done.events("shop.Client.fetch")) == 1



def test_where_wrapt_interposes_the_libraries_are_searched_as_well(place):
    for level, name in ((place.group, "group"), (place.account, "account")):
        more = ', Intrinsic("time.sleep", "time:sleep", "sleep", wrapper=get)]'
        place.write(level / "orders.py", LIBRARY.format(name=name).replace("wrapper=get)]", f"wrapper=get){more}"))

    done = place.program("import shop.db, time\nprint(shop.db.Client().get(1), time.sleep(0))", INTERPOSE_BY="wrapt")

    assert done.stderr == ""
    through = ["group before", "account before", "account after", "group after"]
    assert done.stdout.splitlines() == [*through, *through, "2 None"]
    assert done.experiment.founder.log.interposed["by"] == "wrapt"
    assert len(done.events("time.sleep")) == 1


def test_a_library_has_a_level_by_its_name(place):
    place.write(place.group / "orders.py", """
        from interpose.library import Intrinsic
        INTRINSICS = [Intrinsic("shop.Client.get", "shop.db:Client.get", "db")]
    """)

    done = place.program(GETTING, INTERPOSE_LEVELS="orders=off")

    assert done.stdout == "8\n"
    assert done.events("shop.Client.get") == []
