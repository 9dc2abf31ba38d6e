"""Random programs, facts and updates. A new feature of the language joins them here.

One generator serves Hypothesis, which shrinks what fails, and plain seeds, which are quick and can be replayed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from hypothesis import strategies as st

Row = tuple[int | float | str, ...]
FactsGiven = dict[str, list[Row]]

#: Few values, so that joins meet.
DOMAIN = range(5)


@dataclass
class Update:
    deletions: FactsGiven
    insertions: FactsGiven


@dataclass
class Case:
    """A program as text, the facts it starts from, and updates to go through one after the other."""

    program: str
    facts: FactsGiven
    updates: list[Update] = field(default_factory=list)
    dialect: str = "dl"

    def __str__(self) -> str:
        return f"{self.program}\nfacts: {self.facts}\nupdates: {self.updates}"


@dataclass(frozen=True)
class _Relation:
    name: str
    arity: int
    #: Negation only looks at lower levels, so every program can be stratified.
    level: int


def random_case(r: Random, updates: int = 0) -> Case:
    """Return a stratified program over numbers, with facts of any of its relations."""
    return random_cases(r, updates)[0]


def random_cases(r: Random, updates: int, count: int = 1) -> list[Case]:
    """Return cases of one such program, each with facts and updates of its own."""
    relations = [_Relation(f"r{i}", r.choice((0, 1, 1, 2, 2, 2, 3)), r.randint(0, 3)) for i in range(r.randint(2, 6))]
    lines = [f".decl {p.name}({', '.join(f'a{i}:number' for i in range(p.arity))})" for p in relations]
    lines += [_rule(r, relations) for _ in range(r.randint(1, 7))]
    return [_case_of(r, lines, relations, _facts(r, relations, 0.6), updates) for _ in range(count)]


def _case_of(r: Random, lines: Sequence[str], relations: Sequence[_Relation], facts: FactsGiven, updates: int) -> Case:
    return Case("\n".join(lines), facts, _updates(r, relations, facts, updates))


def _updates(r: Random, relations: Sequence[_Relation], facts: FactsGiven, count: int) -> list[Update]:
    """Return large updates at random, and small ones that delete what is explicit."""
    explicit = {(name, row) for name, rows in facts.items() for row in rows}
    updates = []
    for _ in range(count):
        if r.random() < 0.4:
            u = Update(_facts(r, relations, 0.4), _facts(r, relations, 0.3))
        else:
            u = Update(_by_name(r.sample(sorted(explicit), min(len(explicit), r.randint(0, 3)))), {})
            if r.random() < 0.5:
                p = r.choice(relations)
                u.insertions[p.name] = [tuple(r.choice(DOMAIN) for _ in range(p.arity))]
        explicit -= {(name, row) for name, rows in u.deletions.items() for row in rows}
        explicit |= {(name, row) for name, rows in u.insertions.items() for row in rows}
        updates.append(u)
    return updates


def _by_name(facts: Iterable[tuple[str, Row]]) -> FactsGiven:
    given: FactsGiven = {}
    for name, row in facts:
        given.setdefault(name, []).append(row)
    return given


def _facts(r: Random, relations: Sequence[_Relation], density: float) -> FactsGiven:
    chosen = [p for p in relations if r.random() < density]
    return {
        p.name: sorted({tuple(r.choice(DOMAIN) for _ in range(p.arity)) for _ in range(r.randint(1, 6))})
        for p in chosen
    }


def _rule(r: Random, relations: Sequence[_Relation]) -> str:
    head = r.choice(relations)
    variables = ["x", "y", "z", "u"][: r.randint(1, 4)]

    def term(wildcard: float = 0.0) -> str:
        if r.random() < wildcard:
            return "_"
        return str(r.choice(DOMAIN)) if r.random() < 0.12 else r.choice(variables)

    def atom(p: _Relation, wildcard: float = 0.0) -> str:
        return f"{p.name}({', '.join(term(wildcard) for _ in range(p.arity))})"

    lower = [p for p in relations if p.level <= head.level]
    body = [atom(r.choice(lower), 0.08) for _ in range(r.randint(1, 3))]
    if len(body) > 1 and r.random() < 0.3:
        body[0] = atom(head)
    text = ", ".join(body)
    bound = [v for v in variables if v in text.replace("r", "")]
    literals = list(body)
    below = [p for p in relations if p.level < head.level]
    if below and r.random() < 0.4:
        negated = r.choice(below)
        literals.append(f"!{negated.name}({', '.join(_bound(r, bound, 0.15) for _ in range(negated.arity))})")
    if bound and r.random() < 0.25:
        literals.append(f"{r.choice(bound)} {r.choice(('<', '!=', '<=', '='))} {_bound(r, bound)}")
    computed = None
    if bound and r.random() < 0.2:
        computed = "w"
        literals.append(f"w = {r.choice(bound)} {r.choice(('+', '*', '-'))} {_bound(r, bound)}")
        literals.append("w < 6, w > -3")  # recursion through arithmetic ends
    r.shuffle(literals)
    values = [computed if computed and r.random() < 0.5 else _bound(r, bound) for _ in range(head.arity)]
    return f"{head.name}({', '.join(values)}) :- {', '.join(literals)}."


def _bound(r: Random, bound: Sequence[str], wildcard: float = 0.0) -> str:
    if r.random() < wildcard:
        return "_"
    return r.choice(bound) if bound and r.random() < 0.85 else str(r.choice(DOMAIN))


def cases(updates: int = 0) -> st.SearchStrategy[Case]:
    """Random cases that Hypothesis can shrink."""
    return st.randoms(use_true_random=False).map(lambda r: random_case(r, updates))


# -- programs in components -------------------------------------------------------------------------------------------


def within_components(r: Random, case: Case) -> tuple[Case, dict[str, str]]:
    """Return a case whose program is cut into components, and the name there of each relation.

    Declarations stand in a base, in the component derived from it, in the one around that, or outside; rules stand in
    the first two and call all relations by their plain names.
    """
    declarations = {line.split("(")[0].split()[1]: line for line in case.program.splitlines() if line[0] == "."}
    places = {name: r.choice(("base", "derived", "outer", "outside")) for name in declarations}
    contents: dict[str, list[str]] = {place: [] for place in ("base", "derived", "outer", "outside")}
    for name, line in declarations.items():
        contents[places[name]].append(line if places[name] == "outside" else line.replace(":number", ":N"))
    for line in case.program.splitlines():
        if line[0] != ".":
            contents[r.choice(("base", "derived"))].append(line)
    text = {place: "\n".join(lines) for place, lines in contents.items()}
    program = (
        f".comp Outer<N> {{\n.comp Derived<N> : Base<N> {{\n{text['derived']}\n}}\n"
        f"{text['outer']}\n.init inner = Derived<N>\n}}\n"
        f".comp Base<N> {{\n{text['base']}\n}}\n{text['outside']}\n.init outer = Outer<number>\n"
    )
    prefixes = {"base": "outer.inner.", "derived": "outer.inner.", "outer": "outer.", "outside": ""}
    names = {name: prefixes[place] + name for name, place in places.items()}

    def renamed(facts: FactsGiven) -> FactsGiven:
        return {names[name]: rows for name, rows in facts.items()}

    updates = [Update(renamed(u.deletions), renamed(u.insertions)) for u in case.updates]
    return Case(program, renamed(case.facts), updates), names


def component_cases(updates: int = 0) -> st.SearchStrategy[Case]:
    """Random cases in components, which Hypothesis can shrink."""
    return st.randoms(use_true_random=False).map(lambda r: within_components(r, random_case(r, updates))[0])


# -- programs of every type -------------------------------------------------------------------------------------------

Value = int | float | str

#: Few values of each type, so that joins meet; among them the widest, the like of which in 32 bits is there as well.
VALUES: dict[str, tuple[Value, ...]] = {
    "number": (0, 1, 2, 3, -1, -2, 7, 2**31, 2**32 + 1, -(2**32) + 2, 2**63 - 1, -(2**63)),
    "unsigned": (0, 1, 2, 3, 2**32 + 1, 2**63, 2**64 - 1),
    "float": (0.0, -0.0, 1.0, 1.5, -2.25, 1e300, float("inf"), float("nan")),
    "symbol": ("", "a", "b", "ab", "ü", "1", "-3", "a b"),
}

#: Expressions of each type over a and b of that type, n a number and s a symbol.
FUNCTORS: dict[str, tuple[str, ...]] = {
    "number": (
        *("a + b", "a - b", "a * b", "a / b", "a % b", "-a", "a band b", "a bxor b", "a bshl b", "bnot a", "a land b"),
        *("min(a, b)", "max(a, b)", "strlen(s)", "ord(s)", "strlen(cat(s, to_string(a)))"),
    ),
    "unsigned": ("a + b", "a * b", "a / b", "a bor b", "a bshru b", "max(a, b)", "to_unsigned(strlen(s))"),
    "float": ("a + b", "a - b", "a * b", "a / b", "a % b", "-a", "min(a, b)", "to_float(n)"),
    "symbol": ("cat(a, b)", "substr(a, 0, 1)", "substr(a, n, 2)", "to_string(n)", "max(a, b)", 'cat(a, "-", b)'),
}

#: Generators of each type; those that start from a value stay near it.
GENERATORS: dict[str, tuple[str, ...]] = {
    "number": ("range(0, 4)", "range(2, -2)", "range(a, a + 3)", "range(0, 9, 4)"),
    "unsigned": ("range(0u, 3u)", "range(a, a + 2u)"),
    "float": ("range(0.0, 2.0, 0.5)", "range(a, a + 1.0)"),
}

COMPARISONS = ("<", "<=", ">", ">=", "!=", "=")
SYMBOL_TESTS = ('match("a.*", {0})', 'contains({0}, "a b")', '!match("[ab]+", {0})', "!contains({0}, {1})")


@dataclass(frozen=True)
class _TypedRelation:
    name: str
    types: tuple[str, ...]
    #: Negation and computed values only look at lower levels, so every program can be stratified and ends.
    level: int


def random_typed_case(r: Random, updates: int = 0) -> Case:
    """Return a stratified program over all types, with functors and generators, up to 16 columns, and facts for it."""
    relations = []
    for i in range(r.randint(2, 5)):
        arity = 16 if r.random() > 0.94 else r.choice((0, 1, 1, 2, 2, 2, 3, 4))
        kinds = r.choices(list(VALUES), (4, 1, 2, 3), k=r.randint(1, 2))
        relations.append(_TypedRelation(f"r{i}", tuple(r.choice(kinds) for _ in range(arity)), r.randint(0, 3)))
    lines = [f".decl {p.name}({', '.join(f'a{i}:{t}' for i, t in enumerate(p.types))})" for p in relations]
    lines += [_TypedRule(r, relations).text for _ in range(r.randint(2, 6))]
    facts = _typed_facts(r, relations, 0.85)
    steps = [Update(_typed_facts(r, relations, 0.4), _typed_facts(r, relations, 0.3)) for _ in range(updates)]
    return Case("\n".join(lines), facts, steps)


def _typed_facts(r: Random, relations: Sequence[_TypedRelation], density: float) -> FactsGiven:
    def value(type: str) -> Value:
        return r.choice(VALUES[type][: 3 if r.random() < 0.75 else None])

    chosen = [p for p in relations if r.random() > 1 - density]
    return {p.name: [tuple(value(t) for t in p.types) for _ in range(r.randint(2, 7))] for p in chosen}


class _TypedRule:
    """A random rule; `bound` holds the variables of each type that its body binds."""

    def __init__(self, r: Random, relations: Sequence[_TypedRelation]):
        self.r = r
        self.bound: dict[str, list[str]] = {type: [] for type in VALUES}
        self.variables = {type: [f"{type[0]}{i}" for i in range(r.randint(2, 4))] for type in VALUES}
        head = r.choice(relations)
        below = [p for p in relations if p.level < head.level]
        computes = bool(below) and r.random() < 0.5
        body = below if computes else [p for p in relations if p.level <= head.level]
        literals = [self.atom(r.choice(body)) for _ in range(r.choice((1, 1, 2, 2, 3)))]
        if below and r.random() < 0.4:
            negated = r.choice(below)
            literals.append(f"!{negated.name}({', '.join(self.known(t, wildcard=0.2) for t in negated.types)})")
        if r.random() < 0.4:
            literals.append(self.comparison())
        if computes:
            literals += [self.computed(i) for i in range(r.randint(1, 2))]
        r.shuffle(literals)
        values = [self.known(t) for t in head.types]
        self.text = f"{head.name}({', '.join(values)}) :- {', '.join(literals)}."

    def atom(self, p: _TypedRelation) -> str:
        return f"{p.name}({', '.join(map(self.term, p.types))})"

    def term(self, type: str) -> str:
        if self.r.random() < 0.1:
            return "_"
        if self.r.random() < 0.1:
            return self.constant(type)
        name = self.r.choice(self.variables[type])
        if name not in self.bound[type]:
            self.bound[type].append(name)
        return name

    def known(self, type: str, wildcard: float = 0.0) -> str:
        if self.r.random() < wildcard:
            return "_"
        return self.r.choice(self.bound[type]) if self.bound[type] and self.r.random() < 0.85 else self.constant(type)

    def constant(self, type: str) -> str:
        value = self.r.choice(VALUES[type][:4])
        return f'"{value}"' if type == "symbol" else f"{value}u" if type == "unsigned" else str(value)

    def comparison(self) -> str:
        type = self.r.choice([t for t in VALUES if self.bound[t]] or ["number"])
        if type == "symbol" and self.r.random() < 0.5:
            return self.r.choice(SYMBOL_TESTS).format(self.known(type), self.known(type))
        return f"{self.known(type)} {self.r.choice(COMPARISONS)} {self.known(type)}"

    def computed(self, i: int) -> str:
        """Return an equation that binds a new variable, or tests one."""
        type = self.r.choice([t for t in VALUES if self.bound[t]] or ["number"])
        generates = type in GENERATORS and self.r.random() < 0.3
        pattern = self.r.choice((GENERATORS if generates else FUNCTORS)[type])
        types = {"a": type, "b": type, "n": "number", "s": "symbol"}
        places = {name: self.known(t) for name, t in types.items()}
        expression = re.sub(r'"[^"]*"|\b[abns]\b', lambda m: places.get(m[0], m[0]), pattern)
        name = self.r.choice(self.bound[type]) if self.bound[type] and self.r.random() < 0.15 else f"{type[0]}c{i}"
        if name not in self.bound[type]:
            self.bound[type].append(name)
        sides = (name, expression) if self.r.random() < 0.8 else (expression, name)
        return f"{sides[0]} = {sides[1]}"


def typed_cases(updates: int = 0) -> st.SearchStrategy[Case]:
    """Random cases of every type that Hypothesis can shrink."""
    return st.randoms(use_true_random=False).map(lambda r: random_typed_case(r, updates))


# -- rules with cycles ------------------------------------------------------------------------------------------------


def random_cyclic_case(r: Random, updates: int = 0, longest: int = 5) -> Case:
    """Return a stratified program whose rule bodies go round in circles, some of them recursive, and facts for it."""
    return random_cyclic_cases(r, updates, longest=longest)[0]


def random_cyclic_cases(r: Random, updates: int, count: int = 1, longest: int = 5) -> list[Case]:
    """Return cases of one such program, each with facts and updates of its own."""
    relations = [_Relation(f"r{i}", r.choice((1, 2, 2, 2, 3)), r.randint(0, 2)) for i in range(r.randint(2, 4))]
    relations.append(_Relation("edge", 2, 0))
    lines = [f".decl {p.name}({', '.join(f'a{i}:number' for i in range(p.arity))})" for p in relations]
    lines += [_cyclic_rule(r, relations, longest) for _ in range(r.randint(1, 3))]
    cases = []
    for _ in range(count):
        facts = _facts(r, relations, 0.8)
        facts["edge"] = sorted({(r.choice(DOMAIN), r.choice(DOMAIN)) for _ in range(r.randint(6, 16))})
        cases.append(_case_of(r, lines, relations, facts, updates))
    return cases


def _cyclic_rule(r: Random, relations: Sequence[_Relation], longest: int) -> str:
    head = r.choice(relations)
    variables = [f"x{i}" for i in range(r.randint(3, longest))]
    lower = [p for p in relations if p.level <= head.level and p.arity]
    body = []
    for i, v in enumerate(variables):
        around = [v, variables[(i + 1) % len(variables)]]
        p = r.choice([p for p in lower if p.arity > 1] + [relations[-1]])
        terms = [*around, *r.choices([*variables, "_", str(r.choice(DOMAIN))], k=p.arity - 2)]
        r.shuffle(terms)
        body.append(f"{p.name}({', '.join(terms)})")
    for _ in range(r.choice((0, 0, 0, 1, 2))):
        p = r.choice(lower)
        body.append(f"{p.name}({', '.join(r.choices([*variables, 'y', str(r.choice(DOMAIN))], k=p.arity))})")
    below = [p for p in relations if p.level < head.level]
    if below and r.random() < 0.4:
        p = r.choice(below)
        body.append(f"!{p.name}({', '.join(_bound(r, variables, 0.1) for _ in range(p.arity))})")
    if r.random() < 0.4:
        body.append(f"{r.choice(variables)} {r.choice(('<', '!=', '<='))} {_bound(r, variables)}")
    if r.random() < 0.2:
        body.append(f"{r.choice(variables)} {r.choice('+*/%')} {r.choice(variables)} < {_bound(r, variables)}")
    if r.random() < 0.25:
        body.append(f"w = {r.choice(variables)} {r.choice(('+', '*', '/'))} {r.choice(variables)}")
        body.append("w < 6, w > -3")  # recursion through arithmetic ends
        variables.append("w")
    r.shuffle(body)
    return f"{head.name}({', '.join(_bound(r, variables) for _ in range(head.arity))}) :- {', '.join(body)}."


def cyclic_cases(updates: int = 0) -> st.SearchStrategy[Case]:
    """Random cases with cyclic rules that Hypothesis can shrink."""
    return st.randoms(use_true_random=False).map(lambda r: random_cyclic_case(r, updates))


# -- walks on graphs --------------------------------------------------------------------------------------------------

#: More values than elsewhere, so that walks are long and rounds many.
NODES = range(7)

_WALKS = (
    "path(x, y) :- edge(x, y).",
    "path(x, z) :- path(x, y), edge(y, z).",
    "path(x, z) :- edge(x, y), path(y, z).",
    "path(x, z) :- path(x, y), path(y, z).",
    "path(x, y) :- path(y, x).",
    "path(x, z) :- path(x, y), edge(y, z), !closed(z).",
    "path(x, x) :- edge(x, _).",
    "edge(x, y) :- path(y, x), closed(x).",
    "reached(y) :- reached(x), edge(x, y).",
    "reached(y) :- reached(x), path(x, y), x != y.",
    "reached(x) :- path(0, x), path(x, 0).",
    "lost(x) :- edge(x, _), !reached(x).",
    "lost(y) :- lost(x), path(x, y), !closed(y).",
    "far(x, n) :- reached(x), lost(_), n = 0.",
    "far(y, m) :- far(x, n), edge(x, y), m = n + 1, m < 7.",
)


def random_graph_case(r: Random, updates: int = 0) -> Case:
    """Return a program of walks on a sparse graph, and small updates. Facts have few proofs, or lean on themselves."""
    return random_graph_cases(r, updates)[0]


def random_graph_cases(r: Random, updates: int, count: int = 1) -> list[Case]:
    """Return cases of one such program, each with a graph and updates of its own."""
    relations = [_Relation("edge", 2, 0), _Relation("path", 2, 0), _Relation("closed", 1, 0)]
    relations += [_Relation("reached", 1, 0), _Relation("lost", 1, 0), _Relation("far", 2, 0)]
    lines = [f".decl {p.name}({', '.join(f'a{i}:number' for i in range(p.arity))})" for p in relations]
    lines += r.sample(_WALKS, r.randint(3, 8))
    return [Case("\n".join(lines), *_graph(r, relations, updates)) for _ in range(count)]


def _graph(r: Random, relations: Sequence[_Relation], updates: int) -> tuple[FactsGiven, list[Update]]:
    edges = sorted({(r.choice(NODES), r.choice(NODES)) for _ in range(r.randint(5, 12))})
    facts: FactsGiven = {"edge": list(edges), "reached": [(0,)], "closed": [(r.choice(NODES),)]}
    steps = []
    for _ in range(updates):
        gone = r.sample(edges, min(len(edges), r.randint(0, 3)))
        new = {(r.choice(NODES), r.choice(NODES)) for _ in range(r.randint(0, 3))}
        edges = sorted((set(edges) - set(gone)) | new)
        step = Update({"edge": gone}, {"edge": sorted(new)})
        if r.random() < 0.4:
            other = r.choice(relations[1:])
            (step.deletions if r.random() < 0.5 else step.insertions)[other.name] = [
                tuple(r.choice(NODES) for _ in range(other.arity))
            ]
        steps.append(step)
    return facts, steps


def graph_cases(updates: int = 0) -> st.SearchStrategy[Case]:
    """Random walks on graphs that Hypothesis can shrink."""
    return st.randoms(use_true_random=False).map(lambda r: random_graph_case(r, updates))
