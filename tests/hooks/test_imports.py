"""Imports as calls: off unless asked for, timed by module, nested as they are, and of no consequence to the program."""

import json
import os
import subprocess
import sys
import textwrap

import pytest
from exercises import assert_recorded_as_said, source_of
from tracing import environment, events_of

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.config.filters import requested
from interpose.config.levels import parse_kinds

WITH = {"INTERPOSE_KINDS": "all,import"}


def write(directory, **modules):
    """Modules by name; `__` stands for the dot before a package's module."""
    for name, text in modules.items():
        path = directory / (name.replace("__", "/") + ".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))


def imports(done, process=None):
    """The imports by the name of the module, the last of each."""
    process = process or done.experiment.founder
    return {process.string(event.detail): event for event in done.events("import", process)}


def errors(done):
    founder = done.experiment.founder
    return {name: founder.string(event.error) for name, event in imports(done).items() if event.error}


def everything_adds_up(done):
    """No event is impossible, and all that was made was recorded or is told to be lost."""
    for process in done.experiment.processes:
        events = list(events_of(process))
        inner = dict.fromkeys([(event.thread, event.call) for event in events], 0)
        for event in events:
            if (event.thread, event.parent) in inner:
                inner[event.thread, event.parent] += event.wall_ns
        assert all(0 <= event.cpu_ns <= event.wall_ns for event in events)
        assert all(inner[event.thread, event.call] == event.inner_wall_ns <= event.wall_ns for event in events)
        assert all(thread.adds_up for thread in process.threads)
    made = profile(Analysis(done.experiment), "intrinsic")
    assert sum(row.sums.self_wall_ns for row in made.rows) == made.total.wall_ns
    assert not done.experiment.damages.found
    return True


def test_every_way_to_import_a_module_is_recorded_as_it_was(traced):
    done = traced(source_of("imports"), **WITH)

    assert_recorded_as_said(done, "imports")
    assert everything_adds_up(done)


def test_a_module_has_its_own_time_and_that_of_what_it_imports(traced, tmp_path, interpose_here):
    write(
        tmp_path,
        outer="import time, middle\ntime.sleep(0.02)\n",
        middle="import inner, time\nend = time.thread_time() + 0.03\nwhile time.thread_time() < end: pass\n",
        inner="import os\nos.stat('/')\n",
    )
    done = traced("import outer\n", **WITH)
    found = imports(done)
    outer, middle, inner = (found[name] for name in ("outer", "middle", "inner"))
    stats = [event for event in done.events("os.stat") if event.parent == inner.call]
    table = interpose_here("report", "--by", "detail", "--format", "json", done.path).stdout
    rows = {row["detail"]: row for row in json.loads(table) if row["kind"] == "import"}

    assert (middle.parent, inner.parent) == (outer.call, middle.call)
    assert outer.wall_ns >= middle.wall_ns + 20e6
    assert middle.cpu_ns - middle.inner_cpu_ns >= 29e6
    assert outer.inner_wall_ns >= middle.wall_ns
    assert "/" in {done.experiment.founder.string(event.detail) for event in stats}
    assert rows["outer"]["wall_ns"] == outer.wall_ns
    assert rows["middle"]["self_cpu_ns"] == middle.cpu_ns - middle.inner_cpu_ns
    assert everything_adds_up(done)


CODES = """
    import sqlite3
    import colorsys
    try:
        import missing
    except ImportError:
        pass
"""


def test_an_import_is_the_natural_profilers_module_load(traced, interpose_here):
    done, without = traced(CODES, **WITH), traced(CODES)

    events = interpose_here("events", "--codes", "natural", "--format", "json", done.path).stdout
    told = [(row["code"], row["event"], row["detail"]) for row in json.loads(events) if row["intrinsic"] == "import"]
    kinds = interpose_here("report", "--by", "kind", "--codes", "natural", done.path).stdout.splitlines()
    assert ("PL", "module load", "colorsys") in told
    assert told[-2:] == [("PL", "module load", "missing"), ("E", "error", "ModuleNotFoundError")]
    assert any(line.split()[:2] == ["PL", "import"] for line in kinds)
    assert '"PL"' not in interpose_here("events", "--codes", "natural", "--format", "json", without.path).stdout


# --- off unless asked for

LOOKED_AT = """
    import importlib, sys
    function = importlib._bootstrap._find_and_load_unlocked
    print(type(function).__mro__)
    import colorsys
"""


def test_nothing_is_in_its_place_unless_asked_for(traced):
    done = traced(LOOKED_AT)
    asked_for_elsewhere = traced(LOOKED_AT, INTERPOSE_LEVELS="system=time,os=count")

    for each in (done, asked_for_elsewhere):
        assert each.stdout == f"{type(parse_kinds).__mro__}\n"
        assert {intrinsic.kind for intrinsic in each.experiment.founder.intrinsics} & {"import"} == set()


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        ({"INTERPOSE_KINDS": "all,import"}, {"import", "file"}),
        ({"INTERPOSE_KINDS": "db,import"}, {"import"}),
        ({"INTERPOSE_LEVELS": "import=time"}, {"import", "file"}),
        ({"INTERPOSE_FILTER": "kind=import"}, {"import"}),
        ({"INTERPOSE_FILTER": "event=PL"}, {"import"}),
        ({"INTERPOSE_FILTER": "event=PL", "INTERPOSE_KINDS": "db"}, {"import"}),
        ({"INTERPOSE_FILTER": "event=D,PL"}, {"import", "db"}),
        ({"INTERPOSE_FILTER": "event=P"}, set()),
        ({"INTERPOSE_FILTER": "kind=-import"}, {"file", "db"}),
        ({"INTERPOSE_FILTER": "kind=import,file", "INTERPOSE_KINDS": "all,import=off"}, {"file"}),
        ({"INTERPOSE_LEVELS": "import=off", **WITH}, {"file", "db"}),
        ({"INTERPOSE_BY": "wrapt", **WITH}, {"db"}),
    ],
)
def test_it_is_asked_for_by_kind_by_name_and_by_a_filter(traced, asked, kinds):
    done = traced("import sqlite3, colorsys\nsqlite3.connect(':memory:')\n", **asked)
    founder = done.experiment.founder
    found = {founder.intrinsic(event.intrinsic).kind for event in done.events()}

    assert done.returncode == 0
    assert kinds <= found
    assert ("import" in found) == ("import" in kinds)
    assert [event.text for event in founder.log.events if event.kind == "warning"] == []


