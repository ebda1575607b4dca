"""Data collectors: what they are told, what they may change, what is verified, and what becomes of those that fail."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.transactions.response_times import transactions
from interpose.experiments.model.experiment import Experiment
from interpose.instrumentation.collectors import Collector, collector, matches
from interpose.reports.screen.sections import SECTIONS, Profiled, told_unasked
from tests.tracing import environment

PROGRAM = """
    import os, sys, threading, time
    def probe(path):
        try:
            os.stat(path)
        except OSError:
            pass
"""
BEFORE = "import interpose, sys\n"


@pytest.fixture
def collected(traced, tmp_path):
    """Run a program's source with a data collector's source in its interpose.d."""

    def run(collecting, source, *arguments, file="interpose_program.py", timeout_s=120, **variables):
        directory = tmp_path / "interpose.d"
        directory.mkdir(exist_ok=True)
        (directory / file).write_text(BEFORE + textwrap.dedent(collecting))
        return traced(textwrap.dedent(PROGRAM) + textwrap.dedent(source), *arguments, timeout_s=timeout_s, **variables)

    return run


def probes(done, prefix="/probe"):
    """Of each call of os.stat of such a path: the path, and what it was identified as."""
    founder = done.experiment.founder
    found = []
    for event in done.events("os.stat"):
        site = next(iter(founder.frames(event.stack)), None)
        if founder.string(event.detail).startswith(prefix):
            found.append((founder.string(event.detail), site))
    return found


def named(done, prefix="/probe"):
    """The same in short: path, module, section, statement, of those that a collector identified."""
    return [(path, site.file, site.function, site.line) for path, site in probes(done, prefix) if site.collector]


def failures(done):
    return [each.why for each in done.experiment.founder.failures]


def rows(done, name):
    table = SECTIONS[name](Profiled(Analysis(Experiment(done.path)))).table
    return [table.values(row) for row in table.rows]


def test_a_collector_is_told_where_the_call_was_made(collected):
    done = collected(
        """
        @interpose.collector
        def told(area):
            if area.function == "probe" and area.work is None:
                area.work = {}
            if area.function == "probe":
                here = sys.modules["__main__"]
                here.seen.append((area.code is here.probe.__code__, area.file == here.__file__, area.line, area.address,
                    area.module, area.base, area.size, area.section, area.statement, area.transaction, area.identifier,
                    area.task, area.thread == here.threading.get_native_id(), area.wall_ns >= area.cpu_ns >= 0,
                    area.work, len(area.scratch)))
        """,
        """
        seen = []
        probe("/probe/1")
        for each in seen:
            print(each)
        """,
    )

    line = done_line(PROGRAM, "os.stat(path)")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"(True, True, {line}, {line}, '__main__', {line - 2}, 5, None, 0, None, '', 0, True, True, {{}}, 256)\n"
    )


def done_line(source, text):
    return next(number for number, line in enumerate(source.splitlines(), 1) if text in line)


def test_what_is_named_is_what_every_report_shows(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "probe":
                area.module, area.section, area.statement = "ORDERS", "SAVE", 120
        """,
        'probe("/probe/1")',
    )

    founder = done.experiment.founder
    ((path, site),) = probes(done)
    (event,) = [each for each in done.events("os.stat") if founder.string(each.detail) == "/probe/1"]
    assert (path, site.file, site.function, site.line, site.own) == ("/probe/1", "ORDERS", "SAVE", 120, True)
    assert site.collector == "collector:group:program"
    assert founder.own_line(event.stack) == site
    assert [each.function for each in founder.frames(event.stack)][1:2] == ["probe"]
    (row,) = [row for row in rows(done, "identified") if row["module"] == "ORDERS"]
    assert (row["section"], row["statement"], row["collector"], row["calls"]) == ("SAVE", 120, "group:program", 1)


