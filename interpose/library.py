"""What a library declares: intrinsics, each with its kind and what to keep of its calls; and the search order."""

import sys

from interpose.config.levels import OFF, usual_level

WILD = "*"
SYSTEM = "system"
PROPAGATION = "propagation"  # of its wrappers no call is recorded
TRANSACTION = ("", "is", "continues", "begins", "ends")
TERMINAL = ("", "line", "keys")
# Kinds and their usual levels, by the text of a declaration. These lists are shared: never change them.
_kinds_of: dict[str, tuple[list[str], list[str]]] = {}
_loading = [""]  # the file of the library whose declarations are being made


class Intrinsic:
    """A call to the outside that interpose times.

    `name` is the dotted name that reports show. `target` is the function, method or type's slot, as
    `module:qualified.name`; a type that its module does not export is named in the same way. A `*` in it stands for
    names without a leading underscore: `shop.db:Client.*`.

    `kinds` are the possible kinds of its calls, one word or several. `choice` says how one of several is chosen;
    without it a call has the first kind, or is `idle` inside an idle call.

    `detail` says what to keep of a call, in one of the ways listed in cext/hooks/slot.h. It applies to the argument
    with the number `argument`, not counting the object itself (None: the object; "result": the result), or with the
    name `keyword`. `attribute` is the path of attributes from there to the value to keep (`request.url`); properties
    are never evaluated. For the detail `request` it is two paths, separated by a space: method and URL. A path between
    them leads to where the application is mounted. `bytes` says where the number of moved bytes comes from, and
    `effect` how the call changes what is known about descriptors.

    `waits`: calls that wait for less than the threshold are counted, not recorded. `lock` is the type of lock that is
    taken; a free lock is not recorded. `passes` says how a call that starts a program passes on its environment.
    `layer` is `buffered` for calls that are interposed only on request. `levels` has the level for each kind
    (interpose.config.levels). `by` (`function` or `wrapt`) overrides automatic selection, which interposes C and the
    standard library in place and packages with wrapt.

    `transaction`: a call `is` a transaction, or `continues` that of another thread; or one `begins` with the call or
    `ends` with its end. `route` has paths of attributes; once the call has ended, the first that leads to a text names
    the transaction (`resolver_match.route`).
    `headers` says where the headers of a served request are: `self` for the object, or an argument by its number, and a
    path of attributes from there (`self.scope`). interpose keeps a valid `traceparent` of them, and nothing else.
    `terminal`: a call of the kind screen waits for a user until a `line` is entered (True means the same), or for
    single `keys`.

    `wrapper` is called instead of the function, as wrapper(wrapped, instance, args, kwargs); `wrapped` is the next
    library's version, and in the end the real function. The program sees the wrapper's exceptions only with `raises`.
    It gets the wrapper's result, unless that is None, which counts only with `overrides`.
    """

    __slots__ = (
        "argument",
        "attribute",
        "by",
        "bytes",
        "choice",
        "detail",
        "effect",
        "headers",
        "keyword",
        "kinds",
        "layer",
        "levels",
        "library",
        "lock",
        "module",
        "name",
        "number",
        "order",
        "others",
        "overrides",
        "passes",
        "passes_on",
        "place",
        "qualified",
        "raises",
        "route",
        "sampled",
        "suffix",
        "target",
        "terminal",
        "transaction",
        "waits",
        "wrapper",
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
        transaction="",
        terminal="",
        route="",
        headers="",
        wrapper=None,
        overrides=False,
        raises=False,
    ):
        self.name = name
        self.target = target
        self.module, _, self.qualified = target.partition(":")
        self.kinds, self.levels = _kinds_of.get(kinds) or _known_kinds(kinds)
        self.detail = detail
        self.argument = argument
        self.bytes = bytes
        self.choice = choice or ("nested" if len(self.kinds) > 1 else "")
        self.effect = effect
        self.waits = waits
        self.lock = lock
        self.passes = passes
        self.layer = layer
        self.transaction = transaction
        self.terminal = "line" if terminal is True else terminal or ""
        self.route = route
        self.headers = headers
        self.wrapper = wrapper
        self.overrides = overrides
        self.raises = raises
        self.keyword = keyword
        self.attribute = attribute
        self.by = by
        self.library = ""
        self.number = 0
        self.order = 0
        self.others = ()  # versions of the same target in later libraries, in search order
        self.sampled = False  # the last of its kinds is for transactions that are not sampled
        self.suffix = ""  # of the name, if another intrinsic has the same one
        self.passes_on = ""  # the library whose version the wrapper calls, or `real`
        self.place = _place() if _loading[0] else ""

    def be_as_declared(self):
        """Undo what a recording has set."""
        if self.sampled:
            self.kinds = self.kinds[:-1]
        usual = [usual_level(kind) for kind in self.kinds]
        if self.levels != usual:
            self.levels = usual
        self.module, _, self.qualified = self.target.partition(":")
        self.library = self.suffix = self.passes_on = ""
        self.number = self.order = 0
        self.others = ()
        self.sampled = False

    def be_sampled(self):
        """If its calls are transactions, add a number for those that are not sampled."""
        if self.is_transaction and self.kinds and not self.sampled:
            self.kinds = [*self.kinds, self.kinds[0]]
            self.levels = [*self.levels, self.levels[0]]
            self.sampled = True

    @property
    def is_transaction(self):
        """Whether a call is a transaction, or a part of one in another thread."""
        return self.transaction in ("is", "continues")

    @property
    def is_on_request(self):
        """Whether it is recorded only on request."""
        return bool(self.kinds) and all(usual_level(kind) == OFF for kind in self.kinds)

    @property
    def is_pattern(self):
        """Whether it stands for several targets."""
        return WILD in self.qualified

    def expand(self, patterns, module, names, number):
        """The intrinsics that the patterns, including this one, stand for: see `expand`."""
        return expand(patterns, module, names, number)

    def at(self, module, qualified):
        """The intrinsic for one target that this pattern matches."""
        one = Intrinsic.__new__(Intrinsic)
        for name in Intrinsic.__slots__:
            setattr(one, name, getattr(self, name))
        one.module = module
        one.qualified = qualified
        one.target = f"{module}:{qualified}"
        one.name = _name_of_one(self, qualified)
        return one


