"""Plans as text, for `upheld check --plans`."""

from __future__ import annotations

from collections.abc import Iterator

from upheld.base.errors import count
from upheld.engines.memory.plans.plan import AtomStep, ChoiceStep, Plan, Step
from upheld.language.core_text import atom_text, builtin_text


def plan_lines(start: str, plan: Plan) -> Iterator[str]:
    """Yield a line for where a plan begins, and one for each of its steps."""
    yield f"from {start}"
    for step in plan.steps:
        yield f"  {_step(step)}"


def _step(step: Step) -> str:
    if isinstance(step, ChoiceStep):
        return " or ".join(f"{_step(join)}, {_step(check)}" for join, check in step.ways)
    if not isinstance(step, AtomStep):
        text = builtin_text(step.builtin)
        return f"compute {text}" if step.binds else f"keep where {text}"
    atom = atom_text(step.atom)
    if step.negated:
        return f"keep where not {atom}"
    if step.filters:
        return f"keep where {atom}"
    if not step.known:
        return f"with every {atom}: {count(step.source.n, 'row')}"
    columns = ", ".join(str(c + 1) for c in step.known)
    return f"join {atom} on column {columns}: about {step.fan_out:.3g} rows for each"
