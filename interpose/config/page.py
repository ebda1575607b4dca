"""The tables of the settings for docs/settings.md and README.md.

`python -m interpose.config.page` prints docs/settings.md, and `python -m interpose.config.page brief` README's table.
"""

from __future__ import annotations

import sys

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


def brief_table() -> str:
    """The rows of README.md, of every setting that is told there in brief."""
    rows = [
        _row(f"`{each.variable}`", f"`{each.option}`", f"`{each.default}`", each.brief)
        for each in schema.SETTINGS
        if each.brief
    ]
    return "".join(f"{row}\n" for row in rows)


def _row(*cells: str) -> str:
    plain = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(plain)} |"


if __name__ == "__main__":
    print(brief_table() if sys.argv[1:] == ["brief"] else page(), end="")
