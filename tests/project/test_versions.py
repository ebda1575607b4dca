"""What a version of Python calls in a way of its own is recorded all the same, or refused in one line."""

import sys
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.every_python

SUBJECT = """
import copy, inspect, sys, types
from interpose.library import Intrinsic
subject = types.ModuleType("subject")
exec('''
class Plain:
    def __init__(self, n=1):
        self.n = n
class Inherits(Plain):
    pass
class Keyed:
    def __init__(self, *, n=1):
        self.n = n
class Renamed:
    def setup(self, n=1):
        self.n = n
    __init__ = setup
''', vars(subject))
sys.modules["subject"] = subject
class Later(subject.Plain):
    pass
def hot(turns):
    for turn in range(turns):
        assert subject.Plain(2).n == 2 and subject.Inherits().n == Later(n=1).n == 1
        subject.Keyed(), subject.Renamed()
def put():
    names = "Plain", "Keyed", "Renamed"
    record(*[Intrinsic(name, f"subject:{name}.__init__", "db", by="function") for name in names])
"""


@pytest.fixture(params=[0, 1000], ids=["new code", "hot code"])
def done(request, recorded):
    """Classes called 100 times, of which CPython knew before how to call them, or not."""
    return recorded(f"{SUBJECT}hot({request.param})\nput()\nhot(100)\n")


def test_an_init_that_is_called_directly_is_recorded_with_those_of_its_subclasses(done):
    assert done.stderr == ""
    assert len(done.events("Plain")) == 300
    assert len(done.events("Keyed")) == 100


@pytest.mark.skipif(sys.version_info < (3, 13), reason="CPython calls no __init__ past its vectorcall yet")
def test_one_of_another_name_is_refused_in_a_line(done):
    intrinsics = ElementTree.parse(f"{done.path}/map.xml").iter("intrinsic")
    (why,) = (each.get("why") for each in intrinsics if each.get("name") == "Renamed")

    assert not done.events("Renamed")
    assert why == "CPython calls such an __init__ directly, past what stands in its place"


def test_such_an_init_stays_a_function_and_is_as_before_when_recording_ends(recorded):
    done = recorded(f"""{SUBJECT}
function = subject.Plain.__init__
def said():
    return [inspect.signature(function), inspect.isfunction(function), isinstance(function, types.FunctionType),
            copy.copy(function) is function, repr(type(function)), function.__doc__, function.__defaults__]
before = said()
put()
hot(100)
during = said()
shims.end()
hot(100)
print(during == before, said() == before, type(function) is types.FunctionType)
""")

    assert (done.stderr, done.stdout) == ("", "True True True\n")
    assert len(done.events("Plain")) == 300
