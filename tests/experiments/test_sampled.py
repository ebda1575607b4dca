"""Samples of threads as they lie in an experiment: each comes back with its stack, and damage is bounded."""


from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.sampled import WAITS, Sampled
from tests.build import START_NS, Build, pack


def sampled(build):
    return Sampled(Experiment(str(build.write())).founder)


def test_samples_come_back_with_their_stacks(tmp_path):
    build = Build(tmp_path / "t.1.er")
    inner = build.sampled_stack(("app.py", 3, "main"), ("app.py", 9, "work"))
    build.thread_sample(START_NS, cpu_ns=5, stack=inner, samples=2)
    build.thread_sample(START_NS + 7, cpu_ns=6, state=WAITS)

    found = sampled(build)
    first, second = found.samples()

    assert [(site.function, site.line) for site in found.frames(first.stack)] == [("work", 9), ("main", 3)]
    assert (first.cpu_ns, first.samples) == (5, 2)
    assert (second.time_ns, second.state, list(found.frames(second.stack))) == (START_NS + 7, WAITS, [])
    assert not found.is_cut(first.stack)


def test_a_process_that_was_not_sampled_has_none(tmp_path):
    found = sampled(Build(tmp_path / "t.1.er"))

    assert not found.is_there
    assert list(found.samples()) == []
    assert list(found.frames(1)) == []


def test_stacks_that_lead_into_themselves_end(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.sampled_stack(("app.py", 3, "main"))
    build.sampled_stacks[0] = pack("STACK", site=1, outer=1)
    build.thread_sample(START_NS, cpu_ns=5, stack=1)

    found = sampled(build)

    assert [site.function for site in found.frames(1)] == ["main"]
    assert [site.function for site in found.frames(2)] == []


def test_a_sample_that_ends_before_it_begins_is_left_out(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.thread_sample(START_NS, cpu_ns=5, last_ns=START_NS - 1)

    assert list(sampled(build).samples()) == []