def test_all_time_is_accounted_for_whatever_was_identified(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "probe":
                area.module = "ORDERS"
        """,
        """
        import _thread, json.decoder, tempfile
        probe("/probe/1")
        os.stat("/")
        tempfile.gettempdir()
        _thread.start_new_thread(os.mkdir, ("made",))
        while not os.path.exists("made") or _thread._count():
            time.sleep(0.01)
        """,
    )

    found = rows(done, "identified")
    whole = {row["figure"]: row["value"] for row in rows(done, "session")}
    assert sum(row["wall_ns"] for row in found) == whole["run time (of all threads)"]
    assert sum(row["cpu_ns"] for row in found) == whole["CPU time"]
    assert {row["section"] for row in found if row["module"] == ".SYSTEM"} >= {
        ".PYTHON",
        ".STDLIB",
        ".NATIVE",
        ".CODE",
        ".OVERHEAD",
    }
    assert "identified" in told_unasked(Profiled(Analysis(done.experiment)))


def test_a_module_that_does_not_contain_the_place_is_not_recorded(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "probe":
                number = len(sys.modules["__main__"].seen)
                sys.modules["__main__"].seen.append(number)
                area.module = f"M{number}"
                area.base, area.size = [(area.line, 1), (area.line + 1, 9), (area.line - 1, 1), (0, area.line + 1),
                                        (0, 0), (area.line, 0)][number]
        """,
        """
        seen = []
        for number in range(6):
            probe(f"/probe/{number}")
        """,
    )

    assert [(path, module) for path, module, *_ in named(done)] == [("/probe/0", "M0"), ("/probe/3", "M3")]
    assert failures(done) == ["named a module that does not contain the place of the call"]


def test_forcing_is_accepted_for_names_of_its_own_pseudo_sections_alone(collected):
    done = collected(
        """
        @interpose.collector(sections={"COBLIB": ["ILB", "IGZ"], ".TSM": "tsm."})
        def name(area):
            if area.function == "probe":
                number = len(sys.modules["__main__"].seen)
                sys.modules["__main__"].seen.append(number)
                if number < 4:
                    area.force(["COBLIB", ".TSM", "OTHER", "coblib"][number])
                else:
                    area.module = [".COBLIB", ".OTHER", "ILBOMRG", "tsm.disk", "tsmdisk"][number - 4]
        """,
        """
        seen = []
        for number in range(9):
            probe(f"/probe/{number}")
        """,
    )

    assert named(done) == [
        ("/probe/0", ".SYSTEM", ".COBLIB", 0),
        ("/probe/1", ".SYSTEM", ".TSM", 0),
        ("/probe/4", ".SYSTEM", ".COBLIB", 0),
        ("/probe/6", ".SYSTEM", ".COBLIB", 0),
        ("/probe/7", ".SYSTEM", ".TSM", 0),
        ("/probe/8", "tsmdisk", "probe", done_line(PROGRAM, "os.stat(path)")),
    ]
    assert failures(done) == ["forced a name that is in none of its sections"]


def test_modules_that_are_known_by_themselves_are_put_into_pseudo_sections_by_their_prefix(collected, tmp_path):
    (tmp_path / "tsm").mkdir()
    (tmp_path / "tsm" / "__init__.py").touch()
    (tmp_path / "tsm" / "disk.py").write_text("import os\ndef look(path):\n    return os.path.exists(path)\n")

    done = collected(
        """
        @interpose.collector(sections={"TSM": "tsm."})
        def name(area):
            pass
        """,
        """
        import tsm.disk
        tsm.disk.os.stat("/")
        def look(path):
            os.stat(path)
        exec(compile("import os; os.stat('/')", "x", "exec"), {"__name__": "tsm.made"})
        """,
    )

    assert ("/", ".SYSTEM", ".TSM", 0) in named(done, "/")
    assert len([each for each in named(done, "/") if each[0] == "/"]) == 1


@pytest.mark.parametrize(
    "line",
    [
        "area.line = 5",
        "area.task = 1",
        "area.code = None",
        "area.thread = 1",
        "area.address = 0",
        "area.anything = 1",
        "area.module = 5",
        "area.transaction = b'x'",
        "area.base = -1",
        "area.statement = 1 << 40",
    ],
)
def test_what_may_not_be_changed_is_told_once_and_nothing_of_that_call_is_taken(collected, line):
    done = collected(
        f"""
        @interpose.collector
        def name(area):
            if area.function == "probe":
                area.module = "ORDERS"
                {line}
        """,
        """
        probe("/probe/1")
        probe("/probe/2")
        print("goes on")
        """,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "goes on\n", "")
    assert named(done) == []
    (failure,) = done.experiment.founder.failures
    assert failure.library == "collector:group:program"
    assert failure.place.endswith("interpose_program.py:7")
    assert failure.why.startswith("raised ")


