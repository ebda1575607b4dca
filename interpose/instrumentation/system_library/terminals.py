"""Packages for terminals: what they ask the user, and what they show. What reaches the terminal is among the files."""

from interpose.library import Intrinsic, alike

SESSION = ("prompt_toolkit.PromptSession.", "prompt_toolkit.shortcuts.prompt:PromptSession.")

INTRINSICS = [
    *alike("rich.console.Console.", "rich.console:Console.", "print", "screen"),
    *alike("rich.console.Console.", "rich.console:Console.", "input", "screen", terminal="line"),
    *alike("click.", "click.termui:", "prompt confirm", "screen", terminal="line"),
    *alike("click.", "click.termui:", "getchar pause", "screen", terminal="keys"),
    Intrinsic("click.echo", "click.utils:echo", "screen"),
    *alike(*SESSION, "prompt prompt_async", "screen", terminal="line"),
    Intrinsic(
        "prompt_toolkit.input.Vt100Input.read_keys",
        "prompt_toolkit.input.vt100:Vt100Input.read_keys",
        "screen",
        terminal="keys",
    ),
]
