"""What a library declares: intrinsics, each with its kind and the detail to keep of its calls."""


class Intrinsic:
    """A call to the outside that is to be timed.

    `target` is `module:qualified.name`, where the C function lies; `name` the public dotted name that reports show.
    `detail` says what is kept of the argument numbered `argument` (counted without the object itself): `statement`
    (SQL without its literals), `descriptor`, or nothing. `bytes` says what tells how much was moved: `result`.
    """

    __slots__ = ("argument", "bytes", "detail", "kind", "library", "module", "name", "number", "qualified")

    def __init__(self, name, target, kind, detail="", argument=0, bytes=""):
        self.name = name
        self.module, _, self.qualified = target.partition(":")
        self.kind = kind
        self.detail = detail
        self.argument = argument
        self.bytes = bytes
        self.library = ""
        self.number = 0


def resolve(libraries):
    """The intrinsics of the libraries in search order, numbered from 1: the first that declares a target has it.

    `libraries` are pairs of a library's name and its intrinsics.
    """
    found: dict[tuple[str, str], Intrinsic] = {}
    for library, intrinsics in libraries:
        for intrinsic in intrinsics:
            target = (intrinsic.module, intrinsic.qualified)
            if target not in found:
                intrinsic.library = library
                intrinsic.number = len(found) + 1
                found[target] = intrinsic
    return list(found.values())
