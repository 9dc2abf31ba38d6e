"""Changes of the rules of a materialisation: what users ask for, and what it comes to for its explicit facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from upheld.base.errors import Problem, UsageError, are_texts, require
from upheld.compiler.edits import Edit, edit, evaluated, other_types, replacing
from upheld.facts.columns import Row
from upheld.language.ast import Program
from upheld.language.core import Core, Fact, Predicate, Rule
from upheld.maintain.rule_changes import Plan, Rules, plan
from upheld.maintain.update import State
from upheld.materialisation.programs import parse
from upheld.materialisation.representation import Plain

#: Returns the change of a program, given the program and the treatment of equality.
Asked = Callable[[Core, str], Edit]


def refuse_rule_changes(representation: type[Plain], in_tasks: bool) -> None:
    """Refuse to change rules where facts are held by classes, or in tasks."""
    if in_tasks:
        raise UsageError(
            Problem(
                "fixed-rules",
                "the Spark engine cannot change the rules of a materialisation",
                note="its tasks place facts by the rules that they were started with",
                hint="materialise the new program, or change the rules with the memory engine",
            )
        )
    if representation is not Plain:
        raise UsageError(
            Problem(
                "fixed-rules",
                "the rules of a materialisation with `equality=rewrite` cannot be changed",
                note="representatives of equal constants are in its rules and in its facts",
                hint="materialise the new program, or use `equality=axioms`",
            )
        )


def refuse_facts_with_rules(*facts: object) -> None:
    """Refuse to preview changes of facts and of rules as one."""
    if any(argument is not None for argument in facts):
        raise UsageError(
            Problem(
                "ambiguous-change",
                "a preview is either of facts or of rules",
                hint="preview the rule change and the update one after the other",
            )
        )


def rule_texts(texts: str | Sequence[str], parameter: str) -> list[str]:
    """Return the texts of rules that are given as one text or as several; the empty text has none."""
    several = [texts][: len(texts)] if isinstance(texts, str) else texts
    require(are_texts(several), parameter, "the text of a rule, or a list of texts", texts)
    return list(several)


def read_rule_change(
    add: str | Sequence[str], remove: str | Sequence[str], program: str | Path | Program | None
) -> Asked:
    """Return the rule change that users ask for; refuse one that is asked for in two ways."""
    added, removed = rule_texts(add, "add"), rule_texts(remove, "remove")
    if program is None:
        return lambda core, equality: edit(core, added, removed, equality)
    if added or removed:
        raise UsageError(
            Problem(
                "ambiguous-change",
                "a rule change has either rules to `add` and to `remove`, or a program to change to",
                hint="leave `add` and `remove` out",
            )
        )
    new = parse(program)
    return lambda core, equality: replacing(core, new, equality)


class RemovedRules(NamedTuple):
    """Removed rules, with the relations that they may name."""

    rules: tuple[Rule, ...]
    predicates: Mapping[str, Predicate]


@dataclass(frozen=True)
class Edited:
    """A rule change of a materialisation: the new program as it is written, and the plan to go there."""

    written: Core
    plan: Plan
    _edit: Edit

    @classmethod
    def of(
        cls,
        edit: Edit,
        written: Core,
        rules: Rules,
        stratification: str,
        state: State,
        declared: Mapping[str, Predicate],
    ) -> Edited:
        """Return the change of rules in a state; relations with explicit facts stay.

        Where a relation was dropped before, the engine still has its table, so it keeps the types of its columns.
        """
        new = edit.core
        for name, predicate in new.predicates.items():
            if name in declared and declared[name].types != predicate.types:
                raise UsageError(other_types(declared[name], predicate, None))
        left = state.E - state.engine.load_all(_by_predicate(edit.dropped))
        gone = [p for p in written.predicates.values() if p.name not in new.predicates and not p.hidden]
        staying = {p.name: p for p in gone if left.count(p.name)}
        new = replace(new, predicates={**new.predicates, **staying})
        counted = bool(state.bookkeeping.kinds)
        return cls(new, plan(rules, evaluated(written, rules.core, new), stratification, counted=counted), edit)

    def past(self) -> RemovedRules:
        """Return the removed rules whose dependencies stay."""
        return RemovedRules(self.plan.rules.past, self.plan.rules.predicates)

    def facts(self) -> tuple[Mapping[str, Iterable[Row]], Mapping[str, Iterable[Row]]]:
        """Return the facts that the program no longer states, to be deleted, and the new ones that it states."""
        return _by_predicate(self._edit.dropped), _by_predicate(self._edit.stated)


def _by_predicate(facts: Iterable[Fact]) -> dict[str, list[Row]]:
    result: dict[str, list[Row]] = {}
    for predicate, row in facts:
        result.setdefault(predicate, []).append(row)
    return result
