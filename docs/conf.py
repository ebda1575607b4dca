"""The documentation site: `tox -e docs` makes it, with the man pages; warnings are errors."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from interpose import __version__

project = "interpose"
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "reference_pages"]
html_theme = "furo"
html_title = f"interpose {__version__}"
exclude_patterns = ["_build"]
# Pages are read in the repository as well: there these links lead to files beside docs/.
myst_url_schemes = {"http": None, "https": None, "mailto": None}
myst_heading_anchors = 3
nitpicky = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
