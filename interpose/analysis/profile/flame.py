"""The tree of calls and code as nested frames as wide as their time, of one experiment or of two compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from interpose.analysis.calls.calltree import TRUNCATED, Calls, Frame, Function, Node, Tree
from interpose.analysis.calls.functions import functions_only

WALL, CPU = "wall", "cpu"
FINEST = 4_000  # of the whole: narrower frames are left out
DEEPEST = 400


@dataclass(frozen=True)
class FlameFrame:
    """A function below those that called it, or a recorded call, of the `kind`; `kind` is empty of code.

    `start_ns` is from the left, `width_ns` its time with all below it, `own_ns` its own. `before_ns` is the time of the
    same frame in the other experiment, None without one.
    """

    depth: int
    start_ns: int
    width_ns: int
    own_ns: int
    function: Function
    kind: str
    before_ns: int | None = None


@dataclass
class Flame:
    """The frames, each behind the one above it; the first is the whole. `gone_ns` is time of the other experiment in
    frames that this one does not have, `left_out` how many frames were too narrow or too deep to be shown."""

    metric: str
    frames: list[FlameFrame] = field(default_factory=list)
    gone_ns: int = 0
    left_out: int = 0

    @property
    def total_ns(self) -> int:
        """The time of all."""
        return self.frames[0].width_ns


def flame(calls: Calls, metric: str, before: Calls | None = None) -> Flame:
    """The frames of `calls`, as wide as their wall or CPU time, beside those of `before`."""
    return _Laying(drawn(calls), metric, drawn(before) if before else None).laid()


def flame_within(calls: Calls, metric: str, file: str, leave_out: Callable[[str, str], bool]) -> Flame:
    """The same of the calls that the code of `file` led to, without what called that code. `leave_out` says, by name
    and kind, which calls do not count; what is around them is left out, too."""
    tree = drawn(calls)
    made = Tree(tree.figures)
    for node in tree.nodes:
        if node.own and not leave_out(node.frame.function.name, tree.figures.kind_of(node.own)):
            path = _path(node)
            functions = [each.frame.function for each in path]
            begins = [place for place, each in enumerate(functions) if each.object == file]
            ours = [place + 1 for place, each in enumerate(functions) if leave_out(each.name, "")]
            made.add(_inside_all(made, path[max(begins[:1] or ours, default=0) :]), node.own)
    return _Laying(made, metric, None).laid()


def folded(calls: Calls, metric: str) -> Iterator[tuple[list[Function], int]]:
    """Each stack that has time of its own, from the outermost function inward, and that time in nanoseconds."""
    tree, place = drawn(calls), _place(metric)
    for node in tree.nodes:
        if node.own and node.own[place]:
            yield [each.frame.function for each in _path(node)], node.own[place]


def drawn(calls: Calls) -> Tree:
    """The tree by function. Calls with stacks that end early are put below the callers of their outermost function, if
    all samples of that function have the same callers."""
    tree = functions_only(calls.tree)
    early = tree.root.inner.get(Frame(TRUNCATED))
    if early is None:
        return tree
    known = _known_places(tree, early)
    made = Tree(tree.figures)
    new = {tree.root: made.root}
    for node in tree.nodes[1:]:
        assert node.outer is not None
        place = known.get(node.frame) if node.outer is early else None
        above = _inside_all(made, _path(place)[:-1]) if place else new[node.outer]
        is_emptied = node is early and all(frame in known for frame in early.inner)
        new[node] = above if is_emptied else made.inside(above, node.frame)
        if node.own:
            made.add(new[node], node.own)
    return made


def _known_places(tree: Tree, early: Node) -> dict[Frame, Node]:
    """The node of each function below `early` elsewhere in the tree, if there is exactly one outermost."""
    found: dict[Frame, list[Node]] = {frame: [] for frame in early.inner}
    for node in (each for each in tree.nodes if each.frame in found):
        path = _path(node)
        if path[0] is not early and all(each.frame != node.frame for each in path[:-1]):
            found[node.frame].append(node)
    return {frame: nodes[0] for frame, nodes in found.items() if len(nodes) == 1}


def _inside_all(made: Tree, path: list[Node]) -> Node:
    """The node below all frames of `path`, in the tree that is made."""
    at = made.root
    for node in path:
        at = made.inside(at, node.frame)
    return at


def _place(metric: str) -> int:
    return 1 if metric == CPU else 0


def _path(node: Node) -> list[Node]:
    found: list[Node] = []
    at: Node | None = node
    while at and at.outer:
        found.append(at)
        at = at.outer
    return found[::-1]


class _Laying:
    """Lays the nodes of a tree beside and below each other."""

    def __init__(self, tree: Tree, metric: str, before: Tree | None) -> None:
        self._tree = tree
        self._place = _place(metric)
        self._totals = {node: figures[self._place] for node, figures in tree.totals().items()}
        self._before = before
        self._had = {node: figures[self._place] for node, figures in before.totals().items()} if before else {}
        self._made = Flame(metric)

    def laid(self) -> Flame:
        """All frames that are wide enough."""
        waiting: list[tuple[Node, Node | None, int, int]] = [
            (self._tree.root, self._before.root if self._before else None, 0, 0)
        ]
        while waiting:
            node, other, depth, start_ns = waiting.pop()
            self._made.frames.append(self._frame(node, other, depth, start_ns))
            waiting += reversed(list(self._inner(node, other, depth, start_ns)))
        return self._made

    def _frame(self, node: Node, other: Node | None, depth: int, start_ns: int) -> FlameFrame:
        own = node.own or self._tree.figures.nothing()
        kind = self._tree.figures.kind_of(own)
        before_ns = (self._had[other] if other else 0) if self._before else None
        width_ns = self._totals[node]
        return FlameFrame(depth, start_ns, width_ns, own[self._place], node.frame.function, kind, before_ns)

    def _inner(
        self, node: Node, other: Node | None, depth: int, start_ns: int
    ) -> Iterator[tuple[Node, Node | None, int, int]]:
        """The nodes below `node`, by name, so that two experiments have the same order."""
        there = other.inner if other else {}
        self._made.gone_ns += sum(self._had[each] for frame, each in there.items() if frame not in node.inner)
        for frame in sorted(node.inner, key=lambda frame: frame.function):
            inner = node.inner[frame]
            width_ns = self._totals[inner]
            if width_ns * FINEST >= self._totals[self._tree.root] and width_ns and depth < DEEPEST:
                yield inner, there.get(frame), depth + 1, start_ns
            else:
                self._made.left_out += bool(width_ns)
            start_ns += width_ns
