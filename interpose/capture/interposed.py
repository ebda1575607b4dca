"""What is interposed: the intrinsics of the libraries and the data collectors of this program, at their levels.

The traced program imports this module when it starts, so it imports next to nothing.
"""

import os
import sys

from interpose.config.program import program_name
from interpose.instrumentation import system_library

OUR_MODULES = ("interpose.", "__future__", "cython_runtime", "_cython_")
GROUP = "INTERPOSE_GROUP"  # where the founder found its group's libraries
PACKED = None  # what the system library declares at once, resolved, where the bundle has it (interpose/bundle.py)


def intrinsics_of(wanted, found=None, everything=False, collected=None):
    """The intrinsics to be interposed, in the search order of their libraries; `found` are those besides ours. Where
    there are such, or `everything` is wanted, what we declare of packages is among them; else it is declared later.
    Where there are data collectors, `collected`, so is what stands for them. With the usual settings they
    are packed, and only the shims read them (timing/intrinsics.pxi)."""
    if "calls" not in wanted.record:
        return []
    if PACKED and not (found or everything or collected) and _is_as_declared(wanted):
        return PACKED
    from interpose import library

    layers = layers_of(wanted)
    if found or everything:
        every = (library.SYSTEM, [*system_library.every(), *_on_request(wanted, collected)])
        _sample([every, *(found.libraries if found else ())], wanted)
        return at_levels(found.resolve(every, layers) if found else library.resolve([every], layers), wanted)
    ours = (library.SYSTEM, [*system_library.standard(), *_on_request(wanted, collected)])
    _sample([ours], wanted)
    return at_levels(library.resolve([ours], layers), wanted)


def _is_as_declared(wanted):
    """Whether the settings add and change nothing of what is declared."""
    added = wanted.files == "buffered" or wanted.statements or "native" in wanted.record
    return not (added or wanted.one_in or wanted.kinds or wanted.levels or wanted.propagate or wanted.forbidden)


def layers_of(wanted):
    """Which of the layers of files are recorded."""
    return ("raw", "buffered") if wanted.files == "buffered" else ("raw",)


def _sample(libraries, wanted):
    """Have transactions be sampled, where that is wanted."""
    if wanted.one_in:
        for _, intrinsics in libraries:
            for each in intrinsics:
                each.be_sampled()


def _on_request(wanted, collected):
    return [*_of_collectors(collected), *_of_statements(wanted), *_of_native(wanted)]


def _of_collectors(collected):
    if not collected:
        return []
    from interpose.instrumentation.system_library import collected as ours

    return ours.INTRINSICS


def _of_statements(wanted):
    if not wanted.statements:
        return []
    from interpose.instrumentation.system_library import statements as ours

    return ours.INTRINSICS


def _of_native(wanted):
    if "native" not in wanted.record:
        return []
    from interpose.instrumentation import native

    return native.intrinsics()


def at_levels(intrinsics, wanted):
    if not (wanted.kinds or wanted.levels or wanted.propagate or wanted.forbidden):
        return intrinsics
    from interpose.config import levels

    if wanted.kinds or wanted.levels:
        levels.assign(intrinsics, wanted.kinds, wanted.levels)
    if wanted.propagate:
        from interpose.instrumentation import propagation

        propagation.prepare(intrinsics)
    return levels.forbid(intrinsics, wanted.forbidden) if wanted.forbidden else intrinsics


class Packages:
    """What our library declares of packages, read when one of them has been imported; long after our other modules
    have been forgotten, which are there again as long as it takes."""

    def __init__(self, wanted):
        self.names = list(system_library.PACKAGES)
        self._wanted = wanted
        self._declared = set()
        self._modules = {system_library.__name__: system_library}

    def declare(self, package, number):
        """The intrinsics of a package, and of others that are declared beside it, numbered from `number` on."""
        before = set(sys.modules)
        sys.modules.update(self._modules)
        try:
            from interpose import library

            self._modules[library.__name__] = library
            declared = [each for each in system_library.of_packages([package]) if each.target not in self._declared]
        finally:
            for name in set(sys.modules) - before:
                if name.startswith(OUR_MODULES):
                    del sys.modules[name]
        self._declared.update([each.target for each in declared])
        _sample([(library.SYSTEM, declared)], self._wanted)
        found = library.resolve([(library.SYSTEM, declared)], layers_of(self._wanted), number)
        return at_levels(found, self._wanted)


def load_libraries(wanted, places):
    """The libraries other than the system library in these places, loaded; None if there are none, the usual case."""
    found = None if places is None else _load(wanted, places)
    return _with_propagation(found) if wanted.propagate else found


def _load(wanted, places):
    from interpose.instrumentation import libraries

    group = places[0]
    if group and wanted.origins[GROUP] == "default":  # descendants have the same
        wanted.group = wanted.texts[GROUP] = group
        wanted.origins[GROUP] = "found"
        os.putenv(GROUP, group)
    found = libraries.load(wanted, places)
    return found if found.libraries or found.notes else None


def _with_propagation(found):
    """The same, with the library that adds headers before all others."""
    from interpose import library
    from interpose.instrumentation import libraries, propagation

    found = found or libraries.Found()
    found.libraries.insert(0, (library.PROPAGATION, propagation.INTRINSICS))
    return found


def load_collectors(wanted, places):
    """The data collectors of this program in these places, loaded; None if there are none, the usual case."""
    if wanted.collectors == ():
        return None
    if places is None and wanted.collectors is None:
        return None
    from interpose.capture import collecting
    from interpose.timing import shims

    program = program_name(sys.orig_argv).removeprefix("-m ")
    return collecting.find(wanted.collectors, places or ("", "", ""), program, shims.native_collector)
