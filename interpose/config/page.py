"""docs/settings.md, printed by `python -m interpose.config.page`."""

from __future__ import annotations

from interpose.config import schema

PAGE = """\
# Settings

Printed by `python -m interpose.config.page`; the one list is `Settings` in `interpose/config/schema.py`.

`INTERPOSE` switches recording on; the others only narrow it. An option of `interpose run` goes before the
variable, the variable before the file, the file before the default. An empty variable counts as not set. The
bare variable gives the same as `interpose run`.

| variable | option of `interpose run` | in `[tool.interpose]` | default | meaning |
| --- | --- | --- | --- | --- |
{rows}

The file is the nearest `pyproject.toml`, from the working directory upward. Its section is read line by line:
`key = "text"`, a number, `true` or `false`, no more of TOML than that. One key may have a list, `libraries`: see
docs/libraries.md.

You or root must own the file, the directories on the way to it and its links, and nobody else may write to them;
otherwise the file is ignored, and the report says why. The search ends at a directory that somebody else can write.
The same holds for a control file.

```toml
[tool.interpose]
dir = "experiments"
stack-above = "1ms"
```

A value that means nothing is an error that names it: from `interpose run` one line and exit code 2; under the
bare variable the program runs untouched and `interpose doctor` tells why nothing was recorded.

A variable `INTERPOSE_...` that is not a setting is ignored. `interpose run` names it before the program starts,
`interpose doctor` lists it, and the experiment keeps a warning.
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
