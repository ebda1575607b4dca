"""Modules that are imported: each from when it is looked for until its statements have run, or have failed.

Python's import calls this for each module that is not there yet, whatever loads it. What a module imports itself is
inside of it.
"""

from interpose.library import Intrinsic

INTRINSICS = [Intrinsic("import", "_frozen_importlib:_find_and_load_unlocked", "import", detail="module")]
