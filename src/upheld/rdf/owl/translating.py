"""The rules of an ontology: its lower or its upper bound, as in section 10.1 of Motik et al. 2019.

An inclusion of classes is a formula `body -> head or head or ...` over one individual. Its expressions are decomposed
until only atoms are left: complements change sides, conjunctions in heads and disjunctions in bodies make several
formulas. A formula with at most one head is then a rule. Of the rest,

    lower   is left out: what the rules derive follows from the ontology, but not all of that is derived
    upper   is strengthened: each disjunct of a head is derived, and a new constant stands for what exists, so that all
            that follows is derived, and perhaps more

A formula without a head derives `violation`, as the rules of OWL 2 RL do. So does whatever is of `owl:Nothing`, and
what is both the same as and different from something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

from upheld.base.errors import FactsError, Problem, UsageError, nearest, quote
from upheld.facts.files.replacement import Replacement, unwritable
from upheld.facts.rdf.reading import read
from upheld.language import ast
from upheld.language.syntax.printer import to_text
from upheld.language.terms.terms import literal
from upheld.language.terms.vocabulary import PREFIXES, TRIPLE
from upheld.rdf.owl.axioms import Axiom, Fact, HasKey, SubClassOf, SubPropertyOf, Unread, axioms_of
from upheld.rdf.owl.expressions import (
    NOTHING,
    THING,
    And,
    AtLeast,
    AtMost,
    Data,
    Expression,
    HasSelf,
    HasValue,
    Named,
    Not,
    OneOf,
    Only,
    Or,
    Property,
    Some,
    owl,
)
from upheld.rdf.owl.graph import TYPE, Graph, namespaces, shortened

BOUNDS = ("lower", "upper")

#: Formulas that one axiom may become, and values that a cardinality may count: above, an axiom is left out.
MOST_FORMULAS, MOST_VALUES = 4096, 16

#: Begins the IRIs of the constants that stand for what exists.
EXISTING = "urn:upheld:existing:"


@dataclass(frozen=True)
class Translation:
    """The program of an ontology, as rules and as text, and the axioms that it does not express as they are."""

    program: ast.Program
    text: str
    #: Axioms left out, and axioms strengthened, each with the reason.
    dropped: tuple[str, ...]
    strengthened: tuple[str, ...]

    def write(self, path: str | Path) -> None:
        """Write the rules to a `.dlog` file, atomically.

        Args:
            path: Path of the file.
        """
        with Replacement() as replacement:
            try:
                replacement.add(Path(path), self.text.encode())
            except (OSError, ValueError) as error:
                raise FactsError(unwritable(Path(path), error)) from None
            replacement.place()


def translate(*paths: str | Path, bound: str = "lower", base: str | None = None) -> Translation:
    """Return the rules of an ontology, and the axioms that they leave out or strengthen.

    Facts of the ontology become facts of the program, and contradictions become facts of `violation`.

    Args:
        paths: RDF files, or folders of them.
        bound: `lower` leaves out axioms that are not Datalog, so that everything derived follows from the ontology.
            `upper` replaces existential quantifiers by new constants and derives all parts of disjunctions, so that
            everything that follows is derived, and perhaps more.
        base: IRI that relative IRIs are resolved against.
    """
    if not isinstance(bound, str) or bound not in BOUNDS:
        message, note = f"there is no bound {quote(bound)}", "the bounds are `lower` and `upper`"
        raise UsageError(Problem("bad-argument", message, note=note, hint=nearest(bound, BOUNDS)))
    triples = read(*paths, base=base)["triple"]
    translator = _Translator(bound == "upper")
    axioms = dict.fromkeys(axioms_of(Graph((str(s), str(p), str(o)) for s, p, o in triples)))
    for axiom in axioms:
        translator.add(axiom)
    if translator.needs_everything:
        translator.add_everything(axioms)
    translator.add_contradictions()
    return _translation(translator, bound)


def _translation(translator: _Translator, bound: str) -> Translation:
    told = {"left out": translator.dropped, "strengthened": translator.strengthened}
    lines = [f"# The {bound} bound of an ontology, written by `upheld owl`."]
    for said, clauses in translator.rules:
        lines += ["", f"# {said}", *(to_text(clause, "dlog") for clause in clauses)]
    for title, axioms in told.items():
        lines += ["", f"# -- {title} --", *(f"# {one}" for one in axioms)] if axioms else []
    text = "\n".join(lines) + "\n"
    names = namespaces(text)
    declared = "".join(f"PREFIX {name}: <{iri}>\n" for iri, name in names.items() if name not in PREFIXES)
    return Translation(
        ast.Program(
            "dlog",
            clauses=tuple(clause for _, clauses in translator.rules for clause in clauses),
            prefixes=tuple((name, iri) for iri, name in names.items()),
        ),
        declared + ("\n" if declared else "") + shortened(text, names),
        tuple(shortened(axiom, names) for axiom in told["left out"]),
        tuple(shortened(axiom, names) for axiom in told["strengthened"]),
    )


# -- formulas ---------------------------------------------------------------------------------------------------------


class _NotDatalog(Exception):
    """An axiom that is not a rule, with the reason."""


@dataclass(frozen=True)
class _Equal:
    """A disjunct of a head: two terms are the same."""

    one: ast.Term
    other: ast.Term


@dataclass(frozen=True)
class _Exist:
    """A disjunct of a head: some number of values of a property."""

    of: ast.Term
    wanted: AtLeast


@dataclass
class _Formula:
    """A partly decomposed formula.

    `asked` and `claimed` are expressions of terms, in the body and in the head; `conditions` and `heads` are done.
    """

    asked: list[tuple[Expression, ast.Term]]
    claimed: list[tuple[Expression, ast.Term]]
    conditions: list[ast.Atom] = field(default_factory=list)
    heads: list[ast.Atom | _Equal | _Exist] = field(default_factory=list)
    variables: int = 0

    def copy(self) -> _Formula:
        return replace(
            self, asked=[*self.asked], claimed=[*self.claimed], conditions=[*self.conditions], heads=[*self.heads]
        )

    def fresh(self) -> ast.Variable:
        self.variables += 1
        return ast.Variable(f"x{self.variables}")


class _Translator:
    def __init__(self, upper: bool):
        self.upper = upper
        self.rules: list[tuple[str, list[ast.Clause]]] = []
        # Dictionaries for their keys: one axiom may become many formulas, and is listed once.
        self.dropped: dict[str, None] = {}
        self.strengthened: dict[str, None] = {}
        self.needs_everything = False
        self._constants = 0
        self._said = ""

    def add(self, axiom: Axiom) -> None:
        """Add the rules of an axiom, or record why there are none."""
        match axiom:
            case Fact(triple=(s, p, o)):
                self._rule([_triple(_constant(s), _constant(p), _constant(o))], [], "facts")
            case Unread(said=said, reason=reason):
                self.dropped[f"{said}: {reason}"] = None
            case SubPropertyOf():
                self._property(axiom)
            case SubClassOf(sub=sub, super=super_, said=said):
                self._said = said
                self._take_apart(_Formula([(sub, ast.Variable("x"))], [(super_, ast.Variable("x"))]))
            case HasKey(of=of, keys=keys, said=said):
                self._said = said
                one, other = ast.Variable("x"), ast.Variable("y")
                values = [ast.Variable(f"z{i}") for i in range(len(keys))]
                shared = [_edge(key, who, value) for key, value in zip(keys, values) for who in (one, other)]
                self._take_apart(_Formula([(of, one), (of, other)], [], [*shared], [_Equal(one, other)]))

    def add_everything(self, axioms: Iterable[Axiom]) -> None:
        """Say that all individuals that classes and properties speak of are of `owl:Thing`."""
        classes = {o for a in axioms if isinstance(a, SubClassOf) for o in _names(a.sub) | _names(a.super)}
        x, y, thing = ast.Variable("x"), ast.Variable("y"), _constant(owl("Thing"))
        for iri in sorted(n.iri for n in classes if isinstance(n, Named) and n not in (THING, NOTHING)):
            body = [_triple(x, _constant(TYPE), _constant(iri))]
            self._rule([_triple(x, _constant(TYPE), thing)], body, "every individual is of owl:Thing")
        for property in sorted({n.iri for n in classes if isinstance(n, Property)}):
            self._rule(
                [_triple(x, _constant(TYPE), thing)], [_triple(x, _constant(property), y)],
                "every individual is of owl:Thing",
            )  # fmt: skip

    def add_contradictions(self) -> None:
        """Say what no individual is: of `owl:Nothing`, or different from what it is the same as, itself included."""
        x, y = ast.Variable("x"), ast.Variable("y")
        same, different = _constant(owl("sameAs")), _constant(owl("differentFrom"))
        nothing = _triple(x, _constant(TYPE), _constant(NOTHING.iri))
        self._rule([_violation("Nothing", *nothing.terms)], [nothing], "Nothing is in owl:Nothing")
        for subject, object, body in ((x, x, []), (x, y, [_triple(x, same, y)]), (x, y, [_triple(y, same, x)])):
            stated = _triple(subject, different, object)
            head = _violation("DifferentIndividuals", *stated.terms)
            self._rule([head], [stated, *body], "Different individuals are not the same")

    # -- properties ----------------------------------------------------------------------------------------------------

    def _property(self, axiom: SubPropertyOf) -> None:
        terms = [ast.Variable("x"), *(ast.Variable(f"x{i}") for i in range(1, len(axiom.chain))), ast.Variable("y")]
        if axiom.closed:
            terms[-1] = terms[0]
        body = [_edge(p, one, other) for p, one, other in zip(axiom.chain, terms, terms[1:])]
        if axiom.beside is not None:
            body.append(_edge(axiom.beside, terms[0], terms[-1]))
        if axiom.super is not None:
            head = _edge(axiom.super, terms[0], terms[-1])
        else:
            head = _violation(axiom.said, *body[0].terms)
        self._rule([head], body, axiom.said)

    # -- classes -------------------------------------------------------------------------------------------------------

    def _take_apart(self, formula: _Formula) -> None:
        """Take a formula apart, and add the rules that come of it."""
        pending, made = [formula], 0
        while pending:
            one = pending.pop()
            made += 1
            if made > MOST_FORMULAS:
                self._drop(f"it becomes more than {MOST_FORMULAS} formulas")
                return
            try:
                if one.asked:
                    pending += self._asked(one, *one.asked.pop())
                elif one.claimed:
                    pending += self._claimed(one, *one.claimed.pop())
                else:
                    self._finish(one)
            except _NotDatalog as reason:
                self._drop(str(reason))

    def _asked(self, formula: _Formula, asked: Expression, of: ast.Term) -> list[_Formula]:
        """Decompose an expression in the body of a formula; return the resulting formulas."""
        match asked:
            case Named() if asked == THING:
                pass
            case Named() if asked == NOTHING:
                return []  # nothing is asked about
            case Named(iri=iri):
                formula.conditions.append(_triple(of, _constant(TYPE), _constant(iri)))
            case Data():
                self._weaken("values of a datatype are not distinguished from others")
            case And(parts=parts):
                formula.asked += [(part, of) for part in parts]
            case Or(parts=parts):
                return [_with(formula.copy(), asked=(part, of)) for part in parts]
            case Not(part=part):
                formula.claimed.append((part, of))
            case OneOf(members=members):
                return [_is(formula.copy(), of, member) for member in members]
            case Some(property=property, filler=filler) | AtLeast(number=1, property=property, filler=filler):
                value = formula.fresh()
                formula.conditions.append(_edge(property, of, value))
                formula.asked.append((filler, value))
            case HasValue(property=property, value=constant):
                formula.conditions.append(_edge(property, of, _constant(constant)))
            case HasSelf(property=property):
                formula.conditions.append(_edge(property, of, of))
            case Only(property=property, filler=filler):
                formula.claimed.append((Some(property, Not(filler)), of))
            case AtMost(number=number, property=property, filler=filler):
                formula.claimed.append((AtLeast(number + 1, property, filler), of))
            case AtLeast(number=0):
                pass
            case AtLeast(property=property, filler=filler):
                self._weaken("several values would have to be distinguished")
                formula.asked.append((Some(property, filler), of))
        return [formula]

    def _claimed(self, formula: _Formula, claimed: Expression, of: ast.Term) -> list[_Formula]:
        """Decompose an expression in the head of a formula; return the resulting formulas."""
        match claimed:
            case Named() if claimed == THING:
                return []  # which holds of everything
            case Named() if claimed == NOTHING:
                pass
            case Named(iri=iri):
                formula.heads.append(_triple(of, _constant(TYPE), _constant(iri)))
            case Data():
                raise _NotDatalog("values are not checked against datatypes")
            case And(parts=parts):
                return [_with(formula.copy(), claimed=(part, of)) for part in parts]
            case Or(parts=parts):
                formula.claimed += [(part, of) for part in parts]
            case Not(part=part):
                formula.asked.append((part, of))
            case OneOf(members=members):
                formula.heads += [_Equal(of, _constant(member)) for member in members]
            case Some(property=property, filler=filler):
                formula.heads.append(_Exist(of, AtLeast(1, property, filler)))
            case AtLeast(number=0):
                return []
            case AtLeast():
                formula.heads.append(_Exist(of, claimed))
            case HasValue(property=property, value=constant):
                formula.heads.append(_edge(property, of, _constant(constant)))
            case HasSelf(property=property):
                formula.heads.append(_edge(property, of, of))
            case Only(property=property, filler=filler):
                value = formula.fresh()
                formula.conditions.append(_edge(property, of, value))
                formula.claimed.append((filler, value))
            case AtMost(number=number, property=property, filler=filler):
                if number > MOST_VALUES:
                    raise _NotDatalog(f"it counts more than {MOST_VALUES} values")
                values = [formula.fresh() for _ in range(number + 1)]
                for value in values:
                    formula.conditions.append(_edge(property, of, value))
                    formula.asked.append((filler, value))
                formula.heads += [_Equal(one, other) for one, other in combinations(values, 2)]
        return [formula]

    def _finish(self, formula: _Formula) -> None:
        """Add the rules of a fully decomposed formula."""
        body = list(dict.fromkeys(formula.conditions))
        if len(formula.heads) > 1:
            self._strengthen("a disjunction", "all parts of a disjunction are derived")
        if not formula.heads:
            self._rule([_violation(self._said, _subject(body), _constant(TYPE), _constant(NOTHING.iri))], body)
        for head in formula.heads:
            match head:
                case ast.Atom():
                    self._rule([head], body)
                case _Equal(one=one, other=other):
                    self._rule([_triple(one, _constant(owl("sameAs")), other)], body)
                case _Exist(of=of, wanted=wanted):
                    self._strengthen("existing individuals", "new constants represent individuals that must exist")
                    self._exists(of, wanted, body)

    def _exists(self, of: ast.Term, wanted: AtLeast, body: list[ast.Atom]) -> None:
        if wanted.number > MOST_VALUES:
            raise _NotDatalog(f"it counts more than {MOST_VALUES} values")
        constants = []
        for _ in range(wanted.number):
            self._constants += 1
            constants.append(_constant(f"<{EXISTING}{self._constants}>"))
        for constant in constants:
            self._rule([_edge(wanted.property, of, constant)], body)
            if not isinstance(wanted.filler, Data):
                self._take_apart(_Formula([], [(wanted.filler, constant)], [*body]))
        for one, other in combinations(constants, 2):
            self._rule([_triple(one, _constant(owl("differentFrom")), other)], body)

    # -- rules and what is none ----------------------------------------------------------------------------------------

    def _rule(self, heads: Sequence[ast.Atom], body: Sequence[ast.Atom], said: str | None = None) -> None:
        said = said or self._said
        bound = {t.name for c in body for t in c.terms if isinstance(t, ast.Variable)}
        loose = [t for h in heads for t in h.terms if isinstance(t, ast.Variable) and t.name not in bound]
        for variable in dict.fromkeys(loose):
            self.needs_everything = True
            body = [*body, _triple(variable, _constant(TYPE), _constant(THING.iri))]
        formulas: tuple[ast.Formula, ...] = tuple(body)
        condition = None if not formulas else formulas[0] if len(formulas) == 1 else ast.Conjunction(formulas)
        clause = ast.Clause(tuple(heads), condition)
        if heads[0] in body:
            return  # it says nothing
        if not self.rules or self.rules[-1][0] != said:
            self.rules.append((said, []))
        self.rules[-1][1].append(clause)

    def _weaken(self, reason: str) -> None:
        """A condition of the body is left out, which makes the rule stronger."""
        if not self.upper:
            raise _NotDatalog(reason)
        self.strengthened[f"{self._said}: {reason}"] = None

    def _strengthen(self, what: str, how: str) -> None:
        if not self.upper:
            raise _NotDatalog(f"it claims {what}")
        self.strengthened[f"{self._said}: {how}"] = None

    def _drop(self, reason: str) -> None:
        self.dropped[f"{self._said}: {reason}"] = None


# -- atoms ------------------------------------------------------------------------------------------------------------


def _constant(term: str) -> ast.Constant:
    return ast.Constant(term, "term")


def _triple(s: ast.Term, p: ast.Term, o: ast.Term) -> ast.Atom:
    return ast.Atom(TRIPLE, (s, p, o))


def _edge(property: Property, one: ast.Term, other: ast.Term) -> ast.Atom:
    one, other = (other, one) if property.inverse else (one, other)
    return _triple(one, _constant(property.iri), other)


def _violation(said: str, s: ast.Term, p: ast.Term, o: ast.Term) -> ast.Atom:
    """Return that a triple cannot hold, by the kind of axiom that says so."""
    return ast.Atom("violation", (_constant(literal(said.partition("(")[0])), s, p, o))


def _subject(body: list[ast.Atom]) -> ast.Term:
    """Return what a violation speaks of: the first term of its conditions."""
    for condition in body:
        for term in condition.terms:
            if isinstance(term, ast.Variable):
                return term
    return next((t for c in body for t in c.terms), _constant(THING.iri))


def _with(
    formula: _Formula,
    asked: tuple[Expression, ast.Term] | None = None,
    claimed: tuple[Expression, ast.Term] | None = None,
) -> _Formula:
    formula.asked += [asked] if asked else []
    formula.claimed += [claimed] if claimed else []
    return formula


def _is(formula: _Formula, of: ast.Term, member: str) -> _Formula:
    """Return the formula for the case that a term is a certain individual."""
    constant = _constant(member)
    if not isinstance(of, ast.Variable):
        if of != constant:
            formula.conditions.append(_triple(of, _constant(owl("sameAs")), constant))
        return formula

    def put(term: ast.Term) -> ast.Term:
        return constant if term == of else term

    def put_in(head: ast.Atom | _Equal | _Exist) -> ast.Atom | _Equal | _Exist:
        match head:
            case ast.Atom(predicate=predicate, terms=terms):
                return ast.Atom(predicate, tuple(map(put, terms)))
            case _Equal(one=one, other=other):
                return _Equal(put(one), put(other))
            case _Exist(of=term, wanted=wanted):
                return _Exist(put(term), wanted)

    formula.asked = [(asked, put(term)) for asked, term in formula.asked]
    formula.claimed = [(claimed, put(term)) for claimed, term in formula.claimed]
    formula.conditions = [ast.Atom(c.predicate, tuple(map(put, c.terms))) for c in formula.conditions]
    formula.heads = [put_in(head) for head in formula.heads]
    return formula


def _names(expression: Expression) -> set[Named | Property]:
    """Return the classes and properties that an expression speaks of."""
    return set(_walk(expression))


def _walk(expression: Expression) -> Iterator[Named | Property]:
    match expression:
        case Named():
            yield expression
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from _walk(part)
        case Not(part=part):
            yield from _walk(part)
        case Some() | Only() | AtLeast() | AtMost():
            yield expression.property
            yield from _walk(expression.filler)
        case HasValue(property=property) | HasSelf(property=property):
            yield property
        case _:
            return
