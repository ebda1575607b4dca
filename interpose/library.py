"""What a library declares: intrinsics, each with its kind and what to keep of its calls."""


class Intrinsic:
    """A call to the outside that is to be timed.

    `name` is the public dotted name that reports show; `target`, as `module:qualified.name`, is where the function, the
    method or the type's slot lies; a type that its module does not show goes by its full name all the same.

    `kinds` are the kinds that its calls can be of, a word or several; `choice` says how one of several is chosen, else
    it is the first, or `idle` inside a call that is idle. `detail` says what is kept of a call: of the argument
    numbered `argument` (counted without the object itself; None is the object), which may be given by the name
    `keyword`, in one of the ways that cext/stubs.h lists. `attribute` is the way from there to what is kept, where that
    is not the argument itself (`request.url`; nothing is kept of what is computed), for `request` two of them with a
    space between. `bytes` is what tells how much was moved, `effect` what the call changes in what is known of
    descriptors.

    `waits`: a call that waited for less than the threshold is counted, not recorded. `lock` is the sort of lock that is
    taken: a free one is passed through. `passes` says of what starts a program how it passes an environment on. `layer`
    is `buffered` for what is interposed on request alone. `by` is how it is interposed, `function` or `wrapt`, where
    that is not to go by what is found: in place what is C's or the standard library's, with wrapt what is a package's.
    `levels` say of each of the kinds what is done at its calls (interpose.levels).
    """

    __slots__ = (
        "argument",
        "attribute",
        "by",
        "bytes",
        "choice",
        "detail",
        "effect",
        "keyword",
        "kinds",
        "layer",
        "levels",
        "library",
        "lock",
        "module",
        "name",
        "number",
        "passes",
        "qualified",
        "waits",
    )

    def __init__(
        self,
        name,
        target,
        kinds,
        detail="",
        argument=0,
        bytes="",
        choice="",
        effect="",
        waits=False,
        lock="",
        passes="",
        layer="raw",
        keyword="",
        attribute="",
        by="",
    ):
        self.name = name
        self.module, _, self.qualified = target.partition(":")
        self.kinds = kinds.split()
        self.detail = detail
        self.argument = argument
        self.bytes = bytes
        self.choice = choice or ("nested" if len(self.kinds) > 1 else "")
        self.effect = effect
        self.waits = waits
        self.lock = lock
        self.passes = passes
        self.layer = layer
        self.keyword = keyword
        self.attribute = attribute
        self.by = by
        self.levels = ["time"] * len(self.kinds)
        self.library = ""
        self.number = 0


def alike(prefix, target, names, kinds, **what):
    """Intrinsics that differ only in their last name: `prefix` and `target` are what stands before it."""
    return [Intrinsic(prefix + name, target + name, kinds, **what) for name in names.split()]


def resolve(libraries, layers=("raw",)):
    """The intrinsics of the libraries in search order, numbered from 1: the first that declares a target has it.

    `libraries` are pairs of a library's name and its intrinsics; of these, those of the `layers` are taken. An
    intrinsic has as many consecutive numbers as kinds.
    """
    found: dict[tuple[str, str], Intrinsic] = {}
    number = 1
    for library, intrinsics in libraries:
        for intrinsic in intrinsics:
            target = (intrinsic.module, intrinsic.qualified)
            if intrinsic.layer in layers and target not in found:
                intrinsic.library = library
                intrinsic.number = number
                number += len(intrinsic.kinds) or 1
                found[target] = intrinsic
    return list(found.values())