def test_an_area_that_was_kept_has_nothing_in_it(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            sys.modules["__main__"].kept = area
        """,
        """
        kept = None
        probe("/probe/1")
        area = kept
        def tried(act):
            try:
                act()
            except ValueError as error:
                print(error)
        tried(lambda: area.module)
        tried(lambda: setattr(area, "module", "x"))
        tried(lambda: area.work)
        """,
    )

    assert done.stdout == "the area of a call that is over\n" * 3
    assert done.returncode == 0


def test_the_area_of_one_before_it_has_nothing_in_it_for_the_next(collected):
    done = collected(
        """
        kept = []
        @interpose.collector
        def first(area):
            kept[:] = [area]
            area.module = "module of line " + str(area.line)
        @interpose.collector
        def second(area):
            try:
                kept[0].module = "other"
            except ValueError:
                pass
            dead = ["q" * 17 + str(number) for number in range(99)]
            raise LookupError
        """,
        """
        probe("/probe/1")
        """,
    )

    (site,) = [site for _, site in probes(done)]
    assert site.file == f"module of line {site.line}"


def test_each_of_several_sees_what_the_one_before_it_left(collected):
    done = collected(
        """
        @interpose.collector
        def first(area):
            if area.function == "probe":
                area.module = "FIRST"
                area.transaction = "one"
                area.identifier = "1"
        @interpose.collector
        def wrong(area):
            if area.function == "probe":
                area.module, area.size = "WRONG", 0
        @interpose.collector
        def second(area):
            if area.function == "probe":
                sys.modules["__main__"].seen = (area.module, area.transaction, area.identifier)
                area.section = "SECOND"
        """,
        """
        probe("/probe/1")
        print(*seen)
        """,
    )

    line = done_line(PROGRAM, "os.stat(path)")
    assert done.stdout == "FIRST one \n"
    assert named(done) == [("/probe/1", "FIRST", "SECOND", line)]


def test_those_that_are_named_run_in_that_order_whatever_programs_they_are_for(collected, tmp_path):
    (tmp_path / "interpose.d").mkdir()
    for name in ("one", "two"):
        (tmp_path / "interpose.d" / f"interpose_{name}.py").write_text(
            f"import interpose\n@interpose.collector(programs=['never'])\ndef name(area):\n    area.module = {name!r}\n"
        )
    two_first = collected("", 'probe("/probe/1")', INTERPOSE_COLLECTORS="two,one")
    unnamed = collected("", 'probe("/probe/1")')
    off = collected("", 'probe("/probe/1")', INTERPOSE_COLLECTORS="off")

    assert [module for _, module, *_ in named(two_first)] == ["one"]
    assert [each.name for each in two_first.experiment.founder.collectors] == [
        "collector:group:two",
        "collector:group:one",
    ]
    assert not unnamed.experiment.founder.collectors
    assert [each.why_not for each in unnamed.experiment.founder.libraries] == ["it declares no data collector"]
    assert not off.experiment.founder.libraries


TRANSACTIONS = """
    @interpose.collector
    def name(area):
        area.transaction = getattr(sys.modules["__main__"], "doing", None)
"""


def counts(done):
    return {row.name: row.sums.calls for row in transactions(Analysis(done.experiment)).rows}


def test_a_transaction_stays_until_another_name_or_none(collected):
    done = collected(
        TRANSACTIONS,
        """
        doing = "first"
        probe("/probe/1")
        time.sleep(0.03)
        probe("/probe/2")
        doing = "second"
        probe("/probe/3")
        time.sleep(0.02)
        probe("/probe/4")
        doing = None
        probe("/probe/5")
        time.sleep(0.01)
        doing = ".batch"
        probe("/probe/6")
        """,
    )

    found = {row.name: row for row in transactions(Analysis(done.experiment)).rows}
    assert {name: row.sums.calls for name, row in found.items()} == {
        "first": 1,
        "second": 1,
        ".batch": 1,
        ".INIT": 1,
        ".IDLE": 1,
    }
    assert found["first"].response_ns >= 30e6
    assert found["second"].response_ns >= 20e6
    assert found[".IDLE"].response_ns >= 10e6
    assert [name for name, row in found.items() if row.is_named] == ["first", "second"]
    whole = {row["figure"]: row["value"] for row in rows(done, "session")}
    assert sum(row.sums.wall_ns for row in found.values()) == whole["run time (of all threads)"]


def test_a_name_that_is_too_long_is_cut_between_letters(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "probe":
                area.transaction, area.section = "12" + "\u20ac" * 50, "1" + "\u00e9" * 100
        """,
        """
        probe("/probe/1")
        """,
    )

    founder = done.experiment.founder
    assert [founder.string(event.detail) for event in done.events("interpose.named")] == ["12" + "\u20ac" * 41]
    assert [function for _, _, function, _ in named(done)] == ["1" + "\u00e9" * 63]


