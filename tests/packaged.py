"""A small package of everybody else's, made in a directory for a test."""

from pathlib import Path

SHAPES = '''
"""Functions and classes of every kind."""
import functools

def plain(a, b=2, *rest, c=3, **named):
    """A plain one."""
    return a, b, rest, c, named

def fail(text):
    raise ValueError(text)

def outer(text):
    return inner(text)

def inner(text):
    return text

def decorate(function):
    @functools.wraps(function)
    def decorated(*given, **named):
        return "decorated", function(*given, **named)
    return decorated

@decorate
def shown(a):
    return a

class Caller:
    """What can be called and is not a function."""
    def __call__(self, a):
        return "called", a

caller = Caller()

class Base:
    def __init__(self, name="base"):
        self.name = name

    def method(self, more=1):
        return self.name, more

    @classmethod
    def of_class(cls, more=1):
        return cls.__name__, more

    @staticmethod
    def static(more=1):
        return "static", more

    def inherited(self):
        return "inherited"

    def execute(self, statement, *values, **named):
        return len(values)

    def fetch(self, request):
        return request.method

    @property
    def computed(self):
        return "computed"

class Derived(Base):
    def method(self, more=1):
        return "derived", super().method(more)

class Slotted:
    __slots__ = ("method", "url")
    def __init__(self, method, url):
        self.method, self.url = method, url

class Made:
    def __new__(cls, number=1):
        made = super().__new__(cls)
        made.number = number
        return made

class Empty:
    pass
'''


def make_package(directory: Path, **modules: str) -> None:
    """A package `shapes` in `directory`, with `shapes.things` and further modules."""
    package = directory / "shapes"
    package.mkdir()
    (package / "__init__.py").write_text("from shapes.things import Base, Derived, caller, plain, shown\n")
    (package / "things.py").write_text(SHAPES)
    for name, source in modules.items():
        (package / f"{name}.py").write_text(source)

AWAITED = '''
"""Coroutine functions, asynchronous generators and context managers."""
import asyncio

async def at_once(value=1):
    return value

async def wait(seconds, value=None):
    await asyncio.sleep(seconds)
    return value

async def nest(seconds):
    await wait(seconds)
    return await wait(seconds, "nested")

async def work(turns):
    total = 0
    for turn in range(turns):
        total += sum(range(20000))
        await asyncio.sleep(0.001)
    return total

async def fail(text):
    await asyncio.sleep(0)
    raise ValueError(text)

async def count(end):
    for number in range(end):
        await asyncio.sleep(0.002)
        yield number

async def echo():
    got = None
    while True:
        try:
            got = yield got
        except KeyError as error:
            got = repr(error)

def plainly(seconds):
    return wait(seconds, "plainly")

class Session:
    async def __aenter__(self):
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *error):
        await asyncio.sleep(0)

    async def get(self, value):
        await asyncio.sleep(0.001)
        return value
'''
