"""The names of threads: which are told, that looking for them runs nothing of the program's, and filters by them."""

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.groupings import thread_label
from interpose.analysis.calls.profile import profile

NAMED = """
    import _thread, os, sys, threading
    from concurrent.futures import ThreadPoolExecutor

    def work():
        os.stat("/")

    def run(thread):
        thread.start()
        thread.join()

    class Computed(threading.Thread):
        @property
        def _name(self):
            if sys._getframe(1).f_code.co_name == "_set_os_name":
                return "given to the system"  # by threading itself, from 3.14 on
            raise SystemExit("was asked for its name")
        @_name.setter
        def _name(self, name):
            pass

    run(threading.Thread(target=work, name="worker 1"))
    run(threading.Thread(target=work, name="wörker"))
    run(threading.Thread(target=work, name="long " * 30))
    run(Computed(target=work))
    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        pool.submit(work).result()
    done = _thread.allocate_lock()
    done.acquire()
    def raw():
        for _ in range(100):
            threading.get_ident()
        work()
        done.release()
    _thread.start_new_thread(raw, ())
    done.acquire()
    def rename():
        threading.current_thread().name = "later"
        work()
    run(threading.Thread(target=rename, name="first"))
    work()
"""


def names(process):
    """The labels of its threads without their numbers, by the threads' numbers."""
    return {thread.number: thread_label(process, thread.number).partition(" ")[2] for thread in process.threads}


def test_threads_are_told_by_the_names_that_they_had_last(traced):
    done = traced(NAMED).ended_well()

    found = sorted(names(done.experiment.founder).values())
    assert found == ["", "", "later", ("long " * 30).strip(), "main", "pool_0", "worker 1", "wörker"]


def test_calls_are_grouped_by_them(traced):
    rows = profile(Analysis(traced(NAMED, INTERPOSE_KINDS="file").experiment), "thread").rows  # locks may be waited for
    stats = {row.labels["thread"].partition(" ")[2]: row.sums.calls for row in rows if row.kind is None}

    assert stats["worker 1"] == stats["wörker"] == stats["pool_0"] == 1


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("thread=worker*", {"worker 1"}),
        ("thread=w?rker", {"wörker"}),
        ("thread=main,pool_?", {"main", "pool_0"}),
        ("thread=" + "long " * 29 + "long?", {("long " * 30).strip()}),
        ("thread=-long*,-main,-first,-w*", {"", "pool_0"}),
    ],
)
def test_a_filter_chooses_them_by_name(traced, text, wanted):
    founder = traced(NAMED, INTERPOSE_FILTER=f"{text}; event=os.stat; function=work").experiment.founder
    known = names(founder)
    blocks = founder.events.blocks()
    calling = {known[event.thread] for block in blocks for event in founder.events.events(block)}

    assert calling == wanted


def test_a_forked_childs_thread_is_its_main_one(traced):
    experiment = traced(
        """
        import os, threading
        def work():
            child = os.fork()
            os.stat("/")
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
        thread = threading.Thread(target=work, name="forks")
        thread.start()
        thread.join()
        """
    ).experiment
    founder, child = experiment.processes

    assert "forks" in names(founder).values()
    assert set(names(child).values()) == {"main"}


def test_they_are_redacted(traced):
    founder = traced(
        """
        import os, threading
        thread = threading.Thread(target=os.stat, args=("/",), name="of alice")
        thread.start()
        thread.join()
        """,
        INTERPOSE_REDACT="alice",
    ).experiment.founder

    assert "of ?" in names(founder).values()


def test_a_name_that_is_computed_by_the_end_is_not_asked_for_and_no_other_thread_gives_its_own(traced):
    done = traced(
        """
        import os, threading
        def work():
            os.stat("/")
            me = threading.current_thread()
            del me._name
            type(me)._name = property(lambda self: os._exit(3))
        class Own(threading.Thread):
            pass
        class Other:
            _name = "other"
            def _delete(self):
                return threading.get_ident()
        def renamed():
            threading.current_thread().name = "last"
            Other()._delete()
            threading.current_thread().name = "very last"
        for thread in Own(target=work, name="first"), threading.Thread(target=renamed, name="second"):
            thread.start()
            thread.join()
        """
    ).ended_well()

    assert sorted(names(done.experiment.founder).values()) == ["first", "main", "very last"]


def test_a_filter_goes_by_the_name_that_a_thread_began_with(traced):
    done = traced(
        """
        import os, threading
        def work():
            threading.current_thread().name = "later"
            os.stat("/")
        thread = threading.Thread(target=work, name="first")
        thread.start()
        thread.join()
        """,
        INTERPOSE_FILTER="thread=first; event=os.stat",
    )

    assert len(done.events("os.stat")) == 1
    assert "later" in names(done.experiment.founder).values()


def test_an_own_function_of_that_name_is_no_thread(traced):
    done = traced(
        """
        import threading
        class Own:
            _name = "own"
            def _set_ident(self):
                del self
                return threading.get_ident()
        class Closed:
            def _set_ident(self):
                return (lambda: self)() and threading.get_ident()
        assert Own()._set_ident() == Closed()._set_ident() == threading.get_ident()
        """
    ).ended_well()

    assert names(done.experiment.founder) == {1: "main"}
