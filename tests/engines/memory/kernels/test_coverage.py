"""No kernel goes untested."""

from __future__ import annotations

import inspect
import re

from tests.engines.memory.joins import test_bulk_copy
from tests.engines.memory.kernels import test_indexes, test_rows
from tests.engines.memory.kernels.kernel_rows import MODULE_OF
from tests.engines.memory.storage import test_atom_classes


def test_every_kernel_has_a_test():
    """Each kernel is named in a test, or called by a kernel that is."""
    text = "".join(map(inspect.getsource, (test_rows, test_indexes, test_atom_classes, test_bulk_copy)))
    helpers = {"mix", "same_key", "copy_key", "columns_equal", "hash_columns", "key_of"}
    assert helpers <= MODULE_OF.keys()
    assert {
        name for name in MODULE_OF.keys() - helpers if not re.search(rf"(kernels|hashing|components)\.{name}\b", text)
    } == set()
