"""Packages for terminals: what they ask the user, and what they show. What reaches the terminal is among the files."""

from interpose.library import Intrinsic, alike

SESSION = ("prompt_toolkit.PromptSession.", "prompt_toolkit.shortcuts.prompt:PromptSession.")

INTRINSICS = [
    *alike("rich.console.Console.", "rich.console:Console.", "print input", "screen"),
    *alike("click.", "click.termui:", "prompt confirm getchar pause", "screen"),
    Intrinsic("click.echo", "click.utils:echo", "screen"),
    *alike(*SESSION, "prompt prompt_async", "screen"),
]
