"""Decisions about the rules that may be decomposed, by the estimates of what their joins take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from upheld.compiler.hypertrees.acyclicity import join_tree
from upheld.compiler.hypertrees.cost import Choice, Costs, choose
from upheld.compiler.hypertrees.estimates import Statistics
from upheld.compiler.hypertrees.modes import ALL, ALWAYS, AUTO, Decision, Decomposed, is_cyclic
from upheld.compiler.hypertrees.projecting import project_early
from upheld.compiler.hypertrees.rewriting import Nodes, decompose
from upheld.compiler.hypertrees.sharing import share_joins
from upheld.language.core import Atom, Core, Rule

#: Among fewer explicit facts than these, all joins are quick, and looking for decompositions is what would take time.
FEW = 1000

#: A body whose joins are estimated to have no more rows than this is joined in milliseconds however it is done.
SMALL = 20_000

#: Decomposing pays if it is estimated to take this many times fewer rows. On graphs of many shapes the gain in time was
#: seldom below the estimate (`benchmarks/workloads/cycles.py`), but nodes take memory too.
GAIN = 1.2


def decompose_program(
    core: Core, asked: Sequence[Rule], facts: int, statistics: Callable[[Sequence[Atom]], Statistics], mode: str
) -> Decomposed:
    """Return the program with some of the rules `asked` decomposed as `mode` has it.

    `auto` decomposes the cyclic rules for which the estimate says that it pays; `always` all cyclic rules that can be
    decomposed; `all` also the acyclic rules with two atoms or more. `facts` is the number of explicit facts, and
    `statistics` are asked for if these are not few, with the atoms of the rules in question.
    """
    if mode == AUTO and facts < FEW:
        return Decomposed(core, tuple(Decision(rule, False, f"there are few facts, {facts:,}") for rule in asked))
    known = statistics([atom for rule in asked for atom in rule.positive])
    decisions = {rule: _decide(rule, known, mode) for rule in asked}
    nodes = Nodes(core.predicates)
    rules = []
    for rule in core.rules:
        decision = decisions.get(rule)
        if decision is not None and decision.decomposed:
            assert decision.choice is not None, "a decomposition that was not looked for"
            over_nodes = decompose(rule, decision.choice.decomposition, nodes, copied=decision.acyclic)
            rule = project_early(over_nodes, nodes, Costs(rule, known))
        rules.append(rule)
    share_joins(nodes, known)
    if nodes.rules:
        core = replace(core, predicates=core.predicates | nodes.predicates, rules=(*rules, *nodes.rules.values()))
    return Decomposed(core, tuple(decisions.values()))


def _decide(rule: Rule, statistics: Statistics, mode: str) -> Decision:
    if mode == ALL and not is_cyclic(rule):
        choice = _along_join_tree(rule, statistics)
        why = f"{len(choice.decomposition.nodes)} nodes along its join tree"
        return Decision(rule, True, why, choice, acyclic=True)
    if mode == AUTO:
        costs = Costs(rule, statistics)
        if costs.work(costs.body) <= SMALL:
            return Decision(rule, False, f"its joins have few rows, about {costs.work(costs.body):,.0f}")
    choice = choose(rule, statistics, apart=mode in (ALWAYS, ALL))
    if len(choice.decomposition.nodes) == 1:
        return Decision(rule, False, f"joined as it stands it takes the fewest rows, about {choice.cost:,.0f}", choice)
    rows = f"about {choice.cost:,.0f} rows instead of {choice.undecomposed:,.0f}"
    if mode in (ALWAYS, ALL) or choice.undecomposed >= GAIN * choice.cost:
        return Decision(rule, True, rows, choice)
    return Decision(rule, False, f"{rows} would not pay: {GAIN:g} times fewer would", choice)


def _along_join_tree(rule: Rule, statistics: Statistics) -> Choice:
    """Return the join tree of an acyclic body, a node for each atom with variables, as a choice of width 1."""
    costs = Costs(rule, statistics)
    tree = join_tree(costs.hypergraph)
    assert tree is not None, "a cyclic body"
    return Choice(tree, 1, costs.of(tree), costs.work(costs.body), costs.sizes(tree))
