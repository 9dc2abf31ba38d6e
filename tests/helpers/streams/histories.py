"""Random updates and rule changes of a saved state with a feed: its history is that of recomputation."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from tests.helpers.programs.strategies import Update
from tests.helpers.streams.rule_changes import Changing
from tests.helpers.streams.streams import facts_of
from upheld.base.errors import UpheldError
from upheld.explain.unfold import Rules
from upheld.facts.updatefiles import fact_texts
from upheld.language.ast import Constant
from upheld.language.core import Atom, Core, Fact
from upheld.language.core_text import atom_text, rule_text
from upheld.language.syntax.files import read_text
from upheld.materialisation.build import materialise_core, restore
from upheld.materialisation.materialisation import Materialisation
from upheld.materialisation.reports.history import FactEvent, FactHistory

#: Facts whose history is looked at, of each stream.
FACTS = 12


@dataclass(frozen=True)
class Moment:
    """The facts after an update, by recomputation, and the program."""

    facts: set[Fact]
    core: Core


class Historical(Changing):
    """A materialisation whose facts and rules change at random, saved and opened again now and then.

    `moments` has one entry for each update, after the one for the beginning of the feed. `kept` is whether there is a
    feed; if not, only what the process remembers is looked at.
    """

    def __init__(self, seed: int, engine: str, algorithm: str, folder: str, kept: bool = True, steps: int = 10):
        super().__init__(seed, engine, algorithm, steps)
        self.folder, self.kept = folder, kept
        self.moments: list[Moment] = []
        self.events = 0

    def follow(self) -> int:
        """Go through the steps; return how many events were found."""
        while self.expected(self.rules, self.explicit) is None:
            self.rules = self.rules[:-1]
        given: dict[str, list[tuple[object, ...]]] = {}
        for name, row in self.explicit:
            given.setdefault(name, []).append(row)
        core = self.core(self.rules)
        m = materialise_core(core, given.items(), engine=self.engine, algorithm=self.algorithm)
        self.explicit |= set(core.facts)
        self.enter(m)
        if self.kept:
            m.save(self.folder, feed=True)
        for update in self.book.case.updates:
            if self.r.random() < 0.7:
                self.change_facts(m, update)
            if self.r.random() < 0.4:
                self.change_some_rules(m)
            if self.kept and self.r.random() < 0.4:
                m.save(self.folder)
                m = self.opened(m)
        self.look(m)
        return self.events

    def enter(self, m: Materialisation) -> None:
        """Note the facts that there must be now."""
        facts = self.expected(self.rules, self.explicit)
        assert facts is not None, "a program without a result"
        self.moments.append(Moment(facts, m._written))
        assert self.visible(m) == facts

    def change_facts(self, m: Materialisation, update: Update) -> None:
        after = (self.explicit - facts_of(update.deletions)) | facts_of(update.insertions)
        known = {*update.deletions, *update.insertions} <= {*m._core.predicates}
        if known and self.expected(self.rules, after) is not None:
            m.update(delete=update.deletions, insert=update.insertions)
            self.explicit = after
            self.enter(m)

    def change_some_rules(self, m: Materialisation) -> None:
        r = self.r
        out = r.sample(self.rules, min(len(self.rules), r.choice((0, 1, 1, 2))))
        into = [rule for rule in self.book.pool if rule not in self.rules]
        into = r.sample(into, min(len(into), r.choice((0, 1, 1, 2))))
        after = [rule for rule in self.rules if rule not in out] + into
        if self.expected(after, self.explicit) is not None:
            m.change_rules(add=into, remove=out)
            self.rules = after
            self.enter(m)

    def opened(self, m: Materialisation) -> Materialisation:
        """Open the state: with its own program, or with an edited one."""
        after = [rule for rule in self.book.pool if self.r.random() < 0.5]
        edited = self.r.random() < 0.4 and self.expected(after, self.explicit) is not None
        rules = after if edited else self.rules
        program = read_text(self.book.text(rules), self.book.case.dialect)
        again = restore(program, self.folder, engine=self.engine, algorithm=self.algorithm, edited=True)
        if again.program_change is not None:
            self.rules = rules
            self.enter(again)
        return again

    def look(self, m: Materialisation) -> None:
        """Compare the history of some facts with what recomputation says of each moment."""
        feed = m._past.feed
        assert m.version + (feed.offset if feed else 0) == len(self.moments) - 1
        ever = {fact for moment in self.moments for fact in moment.facts if fact[0] in m.relations}
        changing = [fact for fact in sorted(ever, key=repr) if len({fact in m.facts for m in self.moments}) > 1]
        for fact in self.r.sample(changing, min(len(changing), FACTS)):
            history = self.history(m, fact)
            assert history.since == 1 and (history.since_version == 1) == self.kept
            held = [fact in moment.facts for moment in self.moments]
            assert history.held_before == held[0] and history.holds == held[-1]
            expected = [(i, held[i]) for i in range(1, len(held)) if held[i] != held[i - 1]]
            assert [(event.update, event.appeared) for event in history.events] == expected
            versions = [event.version or len(self.moments) for event in history.events]
            assert versions == sorted(versions)
            for event in history.events:
                self.check_event(event, self.moments[event.update - 1], self.moments[event.update])
                self.events += 1

    def history(self, m: Materialisation, fact: Fact) -> FactHistory:
        name, row = fact
        if any(isinstance(value, float) and not isfinite(value) for value in row):  # which programs cannot write
            return m.history(name, row)
        (text,) = fact_texts(name, m._core.predicates[name].types, [row])
        return m.history(text)

    def check_event(self, event: FactEvent, before: Moment, after: Moment) -> None:
        """The proof is of facts that were there, and each cause is a change that was made."""
        proof = event.explanation.proof
        assert proof is not None
        at = after if event.appeared else before
        assert all(step.fact in at.facts or step.bindings is not None for step in proof.steps)
        rules = Rules(at.core)
        known = {rule_text(rules.unfold(rule).shown) for rule in rules.all}
        assert all(step.rule is None or rule_text(step.rule) in known for step in proof.steps)
        short = event.explanation.short
        sides = (after, before), (before, after)
        new, gone = ({short(fact_text(fact, one.core)) for fact in one.facts - other.facts} for one, other in sides)
        assert event.causes, str(event.explanation)
        for cause in event.causes:
            if cause.endswith(" appeared"):
                assert cause.removesuffix(" appeared") in new
            elif cause.endswith(" vanished"):
                assert cause.removesuffix(" vanished") in gone
            elif cause.startswith("rule "):
                assert before.core.rules != after.core.rules
                assert cause.endswith("was added" if event.appeared else "was removed")
            else:
                assert cause.endswith("has changed"), cause


def fact_text(fact: Fact, core: Core) -> str:
    name, row = fact
    return atom_text(Atom(name, tuple(map(Constant, row, core.predicates[name].types))))


def follow_history(seed: int, engine: str, algorithm: str, folder: str, kept: bool = True) -> int:
    """Go through the updates of a seed, and return how many events there were."""
    try:
        return Historical(seed, engine, algorithm, folder, kept).follow()
    except UpheldError as error:
        raise AssertionError(f"seed {seed}") from error
