"""Upheld beside other engines on the same rules and the same files. See README.md.

Measurements are on one thread, but where they say otherwise.
"""

import os

# By its name: other engines are measured where Upheld is not installed.
os.environ.setdefault("UPHELD_THREADS", "1")
