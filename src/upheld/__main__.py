"""`python -m upheld` is the command line."""

import sys

from upheld.cli import main

sys.exit(main())
