"""Experiments: the founder and its descendants, the numbers they share, and what is not there."""

import os

import pytest

from interpose.analysis.transactions.tracking import roles_of
from interpose.errors import ExperimentError
from interpose.experiments.format import blocks
from interpose.experiments.metadata.map import Intrinsic
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.stacks import Site
from tests.build import START_NS, Build, event, pack


def families(tmp_path):
    """A founder, a child that it forked, and a program that the child became."""
    founder = Build(tmp_path / "t.1.er")
    write = founder.intrinsic("os.write", "file")
    shared = founder.stack(founder.site("app.py", 1, "main"))
    first = {"strings": len(founder.strings) + 1, "sites": 2, "stacks": 2}
    child = Build(tmp_path / "t.1.er" / "_f1.er", first=first)
    own = child.stack(child.site("child.py", 7, "work"), shared)
    child.block([event(0, 5, intrinsic=write, stack=own)])
    other = Build(tmp_path / "t.1.er" / "_f1_x1.er")
    for build in (founder, child, other):
        build.write()
    return shared, own


def test_a_forked_child_shares_the_numbers_of_its_parent(tmp_path):
    shared, own = families(tmp_path)

    experiment = Experiment(str(tmp_path / "t.1.er"))

    child = experiment.processes[1]
    assert [process.lineage for process in experiment.processes] == ["", "_f1", "_f1_x1"]
    assert [site.line for site in child.frames(own)] == [7, 1]
    assert child.own_line(shared) == Site("app.py", 1, "main", True)
    assert child.intrinsic(1).name == "os.write"
    assert experiment.damages.found == []


def test_forked_children_that_name_nothing_share_what_follows_from_the_intrinsics(tmp_path):
    """Thousands of them would otherwise have it worked out for each, from hundreds of intrinsics."""
    families(tmp_path)

    founder, child, _ = Experiment(str(tmp_path / "t.1.er")).processes

    assert child.numbered_intrinsics is founder.numbered_intrinsics
    assert roles_of(child) is roles_of(founder)


def test_what_a_process_started_is_found_by_its_number(tmp_path):
    families(tmp_path)

    founder, child, other = Experiment(str(tmp_path / "t.1.er")).processes

    assert list(founder.descendants_with(child.log.pid)) == [child]
    assert list(child.descendants_with(child.log.pid)) == [other]
    assert not founder.descendants_with(child.log.pid + 1)


def test_a_program_that_came_by_exec_shares_nothing(tmp_path):
    families(tmp_path)

    other = Experiment(str(tmp_path / "t.1.er")).processes[2]

    assert other.parent is None
    assert other.intrinsic(1).name == "?"


def test_a_descendant_alone_still_knows_its_parents_numbers(tmp_path):
    _, own = families(tmp_path)

    experiment = Experiment(str(tmp_path / "t.1.er" / "_f1.er"))

    assert [process.lineage for process in experiment.processes] == ["_f1"]
    assert [site.line for site in experiment.founder.frames(own)] == [7, 1]


def test_a_child_whose_parent_is_gone_shows_question_marks(tmp_path):
    shared, own = families(tmp_path)
    os.rename(tmp_path / "t.1.er" / "_f1.er", tmp_path / "_f1.er")

    process = Experiment(str(tmp_path / "_f1.er")).founder

    assert [site.file for site in process.frames(own)] == ["child.py"]
    assert process.intrinsic(1).name == "?"
    assert f"_f1.er/stacks: number {shared} is not there" in map(str, process.damages.found)


def test_a_descendant_of_a_later_version_is_noted_and_the_rest_read(tmp_path):
    Build(tmp_path / "t.1.er").write()
    Build(tmp_path / "t.1.er" / "_c1.er", version=9).write()

    experiment = Experiment(str(tmp_path / "t.1.er"))

    assert len(experiment.processes) == 1
    assert [str(each) for each in experiment.damages.found] == [
        "t.1.er/_c1.er/log.xml: format 9; this version reads up to 4"
    ]


