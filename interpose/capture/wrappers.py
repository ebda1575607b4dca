"""Interposes with wrapt: a wrapper replaces a name where the program looks it up.

Like any tracer that wraps, this reaches functions in modules and methods of Python classes, but not methods of C types,
nor references that the program bound earlier. SQLite's types are subclassed, not put in proxies, because C functions
check for them. Calls become the same events as with shims in place.
"""

import sys

import wrapt

from interpose.timing.shims import NotInterposed, Timed, called_by_wrapt

CONNECTION, CURSOR = "sqlite3.Connection.", "sqlite3.Cursor."


class Wrappers:
    """What was wrapped, and its undo."""

    def __init__(self):
        self._undo = []
        self._sqlite_methods: dict[str, dict[str, Timed]] = {CONNECTION: {}, CURSOR: {}}
        self._connection = None

    def wrap(self, intrinsic):
        """Replace an intrinsic by a wrapper. Raises NotInterposed if wrapt does not reach it."""
        for prefix, methods in self._sqlite_methods.items():
            if intrinsic.name.startswith(prefix):
                methods[intrinsic.name.removeprefix(prefix)] = called_by_wrapt(intrinsic)
                return
        owner, name = find(intrinsic)
        original = _attribute(owner, name)
        if isinstance(original, type):
            raise NotInterposed("a wrapper of a type would not be one")
        wrapper = wrapt.FunctionWrapper(original, called_by_wrapt(intrinsic, original))
        if intrinsic.name == "sqlite3.connect":
            wrapper = wrapt.FunctionWrapper(wrapper, self._connect)
        self._put(owner, name, wrapper)

    def restore(self):
        """Restore the originals, except where somebody has wrapped the wrapper since; return how many such there are.
        """
        left = 0
        for owner, name, wrapper, inherited, original in reversed(self._undo):
            if vars(owner).get(name) is not wrapper:
                left += 1
            elif inherited:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
        self._undo.clear()
        return left

    def _put(self, owner, name, wrapper):
        inherited = name not in vars(owner)
        original = None if inherited else vars(owner)[name]
        try:
            setattr(owner, name, wrapper)
        except (TypeError, AttributeError):
            raise NotInterposed("wrapt does not reach it: its type cannot be changed") from None
        self._undo.append((owner, name, wrapper, inherited, original))

    def _connect(self, connect, instance, arguments, keywords):
        """`sqlite3.connect` with a connection whose methods, and whose cursors' methods, are wrapped."""
        if len(arguments) < 6 and "factory" not in keywords:
            self._connection = self._connection or self._connection_type()
            keywords = {**keywords, "factory": self._connection}
        return connect(*arguments, **keywords)

    def _connection_type(self):
        sqlite3 = sys.modules["sqlite3"]
        cursor_type = _subclass(sqlite3.Cursor, self._sqlite_methods[CURSOR])

        def cursor(self, factory=cursor_type):
            return sqlite3.Connection.cursor(self, factory)

        connection_type = _subclass(sqlite3.Connection, self._sqlite_methods[CONNECTION])
        connection_type.cursor = cursor
        return connection_type


def _subclass(base, methods):
    wrapped = {
        name: wrapt.FunctionWrapper(getattr(base, name), timed)
        for name, timed in methods.items()
        if hasattr(base, name)
    }
    return type(base)(base.__name__, (base,), {"__module__": base.__module__, **wrapped})


def publish(intrinsics):
    """The same intrinsics, their targets being where programs look them up."""
    for intrinsic in intrinsics:
        intrinsic.module, intrinsic.qualified = place_of(intrinsic)
    return intrinsics


def find(intrinsic):
    """Where a program looks a published intrinsic up: a module or a class, and the name in it. Raises NotInterposed."""
    *classes, name = intrinsic.qualified.split(".")
    owner: object = sys.modules.get(intrinsic.module)
    for part in classes:
        owner = getattr(owner, part, None)
        owner = owner if isinstance(owner, type) else None
    if owner is None or not hasattr(owner, name):
        raise NotInterposed("no such name where a program would look it up")
    return owner, name


def place_of(intrinsic):
    """The module and the qualified name that a program uses: by the intrinsic's public name, where that says it."""
    private = intrinsic.module.startswith("_") or intrinsic.module in ("posix", "builtins")
    if not private and not intrinsic.name.startswith(f"{intrinsic.module}."):
        return intrinsic.module, intrinsic.qualified
    if not private:
        return intrinsic.module, intrinsic.name.removeprefix(f"{intrinsic.module}.")
    module, dot, qualified = intrinsic.name.partition(".")
    return (module, qualified) if dot else ("builtins", intrinsic.name)


def _attribute(owner, name):
    """What stands under the name, unbound: as the class that has it keeps it."""
    if isinstance(owner, type):
        for each in owner.__mro__:
            if name in vars(each):
                return vars(each)[name]
    return getattr(owner, name)
