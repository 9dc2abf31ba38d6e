"""Programs with equality in two layers: the rules that equalities depend on, and the others as a program above these.

Once all equalities are known, so are the classes of equal constants, and each fact may be asked of representatives: an
atom holds of some constants just if it holds of those that represent them, and so does its negation. So the rules above
are an ordinary program over normal facts, with two exceptions, for which they are rewritten.

- *Built-ins* look at a constant itself. The representatives of a rule's body stand for all members of their classes, so
  each variable that a built-in looks at is the representative, or a member that `MEMBER` gives. What is computed is
  represented in turn: it is itself, unless `MEMBER` says of what it is a member.
- *Exact relations* are hidden relations whose facts speak of constants themselves, not of their representatives: the
  bindings and the values of aggregates, which are about each constant, and bodies with built-ins and tables of
  `VALUES`, which may hold of one constant and not of another that equals it. Variables of their atoms are like those
  that a built-in looks at.
- *A constant equals itself* as soon as some fact mentions it, which a fact of this layer may be the first to do. `LOOP`
  has those that come from heads. Rules of this layer that ask for equalities are told: of what an atom of a body has
  found it holds, whoever derived that.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Generator, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import NamedTuple, TypeVar

from upheld.base.errors import Problem, ProgramError, quote
from upheld.base.source import Span
from upheld.compiler.equality.equality import Equality, constant_columns
from upheld.compiler.strata import Stratification, stratify
from upheld.language.ast import Constant, Variable
from upheld.language.atom_patterns import pattern_of, share_an_instance
from upheld.language.core import Aggregation, Atom, Builtin, Core, CoreTerm, Predicate, Rule
from upheld.language.core_text import atom_text
from upheld.language.substitution import substitute_atom, substitute_builtin, substitute_rule, substitute_term
from upheld.language.values import Value

#: A representative and another member of its class.
MEMBER = Predicate("$member", ("representative", "member"), ("term", "term"), hidden=True)
#: A constant that is a member, and does not represent its class.
REPRESENTED = Predicate("$represented", ("member",), ("term",), hidden=True)
#: A constant that a rule of the upper layer has brought.
LOOP = Predicate("$loop", ("constant",), ("term",), hidden=True)

#: Variables of a rule for which there is a rule for each choice of what they look at: representatives or members.
MOST_CHOICES = 3

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Layers:
    """The numbers of the rules that equalities depend on, and the program of the others."""

    lower: tuple[int, ...]
    upper: Core
    strata: Stratification
    #: The hidden relations of the program whose facts speak of constants themselves.
    exact: frozenset[str]

    @property
    def expands(self) -> bool:
        """Whether rules of the upper layer look at members of classes."""
        return any(atom.predicate == MEMBER.name for rule in self.upper.rules for atom in rule.positive)


def has_layers(core: Core) -> bool:
    """Return whether a program has rules that must stand above the equalities."""
    return bool(core.aggregations) or any(rule.negative or rule.builtins for rule in core.rules)


def layers(core: Core, rules: Sequence[Rule]) -> Layers:
    """Return the layers of a program whose rules speak of representatives, as they are given.

    An equality that depends on negation, a built-in or an aggregate is refused, and so is negation that depends on
    itself.
    """
    equality = Equality()
    lower = _needed(rules, equality)
    _refuse_above(core, rules, lower)
    above = [i for i in range(len(rules)) if i not in lower]
    exact = exact_relations(core, above)
    upper = Upper(core, equality, exact)
    made = [part for i in above for part in upper.taken_apart(upper.with_own_constants(rules[i], core.rules[i]))]
    aggregations = tuple(upper.over_members(aggregation, made) for aggregation in core.aggregations)
    made += upper.loops(made)
    if any(atom.predicate == REPRESENTED.name for rule in made for atom in rule.negative):
        member = Atom(MEMBER.name, (Variable("r"), Variable("c")))
        made.append(Rule(Atom(REPRESENTED.name, (Variable("c"),)), (member,)))
    predicates = {**core.predicates, **upper.hidden}
    program = replace(core, predicates=predicates, rules=tuple(made), aggregations=aggregations)
    return Layers(tuple(lower), program, stratify(program), exact)


def exact_relations(core: Core, above: Sequence[int]) -> frozenset[str]:
    """Return the hidden relations of the upper layer whose facts speak of constants themselves.

    `above` has the numbers of the rules of this layer.
    """
    exact = {aggregation.relation for aggregation in core.aggregations}
    heads = defaultdict(list)
    for i in above:
        heads[core.rules[i].head.predicate].append(core.rules[i])
    hidden = {name: rules for name, rules in heads.items() if core.predicates[name].hidden}
    exact |= {aggregation.body for aggregation in core.aggregations if aggregation.body in hidden}
    exact |= {name for name, rules in hidden.items() if any(rule.builtins or _names(rule.head) for rule in rules)}
    growing = True
    while growing:
        reading = {n for n, rules in hidden.items() for r in rules for atom in r.atoms if atom.predicate in exact}
        growing = not reading <= exact
        exact |= reading
    return frozenset(exact)


def _names(head: Atom) -> bool:
    """Return whether a head speaks of a constant, and so not of others that equal it."""
    return any(isinstance(term, Constant) for term in head.terms)


# -- the lower layer ---------------------------------------------------------------------------------------------------


class Reason(NamedTuple):
    """How an equality comes to depend on a rule: another asks for what it derives, or for constants that this mentions.

    An equality that is asked for by no rule is the beginning.
    """

    asking: int | None
    atom: Atom
    mentions: bool = False


def _needed(rules: Sequence[Rule], equality: Equality) -> dict[int, Reason]:
    """Return the numbers of the rules that equalities depend on, ascending, each with the reason."""
    heads, needed = _Heads(rules), dict[int, Reason]()
    asked: set[object] = set()
    all_asked = False
    waiting: deque[Reason] = deque([Reason(None, equality.atom(Variable("x"), Variable("y")))])
    while waiting:
        reason = waiting.popleft()
        if pattern_of(reason.atom) in asked:
            continue
        asked.add(pattern_of(reason.atom))
        for i in heads.matching(reason.atom):
            if i in needed:
                continue
            needed[i] = reason
            waiting += [Reason(i, body) for body in rules[i].atoms]
            if not all_asked and asks_for_loops(rules[i], equality):
                all_asked = True  # each constant that any fact mentions equals itself
                waiting += [Reason(i, rule.head, mentions=True) for rule in rules]
    return dict(sorted(needed.items()))


class _Heads:
    """The heads of rules, by their constants."""

    def __init__(self, rules: Sequence[Rule]):
        self._rules = rules
        self._all: dict[str, list[int]] = defaultdict(list)
        self._with: dict[tuple[str, int, Value | None], list[int]] = defaultdict(list)
        for i, rule in enumerate(rules):
            head = rule.head
            self._all[head.predicate].append(i)
            for column, term in enumerate(head.terms):
                self._with[head.predicate, column, term.value if isinstance(term, Constant) else None].append(i)

    def matching(self, atom: Atom) -> Iterator[int]:
        """Yield the numbers of the rules whose heads share an instance with an atom."""
        found = self._all[atom.predicate]
        for column, term in enumerate(atom.terms):
            if isinstance(term, Constant):
                mine = self._with[atom.predicate, column, term.value] + self._with[atom.predicate, column, None]
                found = min(found, mine, key=len)
        return (i for i in found if share_an_instance(atom, self._rules[i].head))


def asks_for_loops(rule: Rule, equality: Equality) -> bool:
    """Return whether a rule may find that a constant equals itself which no other atom of its body has found."""
    found = _mentioned(rule, equality)
    return any(
        not (isinstance(term, Variable) and term.name in found)
        for atom in rule.positive
        if equality.may_be(atom)
        for term in (atom.terms[side] for side in equality.sides)
    )


def _mentioned(rule: Rule, equality: Equality) -> set[str]:
    """Return the variables that facts other than equalities bind."""
    return {name for atom in rule.positive if not equality.may_be(atom) for name in atom.variables()}


def _refuse_above(core: Core, rules: Sequence[Rule], needed: Mapping[int, Reason]) -> None:
    values = {aggregation.relation for aggregation in core.aggregations}
    problems = [
        _above(core, rules, needed, i, does) for i in needed if (does := _needs_constants(rules[i], values)) is not None
    ]
    if problems:
        raise ProgramError(problems)


def _needs_constants(rule: Rule, values: Set[str]) -> str | None:
    """Return what a rule does with constants that takes all equalities to be known, if it does."""
    if rule.negative:
        return "negates"
    if rule.builtins:
        return "compares or computes with"
    return "aggregates" if any(atom.predicate in values for atom in rule.positive) else None


def _above(core: Core, rules: Sequence[Rule], needed: Mapping[int, Reason], i: int, does: str) -> Problem:
    rule, negative = rules[i].whole, rules[i].negative
    path = [f"!{atom_text(negative[0])}"] if negative else []
    related: list[tuple[str, Span]] = []
    at: int | None = i
    while at is not None:
        asking, atom, mentions = needed[at]
        if not core.predicates[atom.predicate].hidden:
            path.append(atom_text(atom))
            if asking is not None and (span := rules[asking].span):
                head, what = quote(atom_text(rules[asking].whole.head)), quote(path[-1])
                how = f"each constant that {what} mentions, since it equals itself" if mentions else what
                related.append((f"{head} depends on {how}", span))
        at = asking
    return Problem(
        "rewrite-positive-only",
        f"an equality depends on a rule that {does} constants: {' <- '.join(reversed(path))}",
        rule.span,
        related=tuple(related),
        note="what a rule negates, compares, aggregates or computes with may be any of several equal constants, so all "
        "equalities must be known before it is applied",
        hint=_way_out(rule),
    )


def _way_out(rule: Rule) -> str:
    if rule.span and rule.span.source.name.startswith("owl2rl/"):
        return "use the rule set `owl2rl-rewrite`, which is `owl2rl` without these rules"
    return "break the cycle; where nothing is negated, `equality=axioms` keeps each constant and its facts"


# -- the upper layer ---------------------------------------------------------------------------------------------------


class Upper:
    """The rules above the equalities, rewritten; `hidden` has the relations added for this."""

    def __init__(self, core: Core, equality: Equality, exact: Set[str]):
        self._core, self._equality, self._exact = core, equality, exact
        self.hidden = {p.name: p for p in (MEMBER, REPRESENTED, LOOP)}

    def with_own_constants(self, rule: Rule, written: Rule) -> Rule:
        """Return a rule whose atoms of exact relations have the constants that it was written with."""

        def atoms(now: Sequence[Atom], then: Sequence[Atom]) -> tuple[Atom, ...]:
            return tuple(w if w.predicate in self._exact else a for a, w in zip(now, then, strict=True))

        (head,) = atoms((rule.head,), (written.head,))
        positive, negative = atoms(rule.positive, written.positive), atoms(rule.negative, written.negative)
        if (head, positive, negative) == (rule.head, rule.positive, rule.negative):
            return rule
        return replace(rule, head=head, positive=positive, negative=negative, part_of=rule.whole)

    def over_members(self, aggregation: Aggregation, rules: list[Rule]) -> Aggregation:
        """Return an aggregation over facts of constants themselves, with rules for these if there are none yet."""
        if aggregation.body in self._exact:
            return aggregation
        body = self._core.predicates[aggregation.body]
        name = f"$members of {body.name}"
        if name not in self.hidden:
            self.hidden[name] = replace(body, name=name, hidden=True)
            terms = tuple(map(Variable, body.columns))
            constants = [body.columns[i] for i in constant_columns(body.types)]
            itself = {column: Variable(_member(column)) for column in constants}
            rules += self._looking(
                Rule(substitute_atom(Atom(name, terms), itself), (Atom(body.name, terms),)), constants
            )
        return replace(aggregation, body=name)

    def taken_apart(self, rule: Rule) -> Iterator[Rule]:
        """Yield rules over normal facts that come to what a rule says of their expansions."""
        for told in self._told_of_loops(rule):
            tells, guarded = self._without_loops(told)
            for part in (*tells, guarded):
                yield from self._expanded(part)

    def loops(self, rules: Sequence[Rule]) -> list[Rule]:
        """Return the rules by which constants that heads bring equal themselves."""
        result: dict[object, Rule] = {}
        for rule in rules:
            if rule.head.predicate in self.hidden or self._core.predicates[rule.head.predicate].hidden:
                continue
            seen = {name for atom in rule.positive if self._is_seen(atom) for name in atom.variables()}
            for column in constant_columns(self._core.predicates[rule.head.predicate].types):
                term = rule.head.terms[column]
                if not (isinstance(term, Variable) and term.name in seen):
                    key = pattern_of(Atom(rule.head.predicate, (*rule.head.terms, term)))
                    result.setdefault(key, Rule(Atom(LOOP.name, (term,)), (rule.head,), part_of=rule.whole))
        return list(result.values())

    def _is_seen(self, atom: Atom) -> bool:
        """Return whether the constants of an atom's facts equal themselves."""
        if atom.predicate == LOOP.name:
            return True
        return atom.predicate not in self.hidden and not self._core.predicates[atom.predicate].hidden

    def _relation(self, kind: str, terms: Sequence[CoreTerm], rule: Rule) -> Atom:
        """Return an atom of a new hidden relation, of variables and constants of a rule."""
        name = f"${kind} {len(self.hidden)}"
        columns = tuple(f"c{i}" for i in range(len(terms)))
        types = {
            term: type
            for atom in rule.positive
            if atom.predicate in self._core.predicates
            for term, type in zip(atom.terms, self._core.predicates[atom.predicate].types, strict=True)
        }
        self.hidden[name] = Predicate(name, columns, tuple(types.get(term, "term") for term in terms), hidden=True)
        return Atom(name, tuple(terms))

    def _told_of_loops(self, rule: Rule) -> Iterator[Rule]:
        """Yield a rule, and what becomes of it where equalities it asks for are of constants with themselves."""
        asking = [atom for atom in rule.positive if self._equality.may_be(atom)]
        for chosen in _subsets(asking):
            if (variant := self._where_equal(rule, chosen)) is not None:
                yield variant

    def _where_equal(self, rule: Rule, equalities: Sequence[Atom]) -> Rule | None:
        """Return a rule where some of its atoms say that a constant equals itself."""
        kept = replace(rule, positive=tuple(a for a in rule.positive if a not in equalities), part_of=rule.whole)
        sides: list[CoreTerm] = []
        by: dict[str, CoreTerm] = {}
        for atom in equalities:
            unified = self._unified(substitute_atom(atom, by))
            if unified is None:
                return None
            by = {**{name: substitute_term(term, unified) for name, term in by.items()}, **unified}
            sides.append(atom.terms[self._equality.sides[0]])
        kept = substitute_rule(kept, by)
        seen = {name for atom in kept.positive if self._is_seen(atom) for name in atom.variables()}
        ends = dict.fromkeys(substitute_term(side, by) for side in sides)
        asked = tuple(Atom(LOOP.name, (t,)) for t in ends if not (isinstance(t, Variable) and t.name in seen))
        return replace(kept, positive=(*kept.positive, *asked)) if equalities else rule

    def _unified(self, atom: Atom) -> dict[str, CoreTerm] | None:
        """Return by what variables are replaced where an atom says that a constant equals itself."""
        equality = self._equality
        by: dict[str, CoreTerm] = {}
        term = atom.terms[equality.column]
        if isinstance(term, Variable):
            by[term.name] = Constant(equality.value, "term")
        elif term.value != equality.value:
            return None
        left, right = (substitute_term(atom.terms[side], by) for side in equality.sides)
        if isinstance(right, Variable):
            by[right.name] = left
        elif isinstance(left, Variable):
            by[left.name] = right
        elif left.value != right.value:
            return None
        return by

    def _without_loops(self, rule: Rule) -> tuple[list[Rule], Rule]:
        """Return a rule that negates an equality, and rules for the reflexive equalities that it needs."""
        tells: list[Rule] = []
        negative = list(rule.negative)
        bound = {name for atom in rule.positive for name in atom.variables()}
        for atom in rule.negative:
            if not self._equality.may_be(atom) or (by := self._unified(atom)) is None:
                continue
            if not bound.issuperset(atom.variables()):
                raise ProgramError([_computed_equality(rule)])
            same = self._relation("same", atom.terms, rule)
            tells.append(substitute_rule(Rule(same, rule.positive, (), (), rule.span, rule.whole), by))
            negative.append(same)
        return tells, replace(rule, negative=tuple(negative), part_of=rule.whole)

    def _expanded(self, rule: Rule) -> Iterator[Rule]:
        """Yield a rule whose built-ins and atoms of exact relations look at all members of classes.

        A variable that an atom of another relation binds is a representative there, and one of the members where it is
        looked at. A variable that only built-ins and exact relations bind is a constant itself, and is represented in
        the head and in negated atoms.
        """
        normal = {name for atom in rule.positive if atom.predicate not in self._exact for name in atom.variables()}
        exact = [atom for atom in (rule.head, *rule.atoms) if atom.predicate in self._exact]
        parts: list[Builtin | Atom] = [*rule.builtins, *exact]
        looked_at = dict.fromkeys(name for part in parts for name in part.variables())
        members = [name for name in looked_at if name in normal]
        others = [atom for atom in (rule.head, *rule.negative) if atom.predicate not in self._exact]
        alone = list(dict.fromkeys(name for atom in others for name in atom.variables() if name not in normal))
        rule = self._with_both_names(rule, members, alone)
        bound = {name for atom in rule.positive for name in atom.variables()}
        if bound.issuperset(alone):
            for looking in self._looking(rule, members):
                yield from self._represented(looking, alone)
            return
        # An equation binds what no atom does, so its value is represented by another rule.
        negated = [atom for atom in rule.negative if atom.predicate not in self._exact]
        represented = {_representative(name) for name in alone}
        names = dict.fromkeys(name for atom in (rule.head, *negated) for name in atom.variables())
        columns = [*map(Variable, alone), *(Variable(n) for n in names if n not in represented)]
        head = self._relation("made", columns, rule)
        decided = tuple(atom for atom in rule.negative if atom not in negated)
        yield from self._looking(replace(rule, head=head, negative=decided), members)
        yield from self._represented(replace(rule, positive=(head,), negative=tuple(negated), builtins=()), alone)

    def _with_both_names(self, rule: Rule, members: Sequence[str], alone: Sequence[str]) -> Rule:
        """Return a rule with another variable for each constant that is looked at itself, and for each that is not."""
        itself = {name: Variable(_member(name)) for name in members}
        represented = {name: Variable(_representative(name)) for name in alone}

        def named(atom: Atom) -> Atom:
            return substitute_atom(atom, itself if atom.predicate in self._exact else represented)

        return replace(
            rule,
            head=named(rule.head),
            positive=tuple(map(named, rule.positive)),
            negative=tuple(map(named, rule.negative)),
            builtins=tuple(substitute_builtin(builtin, itself) for builtin in rule.builtins),
        )

    def _looking(self, rule: Rule, names: Sequence[str]) -> Iterator[Rule]:
        """Yield a rule in which representatives look at themselves, or at other members of their classes.

        A few variables take a rule for each choice. Where there are more, members of the first ones are found before,
        one variable after the other.
        """
        begin = max(len(names) - MOST_CHOICES, 0)
        early, names = names[:begin], names[begin:]
        for number, name in enumerate(early):
            rule = yield from self._finding_member(rule, name, {_member(later) for later in (*early[number:], *names)})
        for chosen in _subsets(names):
            members = tuple(Atom(MEMBER.name, (Variable(name), Variable(_member(name)))) for name in chosen)
            looking = substitute_rule(rule, {_member(n): Variable(n) for n in names if n not in chosen})
            yield replace(looking, positive=(*looking.positive, *members), part_of=rule.whole)

    def _finding_member(self, rule: Rule, name: str, unknown: Set[str]) -> Generator[Rule, None, Rule]:
        """Yield rules that find the members of the class of a variable, and return the rule that asks for them.

        They ask for what the rule does without the members in `unknown`, of which this is one.
        """
        before = tuple(atom for atom in rule.positive if unknown.isdisjoint(atom.variables()))
        rest = tuple(atom for atom in rule.positive if atom not in before)
        parts: list[Builtin | Atom] = [rule.head, *rest, *rule.negative, *rule.builtins]
        used = {name for part in parts for name in part.variables()}
        columns = dict.fromkeys(n for a in before for n in a.variables() if n in used or _member(n) in unknown)
        member = Variable(_member(name))
        head = self._relation("looked at", (*map(Variable, columns), member), rule)
        finding = replace(rule, head=head, positive=before, negative=(), builtins=(), part_of=rule.whole)
        yield substitute_rule(finding, {member.name: Variable(name)})
        yield replace(finding, positive=(*before, Atom(MEMBER.name, (Variable(name), member))))
        return replace(rule, positive=(head, *rest), part_of=rule.whole)

    def _represented(self, rule: Rule, names: Sequence[str]) -> Iterator[Rule]:
        """Yield a rule in which constants represent themselves, or others do."""
        for chosen in _subsets(names):
            members = tuple(Atom(MEMBER.name, (Variable(_representative(name)), Variable(name))) for name in chosen)
            alone = [name for name in names if name not in chosen]
            none = tuple(Atom(REPRESENTED.name, (Variable(name),)) for name in alone)
            part = substitute_rule(rule, {_representative(name): Variable(name) for name in alone})
            positive, negative = (*part.positive, *members), (*part.negative, *none)
            yield replace(part, positive=positive, negative=negative, part_of=rule.whole)


def _member(name: str) -> str:
    return f"{name} member"


def _representative(name: str) -> str:
    return f"{name} representative"


def _computed_equality(rule: Rule) -> Problem:
    return Problem(
        "rewrite-positive-only",
        f"a rule negates an equality of what it computes: {quote(rule.whole)}",
        rule.span,
        note="whether a constant equals itself depends on whether some fact mentions it",
        hint="compare what is computed by `FILTER` instead, or derive it by a rule of its own",
    )


def _subsets(things: Sequence[T]) -> Iterator[tuple[T, ...]]:
    return chain.from_iterable(combinations(things, size) for size in range(len(things) + 1))