def test_each_thread_has_the_name_that_its_own_calls_got(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "probe":
                area.transaction = sys.modules["__main__"].threading.current_thread().name
        """,
        """
        def run():
            for number in range(20):
                probe(f"/probe/{number}")
                time.sleep(0.0005)
        threads = [threading.Thread(target=run, name=f"T{number}") for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        """,
    )

    assert {name: count for name, count in counts(done).items() if name[0] == "T"} == {
        "T0": 1,
        "T1": 1,
        "T2": 1,
        "T3": 1,
    }


def test_inside_of_a_transaction_that_is_known_it_is_named_and_the_one_around_stays(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "probe":
                area.transaction = sys.modules["__main__"].doing
        """,
        """
        import interpose
        doing = "around"
        probe("/probe/1")
        with interpose.transaction("marked"):
            doing = "inside"
            probe("/probe/2")
        doing = "around"
        probe("/probe/3")
        """,
    )

    assert counts(done) == {"around": 2, "marked": 1, ".INIT": 1}


def test_a_request_that_is_served_is_named_by_what_was_called_in_it(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "probe":
                area.transaction = sys.modules["__main__"].doing
        """,
        """
        import http.client, http.server
        class Shop(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                global doing
                doing = self.path.upper()
                if doing != "/PLAIN":
                    probe("/probe/1")
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()
            def log_message(self, *words):
                pass
        server = http.server.HTTPServer(("127.0.0.1", 0), Shop)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        for path in ("/pay", "/plain", "/pay", "/book"):
            connection = http.client.HTTPConnection(*server.server_address)
            connection.request("GET", path)
            connection.getresponse().read()
            connection.close()
        server.shutdown()
        thread.join()
        """,
    )

    found = counts(done)
    assert {name: found[name] for name in ("/PAY", "/BOOK", "GET /plain")} == {"/PAY": 2, "/BOOK": 1, "GET /plain": 1}


def test_one_per_transaction_is_called_where_transactions_begin_and_end(collected):
    done = collected(
        """
        @interpose.collector(per="transaction")
        def name(area):
            sys.modules["__main__"].seen.append(area.function)
        """,
        """
        import interpose
        seen = []
        def pay():
            with interpose.transaction("pay"):
                probe("/probe/1")
                probe("/probe/2")
        pay()
        pay()
        print(seen)
        """,
    )

    assert done.stdout == "['pay', 'pay']\n"


def test_one_per_site_is_called_once_for_each_place(collected):
    done = collected(
        """
        @interpose.collector(per="site")
        def name(area):
            if area.function == "probe":
                sys.modules["__main__"].seen.append(area.line)
                area.module, area.section, area.statement = "ORDERS", "PROBE", 7
        """,
        """
        seen = []
        for number in range(5):
            probe(f"/probe/{number}")
        print(len(seen))
        """,
    )

    assert done.stdout == "1\n"
    assert named(done) == [(f"/probe/{number}", "ORDERS", "PROBE", 7) for number in range(5)]


def test_the_identifier_is_in_the_session_data_once(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            assert area.identifier == ""
            area.identifier = "Orders 9.2 " + "x" * 100
        """,
        """
        probe("/probe/1")
        probe("/probe/2")
        """,
    )

    shown = [row["shown"] for row in rows(done, "session") if row["figure"] in ("data collector", "subsystem")]
    assert shown == ["group:program  per event, for *", "Orders 9.2 " + "x" * 52]
    assert not failures(done)


def test_one_that_raises_is_told_with_its_line_and_switched_off_after_ten_times(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "probe":
                sys.modules["__main__"].called += 1
                raise KeyError("no such order")
        """,
        """
        called = 0
        for number in range(100):
            probe(f"/probe/{number}")
        print(called)
        """,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "10\n"
    assert failures(done) == ["raised KeyError: 'no such order'", "switched off: it raised an error ten times"]
    assert done.experiment.founder.failures[0].place.endswith("interpose_program.py:7")


def test_one_that_takes_too_much_cpu_time_is_switched_off(collected):
    done = collected(
        """
        import time
        @interpose.collector
        def name(area):
            if area.function == "probe":
                sys.modules["__main__"].called += 1
                until = time.thread_time() + 0.3
                while time.thread_time() < until:
                    pass
        """,
        """
        called = 0
        for number in range(5):
            probe(f"/probe/{number}")
        print(called)
        """,
    )

    assert done.stdout == "1\n"
    assert failures(done) == ["switched off: a call took more than 250 ms of CPU time"]


def test_one_that_is_a_little_slow_at_each_call_is_switched_off(collected):
    done = collected(
        """
        import time
        @interpose.collector
        def name(area):
            if area.function == "probe":
                until = time.thread_time_ns() + 200_000
                while time.thread_time_ns() < until:
                    pass
        """,
        """
        for number in range(600):
            probe(f"/probe/{number}")
        """,
    )

    assert failures(done) == ["switched off: 256 calls took more than 50 us of CPU time each"]


def test_its_time_is_the_recorders_not_the_programs(collected):
    done = collected(
        """
        import time
        @interpose.collector
        def name(area):
            if area.function == "probe":
                time.sleep(0.02)
        """,
        """
        import interpose
        with interpose.transaction("pay"):
            for number in range(5):
                probe(f"/probe/{number}")
        """,
    )

    (pay,) = done.events("interpose.transaction")
    (thread,) = done.experiment.founder.threads
    own = {row["section"]: row for row in rows(done, "identified")}[".OVERHEAD"]
    assert thread.record.own_wall_ns >= 100e6
    assert own["wall_ns"] >= 100e6
    assert pay.inner_wall_ns >= 100e6


@pytest.mark.slow
def test_one_that_keeps_more_and_more_memory_is_switched_off(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            area.work = (area.work, [len(str(area.line))] * 3)
        """,
        """
        for number in range(40_000):
            probe("/probe")
        """,
    )

    assert failures(done) == ["switched off: each call keeps more memory"]


def test_one_that_keeps_very_much_at_once_is_switched_off(collected):
    done = collected(
        """
        calls, kept = 0, []
        @interpose.collector
        def name(area):
            global calls
            calls += 1
            if calls % 1024 == 0:
                kept.append([object() for _ in range(1_100_000)])
        """,
        """
        for number in range(1100):
            probe("/probe")
        """,
    )

    assert failures(done) == ["switched off: a call kept more than 1,000,000 blocks of memory"]


def test_what_a_collector_calls_is_not_recorded(collected):
    done = collected(
        """
        import os
        @interpose.collector
        def name(area):
            os.stat("/")
            with interpose.transaction("never"):
                os.getcwd()
        """,
        """
        import interpose
        probe("/probe/1")
        """,
    )

    founder = done.experiment.founder
    assert [path for path, _ in probes(done, "/") if path == "/"] == []
    assert not done.events("interpose.transaction")
    assert [thread.adds_up for thread in founder.threads] == [True]
    assert not failures(done)


def test_the_program_notices_nothing_of_it(collected):
    source = """
        import ctypes, signal
        def outcome(act):
            try:
                return act()
            except Exception as error:
                return repr(error), error.__context__, error.__traceback__.tb_lineno
        library = ctypes.CDLL(None, use_errno=True)
        print(outcome(lambda: os.stat("/none")))
        print(outcome(lambda: os.open("/none", 0)))
        traced = []
        sys.settrace(lambda frame, what, argument: traced.append((what, frame.f_code.co_name)))
        sys.setprofile(lambda frame, what, argument: traced.append((what, frame.f_code.co_name)))
        probe("/probe/1")
        sys.setprofile(None)
        sys.settrace(None)
        print(traced)
        try:
            raise ValueError("first")
        except ValueError:
            try:
                os.stat("/none")
            except OSError as error:
                print(repr(error.__context__))
        print(sys.exc_info(), sorted(name for name in sys.modules if name.startswith("interpose")) == had)
    """
    had = "had = sorted(name for name in sys.modules if name.startswith('interpose'))\n"
    disturbing = """
        @interpose.collector
        def name(area):
            try:
                raise KeyError
            except KeyError:
                pass
            area.module = "X"
            raise LookupError
    """
    plain = collected("", had + textwrap.dedent(source), INTERPOSE="0")
    done = collected(disturbing, had + textwrap.dedent(source))

    assert (done.stdout, done.stderr, done.returncode) == (plain.stdout, plain.stderr, plain.returncode)
    assert "name" not in done.stdout.split("[(", 1)[1].partition("\n")[0].replace("co_name", "")


def test_what_a_handler_for_a_signal_raises_reaches_the_program(collected):
    done = collected(
        """
        import os, signal
        @interpose.collector
        def name(area):
            if area.function == "probe":
                os.kill(os.getpid(), sys.modules["__main__"].number)
                for _ in range(1000):
                    pass
        """,
        """
        import signal
        class Late(Exception):
            pass
        def handler(number, frame):
            raise Late
        signal.signal(signal.SIGUSR1, handler)
        for number, expected in ((signal.SIGUSR1, Late), (signal.SIGINT, KeyboardInterrupt)):
            try:
                probe("/probe/1")
                for _ in range(1000):
                    pass
            except expected as error:
                print(type(error).__name__)
        """,
    )

    assert (done.stdout, done.stderr) == ("Late\nKeyboardInterrupt\n", "")
    assert not failures(done)


def test_a_forked_child_has_the_collectors_and_names_its_own(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            main = sys.modules["__main__"]
            area.transaction = getattr(main, "doing", None)
            if area.function == "probe":
                area.module = "PID" + str(main.os.getpid() == main.parent)
        """,
        """
        parent = os.getpid()
        doing = "both"
        probe("/probe/1")
        if os.fork() == 0:
            probe("/probe/2")
            os._exit(0)
        os.wait()
        """,
    )

    (child,) = [process for process in done.experiment.processes if process.lineage]
    assert [module for _, module, *_ in named(done)] == ["PIDTrue"]
    events = [event for block in child.events.blocks() for event in child.events.events(block)]
    modules = {next(iter(child.frames(event.stack))).file for event in events if event.stack}
    assert "PIDFalse" in modules
    assert counts(done)["both"] == 2
    assert [thread.adds_up for thread in child.threads] == [True]


def test_one_that_forks_harms_nobody(collected):
    done = collected(
        """
        import os
        @interpose.collector
        def name(area):
            if area.function == "probe":
                if os.fork() == 0:
                    os._exit(0)
                os.wait()
                area.module = "ORDERS"
        """,
        """
        probe("/probe/1")
        probe("/probe/2")
        print("goes on")
        """,
    )

    assert (done.stdout, done.returncode) == ("goes on\n", 0)
    assert [module for _, module, *_ in named(done)] == ["ORDERS", "ORDERS"]
    assert all(thread.adds_up for process in done.experiment.processes for thread in process.threads)


@pytest.mark.parametrize("per", ["event", "transaction", "site"])
def test_one_that_ends_the_recording_and_fails_harms_nobody(collected, per):
    done = collected(
        f"""
        @interpose.collector(per="{per}")
        def name(area):
            if getattr(sys.modules["__main__"], "armed", False):
                interpose.stop_process()
                raise LookupError
        """,
        """
        import interpose
        armed = True
        with interpose.transaction("probing"):
            probe("/probe/1")
        with interpose.transaction("probing"):
            probe("/probe/2")
        print("goes on")
        """,
    )

    assert (done.stdout, done.stderr, done.returncode) == ("goes on\n", "", 0)
    assert [path for path, _ in probes(done)] in ([], ["/probe/1"])


@pytest.mark.parametrize("per", ["event", "transaction", "site"])
@pytest.mark.parametrize("fails", ["pass", "raise LookupError"])
def test_no_other_is_called_after_one_per_site_that_ends_the_recording(collected, per, fails):
    done = collected(
        f"""
        @interpose.collector(per="site")
        def name(area):
            area.section = "FIRST"
            if area.function == "probe":
                interpose.stop_process()
                {fails}
        @interpose.collector(per="{per}")
        def other(area):
            area.section = "OTHER"
        """,
        """
        probe("/probe/1")
        print("goes on")
        """,
    )

    assert (done.stdout, done.stderr, done.returncode) == ("goes on\n", "", 0)
    assert probes(done) == []


def test_awaited_calls_are_identified_too(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "wait":
                area.module, area.statement = "AWAITED", area.line
        """,
        """
        import asyncio
        async def wait(number):
            await asyncio.sleep(0.001 * number)
        async def main():
            await asyncio.gather(*[wait(number) for number in range(1, 4)])
        asyncio.run(main())
        """,
    )

    founder = done.experiment.founder
    sites = [next(iter(founder.frames(event.stack))) for event in done.events("asyncio.sleep")]
    assert [site.file for site in sites] == ["AWAITED"] * 3
    assert not failures(done)


def test_one_that_hangs_is_seen_as_a_call_in_progress(collected, tmp_path):
    done = collected(
        """
        import time
        @interpose.collector
        def name(area):
            if area.function == "probe":
                sys.modules["__main__"].hangs = True
                time.sleep(60)
        """,
        """
        import signal
        hangs = False
        threading.Thread(target=probe, args=("/probe/1",), daemon=True).start()
        while not hangs:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )

    founder = done.experiment.founder
    calls = [call for thread in founder.threads for call in thread.open_calls]
    hung = [call for call in calls if founder.intrinsic(call.intrinsic).name == "interpose.collector"]
    assert [founder.string(call.detail) for call in hung] == ["collector:group:program"]
    assert all(thread.adds_up for thread in founder.threads)


BAD_FILES = {
    "nothing = 1": "it declares no data collector",
    "@interpose.collector\nasync def name(area): pass": (
        "TypeError: a data collector must be a plain function, not a generator or a coroutine function"
    ),
    "@interpose.collector\ndef name(area): yield": (
        "TypeError: a data collector must be a plain function, not a generator or a coroutine function"
    ),
    "interpose.collector(5)": "TypeError: a data collector is a function, not int",
    "@interpose.collector(per='hour')\ndef name(area): pass": (
        "ValueError: per is 'hour', not one of event, transaction, site"
    ),
    "@interpose.collector(sections={str(n): 'p' for n in range(26)})\ndef name(area): pass": (
        "ValueError: 26 pseudo-sections are more than 25"
    ),
    "@interpose.collector(sections={'X' * 32: 'p'})\ndef name(area): pass": (
        f"ValueError: pseudo-section '{'X' * 32}' of 'p': a name has up to 31 letters, a prefix up to 63"
    ),
    "@interpose.collector(programs=[5])\ndef name(area): pass": "ValueError: programs are not texts",
    "@interpose.collector(": "SyntaxError: '(' was never closed",
    "raise SystemExit(3)": "SystemExit: 3",
}


@pytest.mark.parametrize("text", BAD_FILES)
def test_a_collector_that_is_none_is_told_in_one_line_and_the_program_runs(collected, text):
    done = collected(text, 'probe("/probe/1")\nprint("goes on")')

    (library,) = done.experiment.founder.libraries
    assert (done.returncode, done.stdout, done.stderr) == (0, "goes on\n", "")
    assert (library.name, library.why_not) == ("collector:group:program", BAD_FILES[text])
    assert library.place.partition(":")[0].endswith("interpose_program.py")


def test_one_that_others_may_write_to_is_not_run(collected, tmp_path):
    (tmp_path / "interpose.d").mkdir()
    path = tmp_path / "interpose.d" / "interpose_program.py"
    path.write_text("")
    path.chmod(0o666)

    done = collected("print('run')", 'print("goes on")')

    (library,) = done.experiment.founder.libraries
    assert done.stdout == "goes on\n"
    assert library.why_not == f"{path} is writable by others"


def test_what_is_named_and_is_not_there_is_told(traced):
    done = traced("print('goes on')", INTERPOSE_COLLECTORS="nobody,/no/such/file.py")

    found = {library.name: library.why_not for library in done.experiment.founder.libraries}
    assert done.stdout == "goes on\n"
    assert found == {
        "collector:named:nobody": "no such data collector",
        "collector:path:file": "/no: No such file or directory",
    }


def test_a_collector_by_its_path(collected, tmp_path):
    path = tmp_path / "elsewhere.py"
    path.write_text("import interpose\n@interpose.collector\ndef name(area):\n    area.module = 'PATH'\n")

    done = collected("", 'probe("/probe/1")', INTERPOSE_COLLECTORS=str(path))

    assert [module for _, module, *_ in named(done)] == ["PATH"]


def test_only_files_whose_prefix_the_programs_name_begins_with_are_run(collected):
    name = "@interpose.collector\ndef name(area):\n    area.module = 'X'\n"

    begins = collected(name, 'probe("/probe/1")', file="interpose_prog.py")
    other = collected(name, 'probe("/probe/1")', file="interpose_shop.py", INTERPOSE_COLLECTORS="shop")

    assert [each.name for each in begins.experiment.founder.collectors] == ["collector:group:prog"]
    assert [each.name for each in other.experiment.founder.collectors] == ["collector:group:shop"]
    assert not begins.experiment.founder.libraries


@pytest.mark.parametrize(
    ("pattern", "name", "is_one"),
    [
        ("orders*", "orders.py", True),
        ("orders", "orders", True),
        ("*", "", True),
        ("o*s", "orders", True),
        ("o*r*s", "orders", True),
        ("orders*", "my_orders", False),
        ("*_batch", "orders_batch", True),
        ("a*a", "a", False),
    ],
)
def test_patterns_stand_for_programs(pattern, name, is_one):
    assert matches(pattern, name) is is_one


def test_a_program_is_meant_with_its_suffix_or_without():
    declared = Collector(print, programs="orders")

    assert [declared.is_for(name) for name in ("orders.py", "orders", "order")] == [True, True, False]


def test_the_function_stays_what_it_is():
    def name(area):
        return 5

    assert collector(name) is name
    assert collector(per="site", sections={"A": ("b", "c")})(name)(None) == 5
    assert list(name.__interpose_collector__.pairs()) == [("A", "b"), ("A", "c")]


def test_reports_say_what_went_wrong(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            raise KeyError("no such order")
        """,
        """
        for number in range(20):
            probe(f"/probe/{number}")
        """,
    )

    shown = subprocess.run(
        [sys.executable, "-m", "interpose", "report", done.path],
        env={**environment(), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    table = subprocess.run(
        [sys.executable, "-m", "interpose", "profile", "--section", "session", "--format", "json", done.path],
        env=environment(),
        capture_output=True,
        text=True,
    )

    assert "collector:group:program: collector: switched off: it raised an error ten times" in shown.stdout
    assert "data collector" in {row["figure"] for row in json.loads(table.stdout)}
    assert os.path.isdir(done.path)


def test_packages_give_collectors_by_entry_point_once_a_command_has_looked(traced, tmp_path):
    packages = tmp_path / "lib" / "site-packages"
    (packages / "shopping").mkdir(parents=True)
    (packages / "shopping" / "__init__.py").write_text("raise SystemExit('it was imported')")
    (packages / "shopping" / "tracing.py").write_text(
        "import interpose\n"
        "@interpose.collector\ndef other(area):\n    area.module = 'OTHER'\n"
        "@interpose.collector(programs=['program'])\ndef name(area):\n    area.module = 'PACKAGE'\n"
    )
    (packages / "shopping-1.0.dist-info").mkdir()
    (packages / "shopping-1.0.dist-info" / "entry_points.txt").write_text(
        "[interpose.collectors]\nshopping = shopping.tracing:name\n"
    )
    source = textwrap.dedent(PROGRAM) + 'probe("/probe/1")'
    variables = {"PYTHONPATH": str(packages), "XDG_STATE_HOME": str(tmp_path / "state")}

    before = traced(source, **variables)
    subprocess.run([sys.executable, "-m", "interpose", "list"], env=environment(**variables), capture_output=True)
    after = traced(source, **variables)

    assert named(before) == []
    assert [module for _, module, *_ in named(after)] == ["PACKAGE"]
    assert [each.name for each in after.experiment.founder.collectors] == ["collector:package:shopping"]
    assert not after.experiment.founder.libraries


def test_what_was_identified_is_in_a_merged_experiment_too(collected, tmp_path):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "probe":
                area.module, area.section, area.statement, area.transaction = "ORDERS", "SAVE", 120, "pay"
        """,
        'probe("/probe/1")',
    )
    merged = str(tmp_path / "merged.er")

    made = subprocess.run(
        [sys.executable, "-m", "interpose", "consolidate", done.path, "-o", merged],
        env=environment(),
        capture_output=True,
        text=True,
    )

    table = SECTIONS["identified"](Profiled(Analysis(Experiment(merged)))).table
    found = [table.values(row) for row in table.rows]
    assert made.returncode == 0
    assert [(row["module"], row["section"], row["statement"]) for row in found if row["collector"]] == [
        ("ORDERS", "SAVE", 120)
    ]
    assert {row.name for row in transactions(Analysis(Experiment(merged))).rows} >= {"pay", ".INIT"}
