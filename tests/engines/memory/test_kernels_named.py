"""No kernel goes untested."""

from __future__ import annotations

import inspect
import re

from tests.engines.memory import test_copying, test_grouping, test_indexkernels, test_kernels
from tests.engines.memory.kernel_rows import MODULE_OF


def test_every_kernel_has_a_test():
    """Each kernel is named in a test, or called by a kernel that is."""
    text = "".join(map(inspect.getsource, (test_kernels, test_indexkernels, test_grouping, test_copying)))
    helpers = {"mix", "same_key", "copy_key", "columns_equal", "hash_columns", "key_of"}
    assert helpers <= MODULE_OF.keys()
    assert {name for name in MODULE_OF.keys() - helpers if not re.search(rf"kernels\.{name}\b", text)} == set()
