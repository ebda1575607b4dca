"""`python -m interpose`: the same as the command `interpose`."""

import sys

from interpose.cli.main import main

sys.exit(main())
