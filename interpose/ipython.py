"""`%%interpose` in IPython and Jupyter: a cell is a transaction; the table and a flame graph of its calls are below it.

    %load_ext interpose.ipython

If the kernel is not recorded, recording begins with the first such cell, and is paused between cells. The cell's value,
output and exceptions are the same as without.
"""

from __future__ import annotations

import ast
import io
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

    from interpose.analysis.analysis import Analysis
    from interpose.analysis.calls.rows import Row
    from interpose.reports.formats.table import Table
    from interpose.reports.page.markup import Markup

NAME = "notebook"
GROUPINGS = ("site", "intrinsic", "function", "detail", "statement", "file")
ROWS = 20
_WIDTH = 100
AWAITS = (
    "%%interpose cannot run a cell with await at its top level. Start the kernel with INTERPOSE=1, and use "
    'with interpose.transaction("..."):'
)
# A cell that computes for this share of its time is worth a look at its functions.
COMPUTES_SHARE = 0.3

_loaded: dict[int, Magics] = {}


class Done(NamedTuple):
    """A cell that has run: start and end on the monotonic clock, the CPU time of its thread, and the kernel numbers of
    the other threads that existed before; what the cell is called, and its file's name."""

    start_ns: int
    end_ns: int
    cpu_ns: int
    others: frozenset[int]
    title: str
    file: str


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext`."""
    _loaded[id(shell)] = magics = Magics(shell)
    shell.register_magic_function(magics.run, "line_cell", "interpose")


def unload_ipython_extension(shell: Any) -> None:
    """Called by `%unload_ext`: remove the magics, and end the recording if they began it."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("interpose", None)
    _loaded.pop(id(shell)).end()


def _silenceable(function: Any) -> Any:
    """Let IPython hide the value of a cell that ends in a semicolon, as usual."""
    function._ipython_magic_output_can_be_silenced = True
    return function


class Magics:
    """`%interpose` and `%%interpose` of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._is_ours = False

    @_silenceable
    def run(self, line: str, cell: str | None = None) -> Any:
        """Run a cell, or a line, and show its calls: `%%interpose [BY]`, `%interpose STATEMENT`."""
        __tracebackhide__ = True  # by IPython, in the tracebacks of errors in cells
        by = _by(line) if cell is not None else GROUPINGS[0]
        source = line if cell is None else cell
        file, first, last = self._compiled(source)
        title = f"In[{self._number}]"
        shims = self._begin()
        others = frozenset(each.native_id or 0 for each in threading.enumerate()) - {threading.get_native_id()}
        start_ns, start_cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        try:
            with shims.transaction(title):
                exec(first, self._shell.user_ns)
                return eval(last, self._shell.user_ns) if last else None
        finally:
            cpu_ns = time.thread_time_ns() - start_cpu_ns
            self._show(Done(start_ns, time.monotonic_ns(), cpu_ns, others, title, file), by, shims)

    def end(self) -> None:
        """End the recording, if it was begun here."""
        shims = sys.modules.get("interpose.timing.shims")
        if self._is_ours and shims and shims.is_recording():
            from interpose.capture import attached

            attached.end(set(sys.modules), {})
        self._is_ours = False

    @property
    def _number(self) -> int:
        """The number of the cell: `In` has its text. Some versions have the next one in `execution_count` already."""
        return len(self._shell.history_manager.input_hist_parsed) - 1

    def _compiled(self, source: str) -> tuple[str, Any, Any]:
        """The name of the cell's file, the code of all statements, and that of the last one if it is an expression,
        whose value is shown. Raises UsageError of IPython's if it awaits at its top level."""
        compiler = self._shell.compile
        text = self._shell.transform_cell(source)
        name = compiler.cache(text, self._number, raw_code=source)
        tree = self._shell.transform_ast(compiler.ast_parse(text, filename=name))
        value = tree.body.pop().value if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        try:
            first = compiler(ast.Module(tree.body, []), name, "exec")
            return name, first, compiler(ast.Expression(value), name, "eval") if value else None
        except SyntaxError:
            if _awaits(text, name):
                raise _usage_error(AWAITS) from None
            raise

    def _begin(self) -> Any:
        """Record from here on. Raises UsageError of IPython's, in one line, where that cannot be."""
        shims = sys.modules.get("interpose.timing.shims")
        if shims is None or not shims.is_recording():
            shims = _recording()
            self._is_ours = True
        if self._is_ours:
            shims.resume()
        return shims

    def _show(self, done: Done, by: str, shims: Any) -> None:
        """Show the calls of a cell. Nothing of that is recorded, and whatever goes wrong is shown in a line."""
        shims.pause()
        try:
            shown = _shown(os.fsdecode(shims.directory()), done, by)
        except Exception as error:
            shown = {"text/plain": f"interpose: no table: {type(error).__name__}: {error}"}
        finally:
            if not self._is_ours:
                shims.resume()
        self._shell.display_pub.publish(shown)


def _by(line: str) -> str:
    by = line.strip() or GROUPINGS[0]
    if by not in GROUPINGS:
        raise _usage_error(f"%%interpose {by}: one of {', '.join(GROUPINGS)}")
    return by


def _awaits(text: str, name: str) -> bool:
    """Whether code that cannot be compiled can be if it may await at its top level."""
    try:
        compile(text, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError:
        return False
    return True


def _usage_error(text: str) -> Exception:
    """An error of which IPython shows one line."""
    from IPython.core.error import UsageError

    error: Exception = UsageError(text)
    return error


def _recording() -> Any:
    """Begin to record this process, as the environment's settings say. Raises UsageError of IPython's."""
    from interpose.capture import attached
    from interpose.timing import shims

    told: dict[str, Any] = {}
    given = {name: value for name, value in os.environ.items() if name.startswith("INTERPOSE_")}
    answer = attached.begin({"INTERPOSE_NAME": NAME, **given, "INTERPOSE": "1"}, set(sys.modules), told)
    if "experiment" not in answer:
        raise _usage_error(f"not recorded: {answer.get('why')}")
    return shims


def _shown(directory: str, done: Done, by: str) -> dict[str, str]:
    """What is shown of a cell, by its sort: HTML, and text for where there is none."""
    from interpose.reports.formats import text
    from interpose.reports.formats.html import table_element
    from interpose.reports.page.markup import element

    analysis = _analysis(directory, done)
    head, table, hint = _calls(analysis, done, by)
    plain = io.StringIO()
    text.write(table, plain, _WIDTH)
    below = [element("p", hint)] if hint else []
    page = element("div", [element("p", head), table_element(table), *below, *_flame(analysis, done)])
    return {"text/plain": f"{head}\n{plain.getvalue()}{hint}", "text/html": page}


def _analysis(directory: str, done: Done) -> Analysis:
    """The calls of a cell."""
    from interpose.analysis.analysis import Analysis
    from interpose.analysis.calls.selection import NotOfThreads, Within
    from interpose.experiments.metadata.labels import Window
    from interpose.experiments.model.experiment import Experiment

    within = Within([Window(done.start_ns, done.end_ns)])
    return Analysis(Experiment(directory), NotOfThreads(done.others, within))


def _is_ours_or_idle(name: str, kind: str | None) -> bool:
    """Whether a call says nothing of a cell."""
    return kind == "idle" or name.startswith("interpose.")


def _flame(analysis: Analysis, done: Done) -> list[Markup]:
    """The flame graph of a cell's calls, by wall time, in a box that scrolls; none without calls."""
    from interpose.analysis.calls.calltree import calls_of
    from interpose.analysis.profile.flame import WALL, flame_within
    from interpose.reports.flame.drawing import drawing
    from interpose.reports.page.markup import element

    made = flame_within(calls_of(analysis), WALL, done.file, _is_ours_or_idle)
    if not made.total_ns:
        return []
    drawn = drawing(made, f"calls of {done.title}", analysis.experiment.founder.log.cwd, is_alone=True)
    return [element("div", [drawn], style="overflow-x: auto")]


def _calls(analysis: Analysis, done: Done, by: str) -> tuple[str, Table, str]:
    """The calls of a cell, and its code: in a line, as a table, and what to do if it computes, or nothing."""
    from interpose.analysis.calls.profile import profile
    from interpose.reports.formats.units import count, duration
    from interpose.reports.screen.state import completeness, is_well
    from interpose.reports.tables.rows import arranged, profile_table

    made, log = profile(analysis, by), analysis.experiment.founder.log
    code = _code(analysis)
    made.rows = [row for row in made.rows if not _is_ours_or_idle(row.intrinsic or "", row.kind)]
    calls, self_ns = sum(row.sums.calls for row in made.rows), sum(row.sums.self_wall_ns for row in made.rows)
    told = completeness(analysis)
    parts = [
        f"{duration(done.end_ns - done.start_ns)}, CPU {duration(done.cpu_ns)}",
        f"{count(calls, 'call')} {duration(self_ns)}",
        analysis.experiment.name,
        *([] if is_well(told) else [told]),
    ]
    made.rows = [*arranged(made.rows, None, ROWS), code]
    computes = code.sums.self_cpu_ns >= COMPUTES_SHARE * (done.end_ns - done.start_ns)
    return " · ".join(parts), profile_table(made, by, log), _hint(log.recorded) if computes else ""


def _code(analysis: Analysis) -> Row:
    """The code of a cell between its calls: what is in its transaction, and in those that it marks itself."""
    from interpose.analysis.calls.profile import profile
    from interpose.analysis.calls.rows import CODE, closing_row
    from interpose.analysis.transactions.tracking import MARK

    marked = [row.sums for row in profile(analysis, "intrinsic").rows if row.intrinsic == MARK]
    wall_ns, cpu_ns = sum(each.self_wall_ns for each in marked), sum(each.self_cpu_ns for each in marked)
    return closing_row(CODE, wall_ns, cpu_ns, "between calls")


def _hint(recorded: Collection[str]) -> str:
    """How to see the functions that computed."""
    if "profile" in recorded:
        return "See the functions that computed: interpose report --by function"
    return "To see the functions that computed, start the kernel with INTERPOSE=calls,profile"
