"""What is refused on a version of Python is refused in one line, and the rest is recorded."""

import sys

import pytest

pytestmark = pytest.mark.skipif(sys.version_info < (3, 14), reason="nothing is refused before 3.14")


def test_an_init_that_is_entered_past_its_vectorcall_is_not_interposed(recorded):
    done = recorded("""
        import sys, types
        from interpose.library import Intrinsic
        subject = types.ModuleType("subject")
        exec("class Plain:\\n def __init__(self, n=1):\\n  self.n = n\\n"
             "class Keyed:\\n def __init__(self, *, n=1):\\n  self.n = n\\n", vars(subject))
        sys.modules["subject"] = subject
        def hot(turns):
            for turn in range(turns):
                subject.Plain(), subject.Keyed()
        hot(100)
        record(Intrinsic("Plain", "subject:Plain.__init__", "db", by="function"),
               Intrinsic("Keyed", "subject:Keyed.__init__", "db", by="function"))
        hot(100)
        print(len(vars(subject)))
    """)

    assert done.stderr == ""
    assert len(done.events("Keyed")) == 100
    assert not done.events("Plain")