def _known_kinds(text: str) -> tuple[list[str], list[str]]:
    kinds = text.split()
    _kinds_of[text] = (kinds, [usual_level(kind) for kind in kinds])
    return _kinds_of[text]


TEXTS = (
    *("name", "detail", "bytes", "choice", "effect", "lock", "passes"),
    *("layer", "keyword", "attribute", "route", "headers", "by", "transaction", "terminal"),
)
YES_OR_NO = ("waits", "overrides", "raises")


def wrong_with(intrinsic):
    """Why a declaration is invalid, in a few words; empty if it is valid, whether or not its target exists."""
    for field in TEXTS:
        if type(getattr(intrinsic, field, None)) is not str:
            return f"its {field} is not text"
    for field in YES_OR_NO:
        if type(getattr(intrinsic, field, None)) not in (bool, int):
            return f"its {field} is not True or False"
    if not intrinsic.name:
        return "it has no name"
    if type(intrinsic.target) is not str or not intrinsic.module or not intrinsic.qualified:
        return f"{str(intrinsic.target)[:200]!r} is not module:name"
    if intrinsic.by not in ("", "function", "wrapt"):
        return f"{intrinsic.by!r} is not a way to interpose"
    if intrinsic.transaction not in TRANSACTION:
        return f"{intrinsic.transaction!r} is not a part of a transaction"
    if intrinsic.terminal not in TERMINAL:
        return f"{intrinsic.terminal!r} is not a way to read a terminal"
    if intrinsic.wrapper is not None and not callable(intrinsic.wrapper):
        return "its wrapper cannot be called"
    return ""


def alike(prefix, target, names, kinds, **what):
    """Intrinsics that differ only in the last part of their names; `prefix` and `target` are what precedes it."""
    return [Intrinsic(prefix + name, target + name, kinds, **what) for name in names.split()]


def resolve(libraries, layers=("raw",), number=1):
    """The intrinsics of the libraries in search order, numbered from `number` on. The first with a target has it.

    `libraries` are pairs of a library's name and its intrinsics; only those of the `layers` are used. An intrinsic has
    as many consecutive numbers as kinds. Versions of the same target in later libraries are its `others`, if they
    matter: for a wrapper, which calls them, and for calls made inside a wrapper. Patterns come last; what they match is
    known when the module is imported.
    """
    if len(libraries) == 1 and libraries[0][0] == SYSTEM:
        return _resolve_system(libraries[0][1], layers, number)
    versions: dict[tuple[str, str], list[Intrinsic]] = {}
    patterns = _declare(libraries, layers, versions)
    declared = [each for found in (*versions.values(), patterns) for each in found]
    wraps_to = max([each.order for each in declared if each.wrapper is not None], default=-1)
    found = [_chain(each, wraps_to) for each in versions.values()]
    return _numbered([*found, *patterns], number)


def _resolve_system(intrinsics, layers, number):
    """The same for the system library alone, the usual case: it has neither wrappers nor patterns."""
    found: dict[tuple[str, str], Intrinsic] = {}
    for intrinsic in intrinsics:
        target = (intrinsic.module, intrinsic.qualified)
        if intrinsic.layer in layers and target not in found:
            intrinsic.library = SYSTEM
            intrinsic.number = number
            number += len(intrinsic.kinds) or 1
            found[target] = intrinsic
    return list(found.values())


