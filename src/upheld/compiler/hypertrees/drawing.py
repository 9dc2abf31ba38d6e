"""The decision about a rule, as text: whether it is decomposed, why, and the tree of its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from upheld.compiler.hypertrees.modes import Decision
from upheld.language.core import Rule
from upheld.language.core_text import atom_text

if TYPE_CHECKING:
    from upheld.compiler.hypertrees.cost import Choice


def decision_lines(decision: Decision) -> Iterator[str]:
    """Yield the rule, the decision, and its nodes, each below its parent, if the rule is decomposed."""
    yield str(decision.rule)
    width = f" of width {decision.choice.width}" if decision.choice is not None else ""
    body = "acyclic" if decision.acyclic else f"a cycle{width}"
    yield f"  {body}, {'decomposed' if decision.decomposed else 'not decomposed'}: {decision.why}"
    if decision.decomposed and decision.choice is not None:
        yield from _tree(decision.rule, decision.choice)


def _tree(rule: Rule, choice: Choice) -> Iterator[str]:
    nodes, parents = choice.decomposition.nodes, choice.decomposition.parents
    children: list[list[int]] = [[] for _ in nodes]
    for child, parent in enumerate(parents, start=1):
        children[parent].append(child)
    order = list(dict.fromkeys(rule.variables()))
    todo = [(0, 0)]
    while todo:
        p, depth = todo.pop()
        todo += [(child, depth + 1) for child in reversed(children[p])]
        variables = ", ".join(sorted(nodes[p].chi, key=order.index))
        atoms = ", ".join(atom_text(rule.positive[i]) for i in sorted(nodes[p].lam))
        yield f"    {'  ' * depth}({variables}) from {atoms}: about {choice.sizes[p]:,.0f} rows"
