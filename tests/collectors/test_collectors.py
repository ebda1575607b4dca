"""Data collectors: what they are told, what they may change, what is verified, and what becomes of those that fail."""

import pytest
from collecting import PROGRAM, failures, named, probes, rows

from interpose.analysis.analysis import Analysis
from interpose.reports.screen.sections import profiled, told_unasked


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
    assert "identified" in told_unasked(profiled(Analysis(done.experiment)))


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
