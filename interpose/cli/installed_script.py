"""Why nothing is the program's own: its script lies among the installed packages."""

from __future__ import annotations

from interpose.analysis.recording.installed import packages_of_script
from interpose.experiments.model.process import Process

OWN = "own"  # the value of settings that choose functions


def hint(process: Process, setting: str, wanted: str) -> str:
    """What follows the message that nothing matches `wanted`, with the remedy; empty for other causes."""
    packages = packages_of_script(process) if wanted == OWN else ""
    if not packages:
        return ""
    why = f"the script is in {packages}, so its code counts as a library's"
    return f": {why}; use {setting}=__main__ or name its modules"
