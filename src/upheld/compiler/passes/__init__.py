"""From a program as written to the core, one rewrite or check per file, in this order."""

from upheld.compiler.passes.components import split_components
from upheld.compiler.passes.equality import close_equivalences, solve_equalities
from upheld.compiler.passes.negation import push_negation
from upheld.compiler.passes.nested.aggregates import lift_aggregates
from upheld.compiler.passes.nested.groupings import lift_local_bodies
from upheld.compiler.passes.nulls import guard_nulls
from upheld.compiler.passes.records import match_records, take_heads_apart
from upheld.compiler.passes.relations import check_relations, split_heads
from upheld.compiler.passes.safety import check_safety
from upheld.compiler.passes.subsumption import select_by_subsumption
from upheld.language.disjunction import split_disjunctions
from upheld.language.draft import Draft
from upheld.language.expressions import lift_expressions
from upheld.language.wildcards import name_wildcards

PASSES = (
    check_relations,
    select_by_subsumption,
    close_equivalences,
    split_heads,
    lift_local_bodies,
    push_negation,
    split_disjunctions,
    match_records,
    lift_aggregates,
    check_safety,
    solve_equalities,
    take_heads_apart,
    lift_expressions,
    name_wildcards,
    guard_nulls,
    split_components,
)

__all__ = ["PASSES", "Draft"]
