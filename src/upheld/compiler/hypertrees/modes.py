"""Which rules are decomposed: the three approaches that paper 4 compares (section 5), and one that goes by estimates.

- `never` is the paper's *standard* approach: no rule is decomposed.
- `all` is its *HD*: every rule is, an acyclic one along its join tree, with a relation for each node.
- `always` is its *combined* approach: every cyclic rule that has a decomposition is, and acyclic ones are not.
- `auto` is ours: of the cyclic rules, those for which the estimate says that it pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from upheld.base.errors import check_choice
from upheld.language.core import Core, Rule

if TYPE_CHECKING:
    from upheld.compiler.hypertrees.cost import Choice

AUTO, NEVER, ALWAYS, ALL = "auto", "never", "always", "all"
MODES = (AUTO, NEVER, ALWAYS, ALL)


@dataclass(frozen=True)
class Decision:
    """Whether a rule is decomposed, and why; with the decomposition that was looked at, if one was."""

    rule: Rule
    decomposed: bool
    why: str
    choice: Choice | None = None
    #: Whether the body is acyclic, so that the decomposition is its join tree.
    acyclic: bool = False


@dataclass(frozen=True)
class Decomposed:
    """A program with some of its rules decomposed, and the decisions about them."""

    core: Core
    decisions: tuple[Decision, ...] = ()


def check_mode(mode: str) -> None:
    """Refuse a value of `decompose` that is not one of `MODES`."""
    check_choice(mode, "decompose", MODES, slug="unknown-decomposition")


def concerned(rules: Sequence[Rule], mode: str) -> list[Rule]:
    """Return the rules about which there is something to decide."""
    return [rule for rule in rules if _concerns(mode, rule)]


def is_cyclic(rule: Rule) -> bool:
    """Return whether the body of a rule has a hypertree width above 1."""
    if len(rule.positive) < 3:
        return False
    # Most programs have no longer body, and start faster without these.
    from upheld.compiler.hypertrees.acyclicity import is_acyclic
    from upheld.compiler.hypertrees.hypergraph import hypergraph_of

    return not is_acyclic(hypergraph_of(rule))


def _concerns(mode: str, rule: Rule) -> bool:
    if mode == ALL:
        from upheld.compiler.hypertrees.hypergraph import hypergraph_of

        return sum(1 for edge in hypergraph_of(rule).edges if edge) > 1
    return mode != NEVER and is_cyclic(rule)
