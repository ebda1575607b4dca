"""docs/settings.md, printed by `python -m interpose.config.page`."""

from __future__ import annotations

from interpose.config import schema

PAGE = """\
# Settings

This page is made by `python -m interpose.config.page` from the list in `interpose/config/schema.py`.

`INTERPOSE` switches recording on; the other settings only narrow it. If a setting is given in several places, an
option of `interpose run` overrides the variable, the variable overrides the file, and the file overrides the default.
An empty variable counts as not set. A duration has a unit (ns, us, ms, s, m, h); 0 needs none. A size has a unit
(B, KiB, MiB, GiB, TiB); without one it is in MiB (`INTERPOSE_HEAP`: KiB).

| variable | option of `interpose run` | in `[tool.interpose]` | default | meaning |
| --- | --- | --- | --- | --- |
{rows}

The file is the nearest `pyproject.toml`, from the working directory upward. interpose reads its section line by line
and knows only `key = "text"`, numbers, `true` and `false`, below a line `[tool.interpose]`. Other forms of TOML, such
as `tool.interpose.name = "shop"`, are invalid settings. One key can have a list: `libraries`
([libraries](libraries.md)).

You or root must own the file, the directories above it and its links, and nobody else may be able to write to them.
Otherwise interpose ignores the file, and the report says why. The search ends at a directory that somebody else can
write to. The same rule applies to control files.

```toml
[tool.interpose]
dir = "experiments"
stack-above = "1ms"
```

If a value is invalid, `interpose run` says so in one line and ends with exit code 2. Under the bare variable the
program runs unrecorded, and `interpose doctor` says why.

If a filter is invalid, or a valid value names something that does not exist, interpose still records the program:
the control file, the group's directory, a library, a data collector, a function (`INTERPOSE_UNSAT`), an intrinsic
(`INTERPOSE_LEVELS`). `interpose run` says so in one line before the program starts. The report has it as a warning,
except for the group's directory and for intrinsics, which may be declared later.

A variable `INTERPOSE_...` that is not a setting is ignored. `interpose run` names it before the program starts,
`interpose doctor` lists it, and the experiment has a warning.
"""


def page() -> str:
    """docs/settings.md."""
    rows = [
        _row(
            f"`{each.variable}`",
            f"`{', '.join(each.options)} {each.form}`",
            f"`{each.key}`",
            f"`{each.default}`",
            each.meaning,
        )
        for each in schema.SETTINGS
    ]
    return PAGE.format(rows="\n".join(rows))


def _row(*cells: str) -> str:
    plain = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(plain)} |"


if __name__ == "__main__":
    print(page(), end="")
