"""Random programs that combine features: parts with aggregates, records or column types, each in a component.

A component may inherit from another one and have a type as its parameter. A rule outside of all components counts facts
of several parts.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.helpers.programs import aggregates, column_types, records
from tests.helpers.programs.strategies import Case, FactsGiven, Update

Generator = Callable[[Random, int], Case]

#: The name of each kind of part, what makes its programs, the relations that these declare, and types
#: with branches: in a component these would have its name before theirs, also in facts.
PARTS: dict[str, tuple[Generator, dict[str, tuple[str, ...]], str]] = {
    "sums": (aggregates.random_aggregate_case, aggregates.DECLARED, ""),
    "lists": (records.random_record_case, records.DECLARED, records.TYPES),
    "days": (column_types.random_column_case, column_types.DECLARED, ""),
}


def random_combined_case(r: Random, updates: int) -> Case:
    """Return a program of two parts, with updates of the facts of both."""
    lines, facts, counts = [], {}, []
    stream = [Update({}, {}) for _ in range(updates)]
    for name in r.sample(sorted(PARTS), 2):
        generate, declared, types = PARTS[name]
        part = generate(r, updates)
        lines += [types, *instance(name, part.program.removeprefix(types), r.random() < 0.5)]
        facts |= _renamed(part.facts, name)
        for whole, update in zip(stream, part.updates, strict=True):
            whole.deletions.update(_renamed(update.deletions, name))
            whole.insertions.update(_renamed(update.insertions, name))
        counted = r.choice(sorted(relation for relation, types in declared.items() if types))
        counts.append(f"count : {{ {name}.{counted}({', '.join('_' for _ in declared[counted])}) }}")
    lines += [".decl together(n:number)", f"together({' + '.join(counts)})."]
    return Case("\n".join(lines), facts, stream)


def instance(name: str, program: str, inherits: bool) -> list[str]:
    """Return lines that make an instance of a component with a program, which another one may hand down to it."""
    if not inherits:
        return [f".comp Of_{name} {{", program, "}", f".init {name} = Of_{name}"]
    begun = [f".comp Base_{name}<T> {{", program, ".decl unused(x:T)", "}"]
    return [*begun, f".comp Of_{name} : Base_{name}<number> {{", "}", f".init {name} = Of_{name}"]


def _renamed(facts: FactsGiven, name: str) -> FactsGiven:
    return {f"{name}.{relation}": rows for relation, rows in facts.items()}
