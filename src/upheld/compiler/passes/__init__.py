"""From a program as written to the core, one rewrite or check per file, in this order."""

from upheld.language.passes.components import split_components
from upheld.language.passes.disjunction import split_disjunctions
from upheld.language.passes.draft import Draft
from upheld.language.passes.equality import solve_equalities
from upheld.language.passes.equivalences import close_equivalences
from upheld.language.passes.expressions import lift_expressions
from upheld.language.passes.negation import push_negation
from upheld.language.passes.nested.aggregates import lift_aggregates
from upheld.language.passes.nested.groupings import lift_local_bodies
from upheld.language.passes.nulls import guard_nulls
from upheld.language.passes.records import match_records, take_heads_apart
from upheld.language.passes.relations import check_relations
from upheld.language.passes.safety import check_safety
from upheld.language.passes.several_heads import split_heads
from upheld.language.passes.subsumption import select_by_subsumption
from upheld.language.passes.wildcards import name_wildcards

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
