"""What every page has around it: its style and its scripts, and a policy that lets nothing else in."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Sequence
from importlib.resources import files

from interpose.reports.page.markup import Markup, element, joined


def page(title: str, body: Iterable[Markup], styles: Sequence[str], scripts: Sequence[str] = ()) -> str:
    """The text of a page that loads nothing."""
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy(styles, scripts)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        *(Markup(f"<style>{each}</style>") for each in styles),
    ]
    run = (Markup(f"<script>{each}</script>") for each in scripts)
    parts = [element("head", head), element("body", joined([*body, *run]))]
    return f"<!DOCTYPE html>\n{element('html', parts, lang='en')}\n"


def policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """What the page may do: run these scripts and use these styles, identified by their hashes, and nothing else."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {' '.join(map(_hash, styles))}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        ]
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def asset(name: str) -> str:
    """A file of this package, unchanged."""
    return (files("interpose.reports.page") / "assets" / name).read_text(encoding="utf-8")
