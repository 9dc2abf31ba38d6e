"""Equality: which facts say that two constants are one and the same, and the rules that this comes to.

The rules (paper 3, (1) to (4)) make equality a congruence: each constant that some fact mentions equals itself, and in
every fact a constant may be replaced by one that equals it. Symmetry and transitivity are cases of replacement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from upheld.base.errors import Problem, ProgramError, UsageError, check_choice, quote
from upheld.compiler.equality.equivalences import by_classes
from upheld.language.ast import Constant, Variable
from upheld.language.core import Aggregation, Atom, Core, CoreTerm, Fact, Predicate, Rule
from upheld.language.terms.vocabulary import COLUMNS, TRIPLE
from upheld.language.values import Value

#: The values of `equality`: ordinary relation, axioms, or one representative per class of equal constants.
MODES = ("off", "axioms", "rewrite")

SAME_AS = "<http://www.w3.org/2002/07/owl#sameAs>"

#: The types of columns whose values are constants that may equal others. Numbers equal themselves alone.
CONSTANTS = frozenset(("term", "symbol"))


#: A relation with one explicit fact, which rules without a positive atom rest on.
TRUTH = Predicate("$true", (), (), hidden=True)


@dataclass(frozen=True)
class Equality:
    """The facts that are equalities: a predicate, a value in one of its columns, and the two columns that are equal."""

    predicate: str = TRIPLE
    column: int = 1
    value: Value = SAME_AS
    sides: tuple[int, int] = (0, 2)

    def atom(self, left: CoreTerm, right: CoreTerm) -> Atom:
        """Return the atom that says that two terms are equal."""
        return Atom(self.predicate, (left, Constant(self.value, "term"), right))

    def fact(self, left: Value, right: Value) -> Fact:
        """Return the fact that says that two constants are equal."""
        return self.predicate, (left, self.value, right)

    def order(self, constant: Value) -> tuple[bool, int, str]:
        """Return what constants are ordered by. The least of a class represents it.

        The constant of equality itself is the least of all, so that a normal equality is one that can be seen. After it
        come IRIs, then blank nodes, then literals.
        """
        text = str(constant)
        return constant != self.value, "<_".find(text[:1]) % 3, text

    def may_be(self, atom: Atom) -> bool:
        """Return whether some instance of an atom is an equality."""
        if atom.predicate != self.predicate:
            return False
        term = atom.terms[self.column]
        return isinstance(term, Variable) or term.value == self.value


def check_equality(mode: str) -> None:
    """Refuse what is not a way to treat equality."""
    check_choice(mode, "equality", MODES, slug="unknown-equality")


def with_equality(core: Core, mode: str) -> Core:
    """Return a program as it is evaluated where `owl:sameAs`, or what it declares as `eqrel`, is treated so."""
    check_equality(mode)
    if mode == "off":
        return core
    if core.equivalences:
        return by_classes(core) if mode == "rewrite" else core
    if core.dialect != "dlog":
        raise UsageError(
            Problem(
                "no-equality",
                f"`equality={mode}` needs a program over RDF triples, or one with an `eqrel` relation",
                note="equality is `owl:sameAs` in a `.dlog` program, and any `eqrel` relation in a `.dl` program",
                hint="leave `equality` out, or declare a relation as an equivalence (`eqrel`)",
            )
        )
    if TRIPLE not in core.predicates:
        triple = Predicate(TRIPLE, COLUMNS[TRIPLE], ("term",) * 3)
        core = replace(core, predicates={**core.predicates, TRIPLE: triple})
    equality = Equality()
    core = replace(core, rules=tuple(rule for rule in core.rules if not follows_from_equality(rule, equality)))
    if mode == "axioms":
        return replace(core, rules=(*core.rules, *reflexivity(core, equality), *replacement(core, equality)))
    return _with_bodies(core)


def _with_bodies(core: Core) -> Core:
    """Return a program in which each rule has a positive atom; one without asks for the explicit fact of `TRUTH`.

    So rules that always hold are applied where facts are inserted, and their heads rest on something.
    """
    if all(rule.positive for rule in core.rules):
        return core
    atom = Atom(TRUTH.name, ())
    rules = tuple(r if r.positive else replace(r, positive=(atom,), part_of=r.whole) for r in core.rules)
    predicates = {**core.predicates, TRUTH.name: TRUTH}
    return replace(core, predicates=predicates, rules=rules, facts=core.facts | {(TRUTH.name, ())})


def follows_from_equality(rule: Rule, equality: Equality) -> bool:
    """Return whether a rule says only what equality means: its head is one of its atoms, with equals for equals.

    Such are symmetry, transitivity and replacement, as `owl2rl` has them, for whom equality is a property like others.
    """
    equal: dict[CoreTerm, CoreTerm] = {}

    def one_of(term: CoreTerm) -> CoreTerm:
        while term in equal:
            term = equal[term]
        return term

    def sides(atom: Atom) -> list[CoreTerm] | None:
        is_equality = atom.predicate == equality.predicate and _is(atom.terms[equality.column], equality.value)
        return [one_of(atom.terms[side]) for side in equality.sides] if is_equality else None

    for atom in rule.positive:
        if (pair := sides(atom)) and pair[0] != pair[1]:
            equal[pair[0]] = pair[1]
    body = {(atom.predicate, tuple(map(one_of, atom.terms))) for atom in rule.positive}
    head = rule.head
    if (pair := sides(head)) and pair[0] == pair[1]:
        return any(pair[0] in terms for _, terms in body)
    return (head.predicate, tuple(map(one_of, head.terms))) in body


def _is(term: CoreTerm, value: Value) -> bool:
    return isinstance(term, Constant) and term.value == value


def constant_columns(types: Sequence[str]) -> tuple[int, ...]:
    """Return the columns whose values are constants."""
    return tuple(i for i, type in enumerate(types) if type in CONSTANTS)


def reflexivity(core: Core, equality: Equality) -> Iterator[Rule]:
    """Yield the rules by which a constant that a fact mentions equals itself."""
    for atom, columns in _general_atoms(core):
        for column in columns:
            yield Rule(equality.atom(atom.terms[column], atom.terms[column]), (atom,))


def replacement(core: Core, equality: Equality) -> Iterator[Rule]:
    """Yield the rules by which a constant of a fact may be replaced by one that equals it."""
    other = Variable("same")
    for atom, columns in _general_atoms(core):
        for column in columns:
            terms = (*atom.terms[:column], other, *atom.terms[column + 1 :])
            yield Rule(Atom(atom.predicate, terms), (atom, equality.atom(atom.terms[column], other)))


def _general_atoms(core: Core) -> Iterator[tuple[Atom, tuple[int, ...]]]:
    """Yield an atom for each relation that all its facts are instances of, with its columns of constants.

    Hidden relations are left out: theirs are the constants of the relations that they are made from.
    """
    for predicate in core.predicates.values():
        columns = constant_columns(predicate.types)
        if columns and not predicate.hidden:
            yield Atom(predicate.name, tuple(map(Variable, predicate.columns))), columns


@dataclass(frozen=True)
class Tested:
    """A rule in two: what binds its variables, as facts of a relation of their own, and the tests of these."""

    bindings: Predicate
    binding: Rule
    test: Rule


def tests_apart(core: Core) -> tuple[Core, list[Tested]]:
    """Return a program without its rules with built-ins, and these in two, to be tested on what users see.

    So are rules with a constant in the head: users mean that one. A rule that cannot be split is refused: a rule for a
    hidden relation, or one that negates a variable bound by a built-in. So are aggregates, which are over constants
    themselves.
    """
    if core.aggregations:
        raise ProgramError([_aggregating_query(aggregation) for aggregation in core.aggregations])
    plain: list[Rule] = []
    tested: list[Tested] = []
    for rule in core.rules:
        names = tuple(dict.fromkeys(name for atom in rule.positive for name in atom.variables()))
        fit = not core.predicates[rule.head.predicate].hidden and all(
            name in names for atom in rule.negative for name in atom.variables()
        )
        named = any(isinstance(term, Constant) for term in rule.head.terms)
        if not fit or not (rule.builtins or named):
            plain.append(rule)
            continue
        head = Atom(f"$bindings {len(tested)}", tuple(map(Variable, names)))
        bindings = Predicate(head.predicate, names, ("term",) * len(names), hidden=True)
        binding = replace(rule, head=head, builtins=())
        tested.append(Tested(bindings, binding, replace(rule, positive=(head,), negative=())))
    predicates = {**core.predicates, **{t.bindings.name: t.bindings for t in tested}}
    without = replace(core, predicates=predicates, rules=(*plain, *(t.binding for t in tested)))
    refuse_builtins(without)
    return without, tested


def _aggregating_query(aggregation: Aggregation) -> Problem:
    return Problem(
        "rewrite-positive-only",
        f"a query cannot aggregate where equal constants are rewritten: {quote(aggregation.text)}",
        aggregation.span,
        note="one constant represents all equal ones, and the query would aggregate over representatives only",
        hint="aggregate in a rule of the program, and ask for its head",
    )


def refuse_builtins(core: Core) -> None:
    """Refuse rules that look into constants: representatives would be compared where users mean each constant."""
    problems = [
        Problem(
            "rewrite-positive-only",
            f"a rule that compares or computes with constants cannot be rewritten: {quote(rule.whole)}",
            rule.span,
            note="one constant represents all equal ones, so `FILTER`, `BIND` and `NOT` would see only that one",
            hint="use `equality=axioms`, which keeps all constants",
        )
        for rule in core.rules
        if rule.builtins
    ]
    if problems:
        raise ProgramError(problems)
