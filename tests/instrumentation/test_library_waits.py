"""The system library's waits: all of them where that is wanted, else those that were long, the others counted."""

import pytest
from exercises import BY_NAME, assert_program_is_recorded, assert_recorded_as_said, source_of

pytestmark = pytest.mark.alone

LOCKS = {name for name, intrinsic in BY_NAME.items() if intrinsic.lock}


def passed(done):
    """How many calls of the main thread did not wait."""
    return next(thread.record.passed for thread in done.experiment.founder.threads if thread.record.main)


def test_every_call_of_what_may_wait_is_recorded_where_all_are_wanted(traced):
    done = traced(source_of("waits"), INTERPOSE_SYNC="all")

    assert_recorded_as_said(done, "waits")
    assert passed(done) == 0


def test_a_long_wait_is_one_event_and_what_was_free_is_counted(traced):
    done = traced(source_of("waiters"), INTERPOSE_SYNC="30ms")

    assert_recorded_as_said(done, "waiters")
    assert passed(done) >= 4 * 1000


def test_a_held_lock_is_one_event_and_a_free_one_is_counted(traced):
    done = traced(source_of("waiters"))

    assert_recorded_as_said(done, "waiters", LOCKS)
    assert passed(done) >= 4 * 1000


def test_every_wait_of_asyncio_is_recorded_where_all_are_wanted(traced):
    assert_program_is_recorded(traced, "awaited_waits", INTERPOSE_SYNC="all")


def test_a_task_that_did_not_have_to_wait_is_counted(traced):
    done = traced("""
        import asyncio
        async def hold(lock):
            async with lock:
                await asyncio.sleep(0.05)
        async def main():
            lock, orders = asyncio.Lock(), asyncio.Queue()
            for number in range(1000):
                async with lock:
                    await orders.put(number)
                await orders.get()
            await asyncio.gather(*(hold(lock) for _ in range(3)))
        asyncio.run(main())
    """).ended_well()
    waited = done.events("asyncio.Lock.acquire")
    slept = done.events("asyncio.sleep")

    assert passed(done) > 2900
    assert len(done.events("asyncio.Queue.put") + done.events("asyncio.Queue.get")) < 100
    # On a busy machine one of the thousand that found it free may take as long as a wait.
    assert sorted(round(event.wall_ns / 50e6) for event in waited if event.wall_ns > 25e6) == [1, 2]
    assert len({event.task for event in slept}) == 3
    assert all(event.wall_ns >= 50e6 and event.wall_ns - event.inner_wall_ns < 20e6 for event in slept)
