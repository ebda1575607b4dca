"""The system library's processes: what is recorded of each call, in the parent and in the child."""

from exercises import assert_program_is_recorded, source_of


def test_every_call_of_a_process_is_recorded_as_it_was(traced):
    assert_program_is_recorded(traced, "processes")


def test_a_child_that_became_another_program_was_last_seen_doing_so(traced):
    done = traced(source_of("processes"))
    last_calls = [
        process.intrinsic(call.intrinsic).name
        for process in done.experiment.processes
        for thread in process.threads
        for call in thread.open_calls
    ]

    assert sorted(last_calls) == ["os.execv", "os.execve"]
