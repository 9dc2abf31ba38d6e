"""No kernel goes untested, and none takes more parameters than a reader can hold."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from tests.engines.memory.joins import test_bulk_copy
from tests.engines.memory.kernels import test_indexes, test_pairs, test_regions, test_rows
from tests.engines.memory.kernels.kernel_rows import MODULE_OF
from tests.engines.memory.storage import test_atom_classes
from tests.helpers.cases import ROOT
from upheld.engines.memory import bytecode, rounds

#: Parameters of a kernel at most. Arrays that belong together come as a tuple.
MOST_PARAMETERS = 12


def test_every_kernel_has_a_test():
    """Each kernel is named in a test, or called by a kernel that is."""
    tests = test_rows, test_pairs, test_regions, test_indexes, test_atom_classes, test_bulk_copy
    text = "".join(map(inspect.getsource, tests))
    helpers = {"mix", "same_key", "copy_key", "columns_equal", "hash_columns"}
    helpers |= {"free_block", "size_class", "slot_of_block", "entry_of_round", "add_in_round"}
    of_indexes = {f"{verb}_{kind}" for verb in ("remove_from", "renumber_in", "link") for kind in ("chains", "blocks")}
    assert "test_rows_are_taken_out_and_renumbered" in text
    helpers |= of_indexes | set(test_regions.KERNELS)  # which are run one by one, with yields
    assert helpers <= MODULE_OF.keys()
    assert {
        name
        for name in MODULE_OF.keys() - helpers
        if not re.search(rf"(kernels|hashing|components|chains_to_blocks)\.{name}\b", text)
    } == set()


def kernels() -> Iterator[tuple[Path, ast.FunctionDef]]:
    """Yield the compiled functions of the memory engine."""
    for file in sorted((ROOT / "src" / "upheld" / "engines" / "memory").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and any(
                ast.unparse(d) in ("kernel", "inner_kernel") for d in node.decorator_list
            ):
                yield file, node


def test_kernels_have_few_parameters():
    """A kernel with many parameters does more than one thing, or gets the arrays of one thing one by one."""
    counted = {f"{file.name}: {kernel.name}": len(kernel.args.args) for file, kernel in kernels()}
    assert len(counted) > 60
    assert {name for name, count in counted.items() if count > MOST_PARAMETERS} == set()


def test_fields_of_records_have_names():
    """The kernels of rounds read no field of a record by a bare number."""
    offsets, files = [], set()
    for file, kernel in kernels():
        if any(file.is_relative_to(package.__path__[0]) for package in (bytecode, rounds)):
            files.add(file.name)
            for node in ast.walk(kernel):
                match node:
                    case ast.Call(func=ast.Name(id="number" | "of_table" | "of_index"), args=[*_, at]):
                        parts = [at.left, at.right] if isinstance(at, ast.BinOp) else []
                        offsets += [ast.unparse(node) for part in parts if isinstance(part, ast.Constant)]
                    case ast.Subscript(slice=ast.Tuple(elts=[_, ast.Constant()])):
                        offsets.append(ast.unparse(node))
    assert offsets == []
    of_strata = {"changes.py", "due.py", "finding.py", "kernel.py", "net.py", "numbers.py", "patterns.py"}
    others = {"agenda.py", "connection_kernel.py"}
    assert files == {"instances.py", "interpreter.py", "many_rules.py", "tables.py"} | of_strata | others