def test_a_control_file_asks_for_it(traced, tmp_path):
    (tmp_path / "control").write_text("FUNCTION=FILTER\nFILTER=EVENT\nEVENT=PL\nFUNCTION=START\nEND-PROFILER\n")
    done = traced("import colorsys\n", INTERPOSE_CONTROL="control")

    assert "colorsys" in imports(done)
    assert done.experiment.founder.log.settings["INTERPOSE_KINDS"] == "all,import"


def test_all_stands_for_the_usual_kinds_and_what_follows_goes_before():
    usual = parse_kinds("all,db")

    assert (usual["file"], usual["logic"], usual["import"]) == ("time", "time", "off")
    assert parse_kinds("all,import") == {**usual, "import": "time"}
    assert parse_kinds("all,file=count,import=count") == {**usual, "file": "count", "import": "count"}
    assert parse_kinds("all=count,db")["net"] == "count"
    assert parse_kinds("import,all")["import"] == "time"
    assert parse_kinds("all") is None
    assert requested("kind=db; event=os.*,PL") == ("import",)
    assert requested("event=P; kind=-import; module=import") == ()


def test_what_is_counted_is_counted_and_not_timed(traced, interpose_here):
    done = traced("import colorsys, sndhdr_that_is_missing\n", INTERPOSE_KINDS="all,import=count")
    founder = done.experiment.founder
    counted = {founder.intrinsic(number).name: count for number, count in founder.counts.items()}

    assert done.returncode == 1
    assert done.events("import") == []
    assert counted["import"] >= 2
    assert everything_adds_up(done)


BUSY = """
    import os
    print(os.getpid(), flush=True)
    while not os.path.exists("enough"):
        os.stat("/")
"""


