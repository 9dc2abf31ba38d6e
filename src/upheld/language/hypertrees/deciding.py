"""Which rules are decomposed: the paper's `combined` approach (section 5), and the two that it combines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from upheld.errors import Problem, UsageError, nearest, quote
from upheld.language.core import Core, Rule
from upheld.language.hypertrees.acyclicity import is_acyclic
from upheld.language.hypertrees.cost import Choice, Costs, choose
from upheld.language.hypertrees.estimates import Statistics
from upheld.language.hypertrees.hypergraph import hypergraph_of
from upheld.language.hypertrees.projecting import project_early
from upheld.language.hypertrees.rewriting import Nodes, decompose

AUTO, NEVER, ALWAYS = "auto", "never", "always"
MODES = (AUTO, NEVER, ALWAYS)

#: Among fewer explicit facts than these, all joins are quick, and looking for decompositions is what would take time.
FEW = 1000

#: A body whose joins are estimated to have no more rows than this is joined in milliseconds however it is done.
SMALL = 20_000

#: Decomposing pays if it is estimated to take this many times fewer rows. On graphs of many shapes the gain in time was
#: seldom below the estimate (`benchmarks/workloads/cycles.py`), but nodes take memory too.
GAIN = 1.2


@dataclass(frozen=True)
class Decision:
    """Whether a cyclic rule is decomposed, and why; with the decomposition that was looked at, if one was."""

    rule: Rule
    decomposed: bool
    why: str
    choice: Choice | None = None


@dataclass(frozen=True)
class Decomposed:
    """A program some of whose cyclic rules are decomposed, and what was decided about each of them."""

    core: Core
    decisions: tuple[Decision, ...] = ()


def decompose_program(core: Core, facts: int, statistics: Callable[[], Statistics], mode: str) -> Decomposed:
    """Return the program with its cyclic rules decomposed as `mode` asks, given the number of explicit facts.

    `auto` decomposes the cyclic rules for which the estimate says that it pays; `always` all that can be decomposed.
    `statistics` are asked for if there is something to decide.
    """
    cyclic = [rule for rule in core.rules if is_cyclic(rule)] if mode != NEVER else []
    if not cyclic:
        return Decomposed(core)
    if mode == AUTO and facts < FEW:
        return Decomposed(core, tuple(Decision(rule, False, f"there are few facts, {facts:,}") for rule in cyclic))
    known = statistics()
    decisions = {rule: _decide(rule, known, mode) for rule in cyclic}
    nodes = Nodes(core.predicates)
    rules = []
    for rule in core.rules:
        decision = decisions.get(rule)
        if decision is not None and decision.decomposed:
            assert decision.choice is not None, "a decomposition that was not looked for"
            acyclic = decompose(rule, decision.choice.decomposition, nodes)
            rule = project_early(acyclic, nodes, Costs(rule, known))
        rules.append(rule)
    if nodes.rules:
        core = replace(core, predicates=core.predicates | nodes.predicates, rules=(*rules, *nodes.rules.values()))
    return Decomposed(core, tuple(decisions.values()))


def check_mode(mode: str) -> None:
    """Refuse what says neither `auto` nor `never` nor `always`."""
    if mode not in MODES:
        raise UsageError(
            Problem(
                "unknown-decomposition",
                f"{quote(mode)} is not a value of `decompose`",
                note=f"it is one of {', '.join(map(quote, MODES))}",
                hint=nearest(mode, MODES),
            )
        )


def is_cyclic(rule: Rule) -> bool:
    """Return whether the body of a rule has a hypertree width above 1."""
    return len(rule.positive) > 2 and not is_acyclic(hypergraph_of(rule))


def _decide(rule: Rule, statistics: Statistics, mode: str) -> Decision:
    if mode == AUTO:
        costs = Costs(rule, statistics)
        if costs.work(costs.body) <= SMALL:
            return Decision(rule, False, f"its joins have few rows, about {costs.work(costs.body):,.0f}")
    choice = choose(rule, statistics, apart=mode == ALWAYS)
    if len(choice.decomposition.nodes) == 1:
        return Decision(rule, False, f"joined as it stands it takes the fewest rows, about {choice.cost:,.0f}", choice)
    rows = f"about {choice.cost:,.0f} rows instead of {choice.undecomposed:,.0f}"
    if mode == ALWAYS or choice.undecomposed >= GAIN * choice.cost:
        return Decision(rule, True, rows, choice)
    return Decision(rule, False, f"{rows} would not pay: {GAIN:g} times fewer would", choice)
