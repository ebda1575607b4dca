"""Imports of modules, each from its lookup until its statements have run or failed.

Python's import calls this for each module that is not loaded yet, whatever loads it. A module's own imports are inside
it.
"""

from interpose.library import Intrinsic

INTRINSICS = [Intrinsic("import", "_frozen_importlib:_find_and_load_unlocked", "import", detail="module")]
