"""Which objects are shown with all functions, as one entry, or by the function that was entered first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from interpose.analysis.calls.calltree import Frame, Function, Node, Tree
from interpose.analysis.calls.functions import rewritten

SHOW, HIDE, API = "show", "hide", "api"
ALL, LIBRARY = "all", "library"


@dataclass
class Folding:
    """How objects are shown: a choice for each, and one for all `others` or for your own code.

    show: every function. hide: the object is one entry, which includes all calls inside it. api: calls between
    functions of such objects belong to the function that was entered first.
    """

    modes: dict[str, str] = field(default_factory=dict)
    own: str = SHOW
    library: str = SHOW

    def set(self, objects: Iterable[str], mode: str) -> None:
        """Show these objects so from now on; `all` are all, `library` those that are not the program's own."""
        for name in objects:
            if name in (ALL, LIBRARY):
                self.library = mode
                self.own = mode if name == ALL else self.own
                self.modes = {} if name == ALL else self.modes
            else:
                self.modes[name] = mode

    def mode_of(self, function: Function) -> str:
        """How the object of a function is shown."""
        return self.modes.get(function.object, self.own if function.own else self.library)

    @property
    def is_plain(self) -> bool:
        """Whether everything is shown."""
        return {*self.modes.values(), self.own, self.library} == {SHOW}

    def folded(self, tree: Tree) -> Tree:
        """The tree as it is shown; total figures do not change."""
        return tree if self.is_plain else rewritten(tree, self._frame)

    def _frame(self, outer: Node, new: Node, frame: Frame) -> Frame | None:
        function = frame.function
        mode = self.mode_of(function) if function.object else SHOW
        if mode == HIDE:
            whole = Frame(Function(f"<{function.object}>", function.object, function.own))
            return None if new.frame == whole else whole
        if mode == API and outer.frame.function.object and self.mode_of(outer.frame.function) == API:
            return None
        return frame