def _declare(libraries, layers, versions):
    """Add each declaration to the others of its target; return the patterns, in search order."""
    several = len(libraries) > 1
    by_name = {each.name: each for _, intrinsics in libraries for each in intrinsics} if several else {}
    known = {(each.module, each.qualified) for _, intrinsics in libraries for each in intrinsics} if several else ()
    patterns: list[Intrinsic] = []
    for order, (library, intrinsics) in enumerate(libraries):
        first = len(patterns)
        for intrinsic in intrinsics:
            if intrinsic.layer not in layers:
                continue
            intrinsic.library = library
            intrinsic.order = order
            if intrinsic.is_pattern:
                patterns.append(intrinsic)
                continue
            if several and library != SYSTEM:
                _take_public_name(intrinsic, by_name)
            found = versions.setdefault((intrinsic.module, intrinsic.qualified), [])
            if not found or found[-1].order != order:
                found.append(intrinsic)
        _match(patterns[first:], by_name, known, versions)
    return patterns


def _take_public_name(intrinsic, by_name):
    """Let sqlite3:Cursor.execute mean what another library calls by that name, wherever its target is."""
    other = by_name.get(f"{intrinsic.module}.{intrinsic.qualified}")
    if other is not None and not other.is_pattern:
        intrinsic.module, intrinsic.qualified = other.module, other.qualified


def _match(patterns, by_name, known, versions):
    """Add what the patterns of a library match among all declarations."""
    for pattern in patterns:
        public = f"{pattern.module}.{pattern.qualified}"
        targets = [(each.module, each.qualified) for name, each in by_name.items() if matches(public, name)]
        targets += [each for each in known if each[0] == pattern.module and matches(pattern.qualified, each[1])]
        for target in dict.fromkeys(targets):
            found = versions.setdefault(target, [])
            if WILD not in target[1] and (not found or found[-1].order != pattern.order):
                found.append(pattern.at(*target))
            if not found:
                del versions[target]


def matches(pattern, name):
    """Whether a pattern matches a dotted name, word by word."""
    words, wanted = name.split("."), pattern.split(".")
    return len(words) == len(wanted) and all(map(_matches_word, wanted, words))


def _matches_word(pattern, word):
    first, *rest = pattern.split(WILD)
    if not rest:
        return pattern == word
    if not word.startswith(first) or (word.startswith("_") and not pattern.startswith("_")):
        return False
    at = len(first)
    for part in rest[:-1]:
        at = word.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return len(word) - len(rest[-1]) >= at and word.endswith(rest[-1])


def _chain(found, wraps_to):
    """The first version of a target, with the others if they matter."""
    first = found[0]
    first.others = tuple(found[1:]) if first.order <= wraps_to else ()
    for each, follower in zip(found, [*found[1:], None], strict=True):
        if each.wrapper is not None:
            each.passes_on = follower.library if follower else "real"
    for place, each in enumerate(found):  # a version that calls the next one has a row of its own
        if each.wrapper is not None and each.name in [other.name for other in found[place + 1 :]]:
            each.suffix = f" ({each.library})"
    return first


def _numbered(intrinsics, number):
    for first in intrinsics:
        for each in (first, *first.others):
            each.number = number
            number += len(each.kinds) or 1
    return intrinsics


def expand(patterns, module, names, number):
    """The intrinsics for those undeclared `names` of a module that patterns match, numbered from `number` on."""
    found = []
    for name in names:
        versions = {each.order: each for each in reversed(patterns) if matches(each.qualified, name)}
        if versions:
            found.append(_chain([versions[order].at(module, name) for order in sorted(versions)], max(versions)))
    return _numbered(found, number)


def _name_of_one(pattern, qualified):
    """The public name of one target of a pattern, by the `*` in the pattern's name."""
    shown = pattern.name.split(".")
    words, wanted = qualified.split("."), pattern.qualified.split(".")
    if shown[-len(wanted) :] == wanted:
        return ".".join([*shown[: -len(wanted)], *words])
    if WILD in shown[-1]:
        return ".".join([*shown[:-1], words[-1]])
    return f"{pattern.module}.{qualified}"


def _place():
    """The line of the library that makes a declaration, as `file:line`."""
    depth = 1
    try:
        while sys._getframe(depth).f_code.co_filename != _loading[0]:
            depth += 1
    except ValueError:
        return ""
    return f"{_loading[0]}:{sys._getframe(depth).f_lineno}"


def loading(path):
    """Note that declarations from now on come from the library at `path`; an empty path: from none."""
    _loading[0] = path
