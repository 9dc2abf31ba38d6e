"""Random updates with sources, compared with a plain dictionary of claims and with recomputation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from tests.helpers.programs.strategies import random_case, random_typed_case
from tests.helpers.streams.streams import NAMES, Recomputed, assert_recomputed, facts_of, held
from upheld.base.errors import EvaluationError, UsageError
from upheld.compiler.compile import compile_program
from upheld.compiler.strata import stratify
from upheld.language.core import Fact
from upheld.language.syntax.files import read_text
from upheld.materialisation.build import materialise_core, restore
from upheld.materialisation.materialisation import Materialisation

SOURCES = ("a", "b", "c", None)

#: The sources of each explicit fact.
Model = dict[Fact, set[str | None]]


class Sourced:
    """A materialisation whose facts have sources, and the model of these."""

    def __init__(self, seed: int, engine: str, algorithm: str, steps: int):
        self.r = Random(seed)
        make = self.r.choice((random_case, random_case, random_typed_case))
        self.case = make(self.r, steps)
        self.core = compile_program(read_text(self.case.program)).core
        self.options = {"engine": engine, "algorithm": algorithm}
        self.model: Model = {fact: {None} for fact in facts_of(self.case.facts, self.core)}
        self.named: set[str] = set()

    def follow(self) -> int:
        """Go through the steps, and return how many updates were made."""
        if self.expected(self.model) is None:
            return 0
        m = materialise_core(self.core, by_name(set(self.model)).items(), **self.options)
        made = 0
        with TemporaryDirectory() as folder:
            self.folder = Path(folder)
            for update in self.case.updates:
                minus, plus = (facts_of(side, self.core) for side in (update.deletions, update.insertions))
                m, was_made = self.step(m, minus, plus)
                made += was_made
        return made

    def expected(self, model: Model) -> Recomputed | None:
        try:
            return Recomputed(self.core, stratify(self.core), set(model) | set(self.core.facts))
        except EvaluationError:
            return None

    def step(self, m: Materialisation, minus: set[Fact], plus: set[Fact]) -> tuple[Materialisation, bool]:
        r, source = self.r, self.r.choice(SOURCES)
        kind = r.choice(("update", "update", "update", "stream", "replace", "retract", "save"))
        if kind == "save":
            m.save(self.folder)
            again = restore(self.case.program, self.folder, **self.options)
            self.check(again)
            return r.choice((m, again)), False
        after = {fact: set(claims) for fact, claims in self.model.items()}
        given: dict[str, object] = {}
        if kind == "retract":
            source = r.choice("abc")
            if source not in self.named:
                self.refused(m, lambda: m.retract(source=source))
                return m, False
            claim(after, {fact for fact, claims in after.items() if source in claims}, set(), source)
        elif kind == "replace":
            name = r.choice([p.name for p in self.core.predicates.values() if not p.hidden])
            rows = {fact for fact in plus | set(r.sample(sorted(after, key=repr), len(after) // 2)) if fact[0] == name}
            given = {"replace": {name: [row for _, row in rows]}}
            theirs = {fact for fact, claims in after.items() if fact[0] == name and (not source or source in claims)}
            new = rows if source else rows - after.keys()
            claim(after, theirs - rows, new, source)
        else:
            given = {"delete": by_name(minus), "insert": by_name(plus)}
            if source is not None and source not in self.named and minus and not plus:
                self.refused(m, lambda: m.update(**given, source=source))
                return m, False
            claim(after, minus, plus, source)
        now = self.expected(after)
        if now is None:
            return m, False
        if kind == "retract":
            m.retract(source=source)
        elif kind == "stream":
            list(m.stream([{**given, "source": source}], merge_waiting=r.choice((1, 3))))
        else:
            before = held(m)
            if r.random() < 0.3:
                m.preview(**given, source=source)
                assert held(m) == before
                self.check(m)
            m.update(**given, source=source)
        self.model = after
        self.named |= {source} if source is not None else set()
        self.check(m)
        return m, True

    def refused(self, m: Materialisation, action: Callable[[], object]) -> None:
        with pytest.raises(UsageError, match="unknown-source"):
            action()
        self.check(m)

    def check(self, m: Materialisation) -> None:
        now = self.expected(self.model)
        assert now is not None
        assert_recomputed(m, Recomputed(m._core, m._strata, set(self.model)))
        named = dict.fromkeys(self.named, 0)
        for fact, claims in self.model.items():
            assert m._sources.of(fact) == (claims if claims - {None} else set())
            for source in claims - {None}:
                named[source] += 1
        assert m.sources() == named


def claim(model: Model, minus: set[Fact], plus: set[Fact], source: str | None) -> None:
    """Delete claims of a source, then insert some; without a source, delete facts whatever their claims."""
    for fact in minus:
        model.get(fact, set()).discard(source)
        if source is None or not model.get(fact, {None}):
            if source is None or fact not in plus:
                model.pop(fact, None)
    for fact in plus:
        model.setdefault(fact, set()).add(source)


def by_name(facts: set[Fact]) -> dict[str, list[tuple[object, ...]]]:
    result: dict[str, list[tuple[object, ...]]] = {}
    for name, row in facts:
        result.setdefault(name, []).append(row)
    return result


def follow(seed: int, engine: str = "memory", algorithm: str | None = None, steps: int = 8) -> int:
    """Go through the updates of a seed, and return how many were made."""
    return Sourced(seed, engine, algorithm or NAMES[seed % len(NAMES)], steps).follow()