def test_a_link_to_a_descendant_is_not_followed(tmp_path):
    Build(tmp_path / "t.1.er").write()
    Build(tmp_path / "elsewhere").write()
    (tmp_path / "t.1.er" / "_f1.er").symlink_to(tmp_path / "elsewhere")

    assert len(Experiment(str(tmp_path / "t.1.er")).processes) == 1


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda path: None, "t.1.er: no such experiment"),
        (lambda path: path.write_text(""), "t.1.er: is a file; an experiment is a directory"),
        (lambda path: path.symlink_to("nowhere.er"), "t.1.er: is a link that leads nowhere"),
        (lambda path: path.symlink_to(path), "t.1.er: is a link that leads nowhere"),
        (lambda path: path.mkdir(), "t.1.er: not an experiment: log.xml is missing"),
        (lambda path: (path / "src").mkdir(parents=True), "t.1.er: not an experiment: log.xml is missing"),
    ],
)
def test_what_is_not_an_experiment_is_refused_by_name(tmp_path, monkeypatch, make, what):
    make(tmp_path / "t.1.er")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ExperimentError) as refused:
        Experiment("t.1.er")

    assert str(refused.value) == what


def test_what_is_missing_of_a_stack_is_noted_for_who_asks_for_it(tmp_path):
    build = Build(tmp_path / "t.1.er")
    sound, torn = build.stack(build.site("app.py", 1, "main")), build.stack(77)
    inside, inside_torn = (build.stack(build.site("app.py", 2, "work"), each) for each in (sound, torn))
    build.write()
    process = Experiment(str(tmp_path / "t.1.er")).founder

    assert process.own_line(inside) == Site("app.py", 2, "work", True)
    assert process.in_rows(10**6) is None
    assert process.damages.found == []
    assert process.own_line(inside_torn) == Site("app.py", 2, "work", True)
    assert [str(each) for each in process.damages.found] == ["t.1.er/sites: number 77 is not there"]


def test_a_stack_that_calls_itself_ends(tmp_path):
    build = Build(tmp_path / "t.1.er")
    site = build.site("/usr/lib/a.py", 3, "f", own=0)
    build.stack(site, 2)
    build.stack(site, 1)

    process = Experiment(str(build.write())).founder

    assert len(list(process.frames(1))) == 1
    assert len(list(process.frames(2))) == 2
    assert str(process.damages.found[0]) == "t.1.er/stacks: stack 1 is called from 2"


def test_numbers_that_are_not_there_are_question_marks_and_noted(tmp_path):
    build = Build(tmp_path / "t.1.er")
    stack = build.stack(77)

    process = Experiment(str(build.write())).founder

    assert process.string(5) == "?"
    assert process.intrinsic(5).kind == "?"
    assert process.own_line(stack) == Site("?", 0, "?", False)
    assert process.own_line(0) is None
    assert [each.place for each in process.damages.found] == [
        "t.1.er/strings",
        "t.1.er/map.xml",
        "t.1.er/sites",
    ]


