"""Changes of a program: which rules, aggregates and facts go, which come, and what is left as it was.

A rule that is in both programs stays the same object, whatever stands around it: plans, strata and bookkeeping refer to
rules by identity. A few rules that are added or removed are compiled by themselves, with the types that relations
have already; a whole new program is compiled and compared rule by rule, by their normal texts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from upheld.base.errors import Problem, ProgramError, UsageError, quote
from upheld.compiler.compile import compile_program
from upheld.compiler.equality.equality import with_equality
from upheld.compiler.normal_form import normal_text
from upheld.compiler.passes.relations import duplicate_constraints
from upheld.language.ast import Atom, Clause, Constant, Declaration, Program, nodes
from upheld.language.core import Aggregation, Core, Fact, Predicate, Rule
from upheld.language.syntax.files import read_fragment
from upheld.language.syntax.printer import to_text

#: Clauses with the same head: its relation, and the constants in its columns.
_Head = tuple[str, tuple[object, ...]]


@dataclass(frozen=True)
class Edit:
    """A change of a program: the new program, and the explicit facts that its text no longer states, or now states."""

    core: Core
    dropped: frozenset[Fact] = frozenset()
    stated: frozenset[Fact] = frozenset()


@dataclass(frozen=True)
class Compiled:
    """Rules by their normal texts, facts, aggregates and relations that some clauses are compiled to."""

    rules: dict[str, Rule]
    facts: frozenset[Fact]
    aggregations: tuple[Aggregation, ...]
    predicates: dict[str, Predicate]


# -- some rules --------------------------------------------------------------------------------------------------------


def edit(core: Core, add: Sequence[str], remove: Sequence[str], equality: str) -> Edit:
    """Return the change of a program by which some rules go and others come; they are given as texts."""
    program = program_of(core)
    gone = fragments(remove, program, "remove")
    new = fragments(add, program, "add")
    _refuse_other_than_rules(gone)
    removed = tuple(dict.fromkeys(_clause_of(clause, core, program) for clause in gone.clauses))
    left = tuple(clause for clause in program.clauses if clause not in set(removed))
    there = set(left)
    added = tuple(dict.fromkeys(clause for clause in new.clauses if clause not in there))
    edited = replace(
        program,
        clauses=(*left, *added),
        types=(*program.types, *new.types),
        declarations=(*program.declarations, *new.declarations),
        directives=(*program.directives, *new.directives),
        functors=(*program.functors, *new.functors),
        prefixes=tuple(dict((*program.prefixes, *new.prefixes)).items()),
    )
    if duplicates := list(duplicate_constraints(edited.clauses)):
        raise ProgramError(duplicates)
    if equality != "off" or new.subsumptions:
        return replacing(core, replace(edited, subsumptions=(*program.subsumptions, *new.subsumptions)), equality)
    heads = {head for clause in removed for head in _heads(clause)}
    beside = tuple(clause for clause in left if not heads.isdisjoint(_heads(clause)))
    goes, stays, comes = (_compiled(core, edited, clauses) for clauses in (removed, beside, added))
    texts = goes.rules.keys() - stays.rules.keys()
    # Hidden relations stay as long as a rule reads them.
    wanted = {goes.rules[text].head.predicate for text in texts} - {
        p.name for p in goes.predicates.values() if p.internal
    }
    staying = [rule for rule in core.rules if rule.head.predicate not in wanted or normal_text(rule) not in texts]
    heads_of_new = {rule.head.predicate for rule in comes.rules.values()}
    known = {normal_text(rule) for rule in staying if rule.head.predicate in heads_of_new}
    more = [rule for text, rule in comes.rules.items() if text not in known]
    dropped = goes.facts - stays.facts
    predicates, facts = {**core.predicates, **comes.predicates}, (core.facts - dropped) | comes.facts
    return Edit(
        _assembled(core, edited, (*staying, *more), comes.aggregations, predicates, facts), dropped, comes.facts
    )


def fragments(texts: Sequence[str], program: Program, argument: str) -> Program:
    """Return clauses and declarations that are given as texts, in the dialect of a program and with its prefixes."""
    together = Program(program.dialect)
    for number, text in enumerate(texts, 1):
        part = read_fragment(text, program.dialect, f"<{argument} {number}>", dict(program.prefixes))
        together = replace(
            together,
            types=together.types + part.types,
            declarations=together.declarations + part.declarations,
            directives=together.directives + part.directives,
            clauses=together.clauses + part.clauses,
            prefixes=together.prefixes + part.prefixes,
            functors=together.functors + part.functors,
            subsumptions=together.subsumptions + part.subsumptions,
        )
    return together


def program_of(core: Core) -> Program:
    """Return the program that a core was compiled from."""
    assert core.program is not None, "a core that no program was compiled to"
    return core.program


def _refuse_other_than_rules(gone: Program) -> None:
    spans = [part.span for part in gone.declarations] + [part.span for part in gone.types]
    spans += [part.span for part in gone.directives] + [part.span for part in gone.functors]
    spans += [part.span for part in gone.subsumptions]
    if spans:
        raise UsageError(
            Problem(
                "not-a-rule",
                "`remove` takes rules and facts of the program, not declarations",
                spans[0],
                hint="edit the program, and pass it as `replace`",
            )
        )


def _clause_of(clause: Clause, core: Core, program: Program) -> Clause:
    """Return the clause of a program that a clause is, up to the names of variables and the order of the body."""
    same = next((c for c in program.clauses if c == clause), None)
    if same is not None:
        return same
    wanted = _compiled(core, program, (clause,))
    heads = set(_heads(clause))
    for candidate in program.clauses:
        if set(_heads(candidate)) == heads and (candidate.body is None) == (clause.body is None):
            compiled = _compiled(core, program, (candidate,))
            if compiled.rules.keys() == wanted.rules.keys() and compiled.facts == wanted.facts:
                return candidate
    kind = "fact" if clause.body is None else "rule"
    raise UsageError(
        Problem(
            "unknown-rule",
            f"the program has no {kind} {quote(to_text(clause, program.dialect))}",
            clause.span,
            note="a rule is found up to the names of its variables and the order of its body",
            hint="`update(delete=...)` deletes facts that the program does not state"
            if clause.body is None
            else "print the program to see its rules",
        )
    )


def _heads(clause: Clause) -> list[_Head]:
    return [
        (head.predicate, tuple(term.value if isinstance(term, Constant) else None for term in head.terms))
        for head in clause.heads
    ]


def _compiled(core: Core, program: Program, clauses: Sequence[Clause]) -> Compiled:
    """Compile some clauses of a program, whose other relations have the types that they have in the core."""
    names = _named(clauses)
    names |= dict.fromkeys(d.name for d in program.declarations if d.equivalence)
    names |= dict.fromkeys(s.dominated.predicate for s in program.subsumptions)
    declared = tuple(d for i, d in enumerate(program.declarations) if i == 0 or d.name in names)
    compiled = _compile(core, replace(program, clauses=tuple(clauses), directives=(), declarations=declared), names)
    rules = {normal_text(rule): rule for rule in compiled.rules}
    return Compiled(rules, compiled.facts, compiled.aggregations, compiled.predicates)


def _named(clauses: Iterable[Clause]) -> dict[str, None]:
    """Return the relations that some clauses name, in the order in which they name them."""
    parts = (part for c in clauses for part in nodes(*c.heads, *(() if c.body is None else (c.body,))))
    return dict.fromkeys(part.predicate for part in parts if isinstance(part, Atom))


def _compile(core: Core, program: Program, names: Collection[str]) -> Core:
    """Compile a program in which some relations, unless it declares them, have the types that they have in a core."""
    declared = {declaration.name for declaration in program.declarations}
    known = [core.predicates[name] for name in names if name in core.predicates]
    undeclared = {p.name: p for p in known if not p.hidden and p.name not in declared}
    compiled = compile_program(program, {p.name: p.types for p in undeclared.values()}).core
    compiled = compiled.with_columns({p.name: p.columns for p in undeclared.values()})
    for name, predicate in compiled.predicates.items():
        before = core.predicates.get(name)
        if before is not None and before.types != predicate.types:
            declaration = next((d for d in program.declarations if d.name == name), None)
            raise ProgramError(other_types(before, predicate, declaration))
    return compiled


def other_types(before: Predicate, after: Predicate, declaration: Declaration | None) -> Problem:
    """Return the problem of a relation whose columns would have other types."""
    types = [", ".join(map(str, p.types)) for p in (before, after)]
    return Problem(
        "relation-changed",
        f"{quote(after.name)} has columns of the types {quote(types[0])}, and would have {quote(types[1])}",
        declaration.span if declaration else None,
        note="a rule change keeps the facts of each relation, so its columns keep their types",
        hint="give the relation another name, or materialise the new program",
    )


# -- a whole program ---------------------------------------------------------------------------------------------------


def replacing(core: Core, program: Program, equality: str) -> Edit:
    """Return the change of a program to another one."""
    before = program_of(core)
    if program.dialect != before.dialect:
        raise UsageError(
            Problem(
                "wrong-dialect",
                f"the program is in the `.{before.dialect}` dialect, and the new one is in `.{program.dialect}`",
                hint="materialise the new program",
            )
        )
    new = with_equality(_compile(core, program, _named(program.clauses)), equality)
    rules = exchanged(new.rules, core.rules)
    facts_before = _compiled(core, before, tuple(c for c in before.clauses if c.body is None)).facts
    return Edit(
        _assembled(core, program, rules, new.aggregations, new.predicates, new.facts),
        facts_before - new.facts,
        new.facts - facts_before,
    )


def exchanged(rules: Iterable[Rule], others: Iterable[Rule]) -> list[Rule]:
    """Return rules, in place of each an equal one of the others if there is one.

    Each of the others takes one place at most: a rule that is there twice is counted twice.
    """
    equal: dict[str, list[Rule]] = {}
    for other in others:
        equal.setdefault(normal_text(other), []).append(other)
    return [same.pop(0) if (same := equal.get(normal_text(rule))) else rule for rule in rules]


# -- the new core ------------------------------------------------------------------------------------------------------


def _assembled(
    core: Core,
    program: Program,
    rules: Sequence[Rule],
    aggregations: Sequence[Aggregation],
    predicates: dict[str, Predicate],
    facts: frozenset[Fact],
) -> Core:
    """Return a core of some rules and facts, with the hidden relations that these need, and no others."""
    every = {a.relation: a for a in (*core.aggregations, *aggregations) if a.relation in predicates}
    return without_unread(
        replace(
            core,
            program=program,
            predicates=predicates,
            rules=tuple(rules),
            aggregations=tuple(every.values()),
            facts=facts,
            directives=program.directives,
            prefixes=program.prefixes,
            equivalences=tuple(d.name for d in program.declarations if d.equivalence),
            types=program.types,
        )
    )


def without_unread(core: Core) -> Core:
    """Return a core without the hidden relations that no rule for other relations reads, directly or through others.

    A constraint without rules is gone as well.
    """
    hidden = {name for name, predicate in core.predicates.items() if predicate.internal}
    heads = {rule.head.predicate for rule in core.rules}
    if removed := [name for name, p in core.constraints.items() if p.hidden and name not in heads]:
        core = replace(core, predicates={name: p for name, p in core.predicates.items() if name not in removed})
    if not hidden:
        return core
    reads: dict[str, set[str]] = {name: set() for name in hidden}
    for aggregation in core.aggregations:
        reads[aggregation.relation].add(aggregation.body)
    needed: set[str] = set()
    for rule in core.rules:
        read = {atom.predicate for atom in rule.atoms} & hidden
        if rule.head.predicate in hidden:
            reads[rule.head.predicate] |= read
        else:
            needed |= read
    pending = list(needed)
    while pending:
        more = (reads[pending.pop()] & hidden) - needed
        needed |= more
        pending += more
    gone = hidden - needed
    return replace(
        core,
        predicates={name: predicate for name, predicate in core.predicates.items() if name not in gone},
        rules=tuple(rule for rule in core.rules if rule.head.predicate not in gone),
        aggregations=tuple(a for a in core.aggregations if a.relation not in gone),
    )


def evaluated(before: Core, as_evaluated: Core, after: Core) -> Core:
    """Return a changed program as it is evaluated; rules that were decomposed stay so, and no other is."""
    staying = {id(rule) for rule in after.rules}
    nodes = {name: p for name, p in as_evaluated.predicates.items() if name not in before.predicates}
    rules = [rule for rule in as_evaluated.rules if rule.head.predicate in nodes or id(rule.whole) in staying]
    there = {id(rule.whole) for rule in rules if rule.head.predicate not in nodes}
    rules += [rule for rule in after.rules if id(rule) not in there]
    return without_unread(replace(after, predicates={**after.predicates, **nodes}, rules=tuple(rules)))


def changed(before: Iterable[Rule], after: Iterable[Rule]) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """Return the rules that are only in the first of two programs, and those only in the second."""
    old, new = {id(rule): rule for rule in before}, {id(rule): rule for rule in after}
    return (
        tuple(rule for key, rule in old.items() if key not in new),
        tuple(rule for key, rule in new.items() if key not in old),
    )
