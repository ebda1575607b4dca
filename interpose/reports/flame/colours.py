"""The colours of frames: by kind, or by how much more or less time a frame takes than before.

All are light enough for dark text. None tells anything by itself: the text of each frame says the same.
"""

from __future__ import annotations

from interpose.analysis.profile.flame import FlameFrame

INK = "#1b1f24"
BY_KIND = {
    "own": "#ffcf70",
    "library": "#efe3c8",
    "db": "#9ecbff",
    "file": "#8fdcd9",
    "net": "#cdb8f2",
    "process": "#f0b3d9",
    "screen": "#e6d07a",
    "sync": "#f5a9a9",
    "gil": "#f79f7a",
    "sleep": "#c3cad2",
    "idle": "#e3e7eb",
    "logic": "#a6dfb9",
    "system": "#cfc6b8",
    "import": "#d9e29a",
    "other": "#d8d3cb",
}
LESS, ALIKE, MORE = ("#8cbcf0", "#bcd8f6", "#e2eefb"), "#eeeeec", ("#fde6d3", "#f9c49a", "#f29b56")
_STEPS = (0.05, 0.25, 0.6)  # from how much change on, as a part of the larger time
BY_CHANGE = {
    **{f"less{step}": colour for step, colour in zip((3, 2, 1), LESS, strict=True)},
    "alike": ALIKE,
    **{f"more{step}": colour for step, colour in zip((1, 2, 3), MORE, strict=True)},
}
TITLES = {"own": "your code", "library": "libraries", "other": "no code known"}


def class_of(frame: FlameFrame) -> str:
    """The name of a frame's colour."""
    if frame.before_ns is not None:
        return _change(frame.width_ns, frame.before_ns)
    if frame.kind:
        return frame.kind if frame.kind in BY_KIND else "other"
    if not frame.function.object:
        return "other"
    return "own" if frame.function.own else "library"


def _change(now_ns: int, before_ns: int) -> str:
    part = (now_ns - before_ns) / max(now_ns, before_ns, 1)
    step = sum(abs(part) >= least for least in _STEPS)
    return f"{'more' if part > 0 else 'less'}{step}" if step else "alike"


def styles() -> str:
    """The style sheet of the colours."""
    colours = (BY_KIND | BY_CHANGE).items()
    rules = [f".c-{name} rect {{ fill: {colour}; }} .legend .c-{name}::before {{ background: {colour}; }}"
             for name, colour in colours]  # fmt: skip
    return "\n".join([f".flame text {{ fill: {INK}; font: 11px ui-monospace, Menlo, Consolas, monospace; }}",
                      ".flame rect { stroke: #ffffff; stroke-width: .5; }", *rules])  # fmt: skip