def test_code_that_was_compiled_without_a_name_of_a_file_is_there(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.sites.append(pack("SITE", function=build.string("<module>"), line=1, own=1))
    build.stack(1)
    process = Experiment(str(build.write())).founder

    assert [*process.frames(1)] == [process.own_line(1)] == [Site("?", 1, "<module>", True)]
    assert process.damages.found == []


def test_files_that_are_not_there_are_noted_and_the_others_read(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.thread()
    build.write()
    (tmp_path / "t.1.er" / "events").unlink()
    (tmp_path / "t.1.er" / "strings").unlink()

    process = Experiment(str(tmp_path / "t.1.er")).founder

    assert list(process.events.blocks()) == []
    assert len(process.threads) == 1
    assert process.string(1) == "?"
    assert "t.1.er/events: is not there" in map(str, process.damages.found)


def test_calls_in_progress_are_those_of_the_table_that_have_not_ended(tmp_path):
    build = Build(tmp_path / "t.1.er")
    calls = [{"start_ns": START_NS, "call": 5}, {"start_ns": 1, "call": 0}, {"start_ns": START_NS, "call": 9}]
    build.thread(open_calls=calls)
    build.thread(open_calls=calls, depth=2**32 - 1)

    process = Experiment(str(build.write())).founder

    assert [[call.call for call in thread.open_calls] for thread in process.threads] == [[5, 9], [5, 9]]
    assert str(process.damages.found[0]) == "t.1.er/threads: thread 2 says it is in 4294967295 calls"


def test_an_experiment_of_the_first_version_is_read_and_has_what_it_has(tmp_path):
    build = Build(tmp_path / "t.1.er", version=1)
    build.thread(recorded=1, passed=77)
    build.block([event(0, 5)])
    log = build.write() / "log.xml"
    log.write_text(log.read_text().replace('name="passed"', 'name="spare_1"'))

    process = Experiment(str(build.directory)).founder

    assert (process.log.version, process.threads[0].record.recorded) == (1, 1)
    assert process.threads[0].record.passed == 0
    assert process.damages.found == []


def test_calls_of_one_intrinsic_may_be_of_several_kinds_also_in_progress(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.intrinsic("time.sleep", "sleep")
    write = build.intrinsic("os.write", "file", "screen", "net", "idle")
    build.thread(open_calls=[{"start_ns": START_NS, "call": 1, "intrinsic": write + 3}])
    build.write()
    child = Build(tmp_path / "t.1.er" / "_f1.er")
    child.write()

    founder, forked = Experiment(str(build.directory)).processes

    numbers = [founder.threads[0].open_calls[0].intrinsic, write, write + 2]
    assert [founder.intrinsic(number) for number in numbers] == [
        Intrinsic("os.write", "idle"),
        Intrinsic("os.write", "file"),
        Intrinsic("os.write", "net"),
    ]
    assert forked.intrinsic(write + 1) == Intrinsic("os.write", "screen")
    assert founder.damages.found == []


def test_a_block_that_was_being_copied_at_the_kill_counts_once(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.block([event(number, 5) for number in range(743)])
    build.block([event(2000, 5)])
    build.block([event(number, 5) for number in range(300)], sequence=1)

    process = Experiment(str(build.write())).founder
    assert process.events is not None
    starts = [each.start_ns for block in process.events.blocks() for each in process.events.events(block)]

    assert len(starts) == len(set(starts)) == 744
    assert [place.offset for place, _ in process.events.heads()] == [0, 65536]


@pytest.mark.parametrize("held_bytes", [0, 2 * 65536, 64 << 20])
def test_every_block_is_given_once_however_few_can_be_held(tmp_path, monkeypatch, held_bytes):
    monkeypatch.setattr(blocks, "HELD_BYTES", held_bytes)
    build = Build(tmp_path / "t.1.er")
    for sequence in (7, 8, 9):
        build.block([event(sequence, 5, thread=sequence)], sequence=sequence, state=1)
    for sequence in range(1, 7):
        build.block([event(sequence, 5, thread=7 + sequence % 3)], sequence=sequence)

    process = Experiment(str(build.write())).founder
    given = [block.head.sequence for block in process.events.blocks()]

    assert sorted(given) == list(range(1, 10))
    assert held_bytes < 64 << 20 or given == list(range(1, 10))


@pytest.mark.parametrize("state", [1, 2, 3])
def test_the_block_that_a_thread_wrote_last_is_given_last(tmp_path, state):
    build = Build(tmp_path / "t.1.er")
    build.block([event(0, 900)], sequence=3, state=state)
    build.block([event(1, 5)], sequence=1)
    build.block([event(9, 5)], sequence=2)

    process = Experiment(str(build.write())).founder

    starts = [row.start_ns - START_NS for block in process.events.blocks() for row in process.events.events(block)]
    assert starts == [1, 9, 0]


def test_a_block_that_says_more_than_it_holds_gives_what_it_holds(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.block([event(0, 5)], used=2**32 - 1)
    build.block([event(0, 5)], magic=7)
    build.block([event(9, 5)])

    process = Experiment(str(build.write())).founder
    counts = [len(block.events) // 88 for block in process.events.blocks()]

    assert counts == [743, 1]
    assert [str(each) for each in process.damages.found] == [
        "t.1.er/events: block 0 says it holds 4294967295 events",
        "t.1.er/events: block 1 is not a block",
    ]