@pytest.fixture
def busy(tmp_path):
    """Start a program that calls until it is enough, with such variables; gives its experiment."""
    started = []

    def start(source=BUSY, **variables):
        words = [sys.executable, "-c", textwrap.dedent(source)]
        variables = environment(INTERPOSE="1", INTERPOSE_NAME=f"busy{len(started)}", **variables)
        process = subprocess.Popen(words, cwd=tmp_path, env=variables, stdout=subprocess.PIPE, text=True)
        started.append(process)
        process.stdout.readline()
        return str(next(tmp_path.glob(f"busy{len(started) - 1}*.er")))

    yield start
    (tmp_path / "enough").touch()
    for process in started:
        process.communicate(timeout=60)


def test_a_running_program_without_imports_is_told_how_to_have_them(busy, interpose_here):
    without, having = busy(), busy(**WITH)

    refused = interpose_here("control", without, "filter", "kind=import")
    partly = interpose_here("control", without, "filter", "event=PL,os.stat")
    begun = interpose_here("control", having, "filter", "event=PL")
    line = "calls of the kind import are not recorded in {}; begin the program with INTERPOSE_KINDS=all,import"
    line = line.format(os.path.basename(without))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.splitlines()[-1] == f"interpose: filter kind=import: {line}"
    assert (partly.returncode, partly.stderr) == (0, f"interpose: filter event=PL,os.stat: {line}\n")
    assert "filter event=PL,os.stat" in interpose_here("control", without).stdout
    assert (begun.returncode, begun.stderr) == (0, "")


STARTING = """
    import os, subprocess, sys, time
    wait = "import os, time\\nprint(1, flush=True)\\nwhile not os.path.exists('enough'): time.sleep(0.01)"
    variables = {**os.environ, "INTERPOSE_KINDS": "all,import"}
    child = subprocess.Popen([sys.executable, "-c", wait], env=variables, stdout=subprocess.PIPE)
    child.stdout.readline()
    print("ready", flush=True)
    child.wait()
"""


def test_imports_that_a_descendant_alone_records_can_be_asked_for_while_it_runs(busy, interpose_here):
    asked = interpose_here("control", busy(STARTING), "filter", "kind=import")

    assert (asked.returncode, asked.stderr) == (0, "")


def test_what_we_import_ourselves_is_no_import_of_the_program(traced):
    done = traced("import colorsys, interpose\ninterpose.sample('end')\n", INTERPOSE="calls,lines,coverage", **WITH)

    assert {name for name in imports(done) if name.startswith("interpose")} <= {"interpose"}


# --- the program is as it was


def alike(traced, source):
    """A program with its imports recorded, after it was seen that it does the same as without."""
    anew = {"PYTHONDONTWRITEBYTECODE": "1"}  # or the second finds what the first has compiled
    plain = traced(source, INTERPOSE="0", **anew)
    done = traced(source, **WITH, **anew)
    assert (done.stdout, done.stderr, done.returncode) == (plain.stdout, plain.stderr, plain.returncode)
    assert everything_adds_up(done)
    return done


FAILING = {
    "missing_below": "import not_there.at_all\n",
    "no_such_name": "from os import not_there\n",
    "raising": "def work():\n    1 / 0\nwork()\n",
    "wrong_syntax": "def work(:\n",
    "leaving": "import sys\nsys.exit(3)\n",
    "interrupted": "raise KeyboardInterrupt\n",
    "in_a_circle": "from circle import name\n",
    "circle": "import in_a_circle\nin_a_circle.name\n",
    "taken_away": "import sys\ndel sys.modules[__name__]\n",
}


@pytest.mark.parametrize("name", [*FAILING, "not_there"])
@pytest.mark.parametrize("how", ["import {}", "__import__('{}')", "import importlib; importlib.import_module('{}')"])
def test_an_import_that_fails_fails_as_before(traced, tmp_path, name, how):
    write(tmp_path, **FAILING, between=f"import {name}\n")
    source = f"""
        import traceback
        try:
            {how.format(name)}
        except BaseException as error:
            traceback.print_exc(chain=True)
            print(repr(error), getattr(error, "name", None), error.__context__)
        import between
    """

    done = alike(traced, source)

    assert done.returncode != 0
    assert {name, "between"} <= set(errors(done))


