"""The difference between the program that saved a state and the edited one that opens it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from upheld.base.errors import count
from upheld.compiler.edits import changed, program_of
from upheld.facts.change import Change
from upheld.language.core import Core, Predicate, Rule
from upheld.language.syntax.printer import to_text


@dataclass(frozen=True)
class ProgramChange:
    """The rules and declarations that an edited program adds and removes, and the change of facts they make.

    `version` is the saved version that was opened. Rules are compared up to the names of their variables.
    """

    version: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    change: Change

    def to_text(self) -> str:
        """Return a line for each rule and declaration, and a line with the numbers of changed facts."""
        lines = [f"program changed since version {self.version}:"]
        lines += [f"- {text}" for text in self.removed]
        lines += [f"+ {text}" for text in self.added]
        return "\n".join([*lines, repr(self.change)])

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<ProgramChange {count(len(self.added), 'line')} added, {len(self.removed)} removed, {self.change!r}>"


def program_change(version: int, before: Core, after: Core, change: Change) -> ProgramChange:
    """Return the difference between two programs, of which the second has the rules of the first that it keeps."""
    gone, new = changed(before.rules, after.rules)
    both = [(p, after.predicates[p.name]) for p in before.predicates.values() if p.name in after.predicates]
    renamed = [pair for pair in both if not pair[0].hidden and pair[0].columns != pair[1].columns]
    return ProgramChange(
        version,
        (*(_declaration(now) for _, now in renamed), *_texts(after, new)),
        (*(_declaration(then) for then, _ in renamed), *_texts(before, gone)),
        change,
    )


def _texts(core: Core, rules: Iterable[Rule]) -> tuple[str, ...]:
    """Return the clauses that some rules of a core were compiled from, as they are written."""
    program = program_of(core)
    clauses = {clause.span: clause for clause in program.clauses}
    own = [rule for rule in rules if not core.predicates[rule.head.predicate].hidden]
    texts = (to_text(clauses[rule.span], program.dialect) if rule.span in clauses else str(rule) for rule in own)
    return tuple(dict.fromkeys(texts))


def _declaration(predicate: Predicate) -> str:
    columns = ", ".join(f"{name}:{type}" for name, type in zip(predicate.columns, predicate.types))
    return f".decl {predicate.name}({columns})"
