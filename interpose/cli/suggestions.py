"""Suggestions for unknown names: what the user probably meant."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable

from interpose.config import precedence, schema


def did_you_mean(word: str, known: Iterable[str], prefix: str = "") -> str:
    """`. Did you mean X?`, the one of the `known` names that is most like `word`; empty if none is like it.

    A `prefix` that all of them have says nothing of how alike they are, nor does the end of an experiment's name.
    """
    names = {name.removeprefix(prefix).removesuffix(".er").lower(): name for name in known}
    found = difflib.get_close_matches(word.removeprefix(prefix).removesuffix(".er").lower(), names, n=1)
    return f". Did you mean {names[found[0]]}?" if found else ""


def unknown_variables() -> list[str]:
    """A line for each variable of the environment that looks like a setting and is not one."""
    known = [setting.variable for setting in schema.SETTINGS]
    return [
        f"{name} is not a setting{did_you_mean(name, known, 'INTERPOSE_')}"
        for name in precedence.unknown_variables(os.environ)
    ]