def test_warnings_tracebacks_and_frames_are_those_of_the_importing_line(traced, tmp_path):
    write(
        tmp_path,
        warning="import warnings\nwarnings.warn('of the importer', stacklevel=2)\nwarnings.warn('of the module')\n",
        looking="""
            import sys
            frame = sys._getframe()
            while frame:
                print(frame.f_code.co_name, frame.f_lineno)
                frame = frame.f_back
        """,
    )

    alike(
        traced,
        """
        import importlib, sys, warnings
        import warning, looking
        importlib.reload(warning)
        del sys.modules["warning"]
        warnings.simplefilter("error")
        import warning
        """,
    )


@pytest.mark.parametrize("of", ["settrace", "setprofile"])
def test_a_debugger_sees_the_same_frames(traced, tmp_path, of):
    write(tmp_path, outer="import inner\n", inner="value = 1\n", wrong="1 / 0\n")

    alike(
        traced,
        f"""
        import sys
        seen = []
        def see(frame, event, argument):
            seen.append((event, frame.f_code.co_name, frame.f_lineno))
            return see
        sys.{of}(see)
        import outer
        try:
            import wrong
        except ZeroDivisionError:
            pass
        sys.{of}(None)
        print(*seen, sep="\\n")
        """,
    )


def test_the_limit_of_recursion_is_reached_as_before(traced, tmp_path):
    chain = {f"deep{number}": f"import deep{number + 1}\n" for number in range(60)}
    write(tmp_path, **chain, deep60="")

    alike(
        traced,
        """
        import sys
        def reached(limit):
            sys.setrecursionlimit(limit)
            try:
                import deep0
                return "whole"
            except RecursionError as error:
                return str(error)
            finally:
                sys.setrecursionlimit(1000)
                for name in [name for name in sys.modules if name.startswith("deep")]:
                    del sys.modules[name]
        print([reached(limit) for limit in range(40, 500, 17)])
        """,
    )


def test_of_a_deep_chain_the_innermost_are_lost_and_counted(traced, tmp_path):
    write(tmp_path, **{f"deep{number}": f"import deep{number + 1}\n" for number in range(60)}, deep60="print('end')\n")

    done = alike(traced, "import deep0\nimport colorsys\n")

    (main,) = [thread for thread in done.experiment.founder.threads if thread.record.main]
    assert {"deep0", "deep20", "colorsys"} <= set(imports(done))
    assert "deep60" not in imports(done)
    assert main.record.dropped >= 61 - 39


def test_threads_that_import_the_same_and_in_circles_go_on(traced, tmp_path):
    write(
        tmp_path,
        slow="import time\ntime.sleep(0.1)\nvalue = 1\n",
        one="import time\ntime.sleep(0.05)\nimport other\n",
        other="import time\ntime.sleep(0.05)\nimport one\n",
    )

    done = alike(
        traced,
        """
        import threading
        def all_at_once(*names):
            threads = [threading.Thread(target=__import__, args=(name,)) for name in names]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        all_at_once(*["slow"] * 6)
        all_at_once(*["one", "other"] * 3)
        print("done")
        """,
    )

    founder = done.experiment.founder
    names = [founder.string(event.detail) for event in done.events("import")]
    assert [names.count(name) for name in ("slow", "one", "other")] == [1, 1, 1]


def test_finders_loaders_and_lazy_modules_work_as_before(traced, tmp_path):
    write(tmp_path, later="print('runs')\nvalue = 1\n")

    done = alike(
        traced,
        """
        import importlib.machinery, importlib.util, sys, types
        class Finder:
            def find_spec(self, name, path, target=None):
                print("looks for", name)
                if name in ("made", "old"):
                    return importlib.machinery.ModuleSpec(name, Made() if name == "made" else Old())
                if name == "later":
                    spec = importlib.machinery.PathFinder.find_spec(name, path)
                    spec.loader = importlib.util.LazyLoader(spec.loader)
                    return spec
                if name == "unfound":
                    raise ValueError(name)
        class Made:
            def create_module(self, spec):
                return None
            def exec_module(self, module):
                module.value = 2
        class Old:
            def load_module(self, name):
                return sys.modules.setdefault(name, types.ModuleType(name))
        sys.meta_path.insert(0, Finder())
        import made, later
        print(made.value, type(later).__name__)
        print(later.value, type(later).__name__)
        try:
            import unfound
        except ValueError as error:
            print(error)
        """,
    )

    assert {"made", "later", "unfound"} <= set(imports(done))


