"""Derive a workload with DuckDB: the rules as SQL, results held in tables.

Relations are made in the order of their dependencies. Recursion through a relation's own linear rules is a recursive
common table expression with UNION, which keeps rows distinct and joins the newest ones only. Other recursion is one
with USING KEY, where all rows found so far can be read, or, for relations that need each other, a loop of statements
that join the newest rows. Of the ways to write each that we tried, the quickest is used; README.md has the list.

    python -m benchmarks.engines.duckdb FOLDER BYTES [THREADS]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import duckdb

from benchmarks.measure.spending import Measurement, Spent, asked, peak_memory, spending
from benchmarks.workloads.rulesets import Atom, Rule, Ruleset, read_program, read_sum, variables_of

TYPES = {"number": "INTEGER", "symbol": "VARCHAR"}


def columns(arity: int) -> list[str]:
    return [f"c{i}" for i in range(arity)]


def select(rule: Rule, tables: Mapping[int, str]) -> str:
    """Return a rule as a query; `tables` names what body atoms read, by position, where it is not their relation."""
    places: dict[str, str] = {}
    conditions, sources = [], []
    for number, atom in enumerate(rule.body):
        sources.append(f"{tables.get(number, atom.relation)} AS t{number}")
        for column, term in enumerate(atom.terms):
            place = f"t{number}.c{column}"
            if term != "_" and places.setdefault(term, place) != place:
                conditions.append(f"{places[term]} = {place}")

    def value(term: str) -> str:
        summed = read_sum(term)
        return f"{places[summed[0]]} + {summed[1]}" if summed else places.get(term, term)

    conditions += [absent(atom, value) for atom in rule.negated]
    conditions += [f"{value(c.left)} {c.operator} {value(c.right)}" for c in rule.comparisons]
    heads = ", ".join(f"{value(term)} AS c{i}" for i, term in enumerate(rule.head.terms))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {heads} FROM {', '.join(sources)}{where}"


def absent(atom: Atom, value: Callable[[str], str]) -> str:
    """Return the condition that no fact matches a negated atom."""
    known = [f"n.c{column} = {value(term)}" for column, term in enumerate(atom.terms) if term != "_"]
    return f"NOT EXISTS (FROM {atom.relation} AS n WHERE {' AND '.join(known)})"


def is_injective(rule: Rule) -> bool:
    """Whether different instances always have different heads, so that nothing need be made distinct."""
    return {t for a in rule.body for t in a.terms} <= variables_of(rule.head)


class Evaluation:
    """Facts of one program in a database of their own."""

    def __init__(self, folder: Path, limit: int, threads: int = 1):
        self.folder = folder
        self.program: Ruleset = read_program((folder / "program.dl").read_text(encoding="utf-8"))
        self.components = list(self.program.components())
        self.db = duckdb.connect(config={"threads": threads, "memory_limit": f"{limit // 1_000_000}MB"})

    def columns(self, name: str) -> list[tuple[str, str]]:
        """Return the names and types of the columns of a relation."""
        return [(f"c{i}", TYPES[type]) for i, type in enumerate(self.program.types[name])]

    def _declared(self, name: str) -> str:
        return ", ".join(f"{column} {type}" for column, type in self.columns(name))

    def load(self) -> None:
        for name in self.program.inputs:
            types = ", ".join(f"'{column}': '{type}'" for column, type in self.columns(name))
            self.db.execute(
                f"CREATE TABLE {self._given(name)} AS FROM read_csv('{self.folder / name}.facts', "
                f"delim='\t', header=false, auto_detect=false, columns={{{types}}})"
            )
        for name in self.program.types.keys() - set(self.program.inputs) - set(self.program.derived):
            self.db.execute(f"CREATE TABLE {name} ({self._declared(name)})")

    def _given(self, name: str) -> str:
        """Return the table of the facts that were read; rules read the derived ones under the relation's name."""
        return f"given_{name}" if name in self.program.derived else name

    def derive(self) -> None:
        for component in self.components:
            rules = [r for r in self.program.rules if r.head.relation in component]
            recursive = [r for r in rules if any(a.relation in component for a in r.body)]
            if not recursive:
                self._plain(component[0], rules)
            elif len(component) == 1 and len(recursive) == len(rules) and component[0] not in self.program.inputs:
                self.db.execute(
                    f"CREATE TABLE {component[0]} ({self._declared(component[0])})"
                )  # no fact to begin with
            elif len(component) > 1:
                self._loop(component, rules)
            elif all(sum(a.relation in component for a in r.body) == 1 for r in recursive):
                self._linear(component[0], rules)
            else:
                self._nonlinear(component[0], rules)

    def _start(self, name: str, rules: Sequence[Rule]) -> list[str]:
        given = [f"FROM {self._given(name)}"] if name in self.program.inputs else []
        return given + [select(r, {}) for r in rules]

    def _plain(self, name: str, rules: Sequence[Rule]) -> None:
        parts = self._start(name, rules)
        if len(parts) == 1 and not is_injective(rules[0]):
            parts = [parts[0] + " GROUP BY ALL"]
        self.db.execute(f"CREATE TABLE {name} AS {' UNION '.join(parts)}")

    def _linear(self, name: str, rules: Sequence[Rule]) -> None:
        recursive = [r for r in rules if any(a.relation == name for a in r.body)]
        start = " UNION ".join(self._start(name, [r for r in rules if r not in recursive]))
        step = " UNION ALL ".join(select(r, {}) for r in recursive)
        named = ", ".join(columns(self.program.arities[name]))
        self.db.execute(
            f"CREATE TABLE {name} AS WITH RECURSIVE {name}({named}) AS (({start}) UNION ({step})) FROM {name}"
        )

    def _nonlinear(self, name: str, rules: Sequence[Rule]) -> None:
        recursive = [r for r in rules if any(a.relation == name for a in r.body)]
        start = " UNION ".join(self._start(name, [r for r in rules if r not in recursive]))
        steps = []
        for rule in recursive:
            own = [i for i, a in enumerate(rule.body) if a.relation == name]
            steps += [select(rule, {i: f"recurring.{name}" for i in own if i != newest}) for newest in own]
        named = columns(self.program.arities[name])
        known = " AND ".join(f"known.{c} = found.{c}" for c in named)
        self.db.execute(
            f"CREATE TABLE {name} AS WITH RECURSIVE {name}({', '.join(named)}) USING KEY ({', '.join(named)}) AS ("
            f"({start}) UNION (WITH found AS ({' UNION '.join(steps)}) FROM found "
            f"WHERE NOT EXISTS (FROM recurring.{name} AS known WHERE {known}))) FROM {name}"
        )

    def _loop(self, component: Sequence[str], rules: Sequence[Rule]) -> None:
        recursive = [r for r in rules if any(a.relation in component for a in r.body)]
        for name in component:
            parts = self._start(name, [r for r in rules if r.head.relation == name and r not in recursive])
            self.db.execute(f"CREATE TABLE {name} ({self._declared(name)})")
            self.db.execute(f"CREATE TABLE newest_{name} ({self._declared(name)})")
            if parts:
                self.db.execute(f"INSERT INTO newest_{name} {' UNION '.join(parts)}")
                self.db.execute(f"INSERT INTO {name} FROM newest_{name}")
        growing = True
        while growing:
            growing = False
            for name in component:
                steps = []
                for rule in recursive:
                    if rule.head.relation == name:
                        own = [i for i, a in enumerate(rule.body) if a.relation in component]
                        steps += [select(rule, {i: f"newest_{rule.body[i].relation}"}) for i in own]
                self.db.execute(f"CREATE TABLE found_{name} AS ({' UNION '.join(steps)}) EXCEPT FROM {name}")
            for name in component:
                self.db.execute(f"DROP TABLE newest_{name}")
                self.db.execute(f"ALTER TABLE found_{name} RENAME TO newest_{name}")
                self.db.execute(f"INSERT INTO {name} FROM newest_{name}")
                growing |= self._count(f"newest_{name}") > 0

    def _count(self, table: str) -> int:
        found = self.db.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert found is not None, "a count has a row"
        return int(found[0])

    def counts(self) -> dict[str, int]:
        return {n: c for n in self.program.arities if (c := self._count(n))}


def main() -> None:
    folder, limit, threads = asked()
    tiny = Evaluation(folder / "tiny", limit, threads)
    tiny.load()
    tiny.derive()
    evaluation = Evaluation(folder, limit, threads)
    with spending() as loading:
        evaluation.load()
    with spending() as deriving:
        evaluation.derive()
    Measurement(
        total=Spent(loading.wall + deriving.wall, loading.cpu + deriving.cpu),
        loading=loading,
        peak=peak_memory(),
        facts=evaluation.counts(),
        version=duckdb.__version__,
    ).tell()


if __name__ == "__main__":
    main()