def test_a_fork_inside_of_an_import_goes_on_in_both(traced, tmp_path):
    write(
        tmp_path,
        forking="""
            import os
            child = os.fork()
            if child:
                os.waitpid(child, 0)
            import colorsys
            print("parent" if child else "child", flush=True)
        """,
    )

    done = alike(traced, "import forking, os\nif not forking.child:\n    os._exit(0)\nimport chunked\n")

    _, child = done.experiment.processes
    assert {"forking", "colorsys", "chunked"} <= set(imports(done))
    assert "colorsys" in imports(done, child)
    assert "forking" not in imports(done, child)


def test_the_interpreters_own_table_of_imports_is_as_before(tmp_path):
    def table(**variables):
        words = [sys.executable, "-X", "importtime", "-c", "import json.tool"]
        done = subprocess.run(words, env=environment(**variables), cwd=tmp_path, capture_output=True, text=True)
        lines = [line.split("|") for line in done.stderr.splitlines()]
        return [line[-1] for line in lines[[line[-1].strip() for line in lines].index("json.scanner") :]]

    assert table(INTERPOSE="1", **WITH) == table(INTERPOSE="0")


def test_imports_within_transactions_are_a_part_of_them(traced, tmp_path, interpose_here):
    write(tmp_path, wanted_later="import time\ntime.sleep(0.01)\n")
    done = traced(
        """
        import interpose
        for number in range(2):
            with interpose.transaction("order"):
                import wanted_later
                with interpose.transaction("inner"):
                    pass
        """,
        **WITH,
    )
    founder = done.experiment.founder
    shown = json.loads(interpose_here("transactions", "--format", "json", done.path).stdout)
    orders = {row["transaction"]: row for row in shown}["order"]
    names = [founder.string(event.detail) for event in done.events("interpose.transaction")]

    assert names == ["order", "inner"] * 2
    assert orders["count"] == 2
    assert 0 < orders["import_wall_ns"] < orders["response_ns"]
    assert orders["sleep_wall_ns"] >= 10e6
    assert everything_adds_up(done)


def test_an_import_inside_of_a_request_does_not_get_its_name(traced, tmp_path):
    write(
        tmp_path,
        serving="""
            import http.server, threading, urllib.request
            class Handler(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    import colorsys
                    self.send_response(200)
                    self.end_headers()
                def log_message(self, *given):
                    pass
            server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
            thread = threading.Thread(target=server.handle_request)
            thread.start()
            urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/orders").read()
            thread.join()
        """,
    )

    done = traced("import serving\n", **WITH)

    founder = done.experiment.founder
    (request,) = done.events("http.server.BaseHTTPRequestHandler.handle_one_request")
    assert founder.string(request.detail) == "GET /orders"
    assert imports(done)["colorsys"].parent == request.call
    assert "serving" in imports(done)
    assert everything_adds_up(done)


def test_names_of_modules_are_left_out_where_nothing_is_to_be_kept(traced):
    done = traced("import colorsys\n", INTERPOSE_ARGUMENTS="import=nothing", **WITH)

    assert set(imports(done)) == {""}


def test_after_the_recording_the_function_is_as_before(traced):
    done = traced(
        """
        import importlib, interpose
        function = importlib._bootstrap._find_and_load_unlocked
        before = hash(function)
        interpose.stop_process()
        print(type(function) is type(lambda: None), hash(function) == before)
        import colorsys
        """,
        **WITH,
    )

    assert done.stdout == "True True\n"
    assert "colorsys" not in imports(done)
