"""Where the time of a materialisation and its updates went: by rule, stratum and phase, and update by update."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from upheld.algebra.work import Work, WorkDone
from upheld.base.errors import FactsError, count
from upheld.base.pages import Markup, element, first_rows, joined, table
from upheld.base.plots import bars, over_time, page
from upheld.base.statistics import Statistics
from upheld.facts.change import Change, known_counts
from upheld.facts.files.replacement import Replacement, unwritable
from upheld.language.core import Rule
from upheld.language.core_text import rule_text

#: Updates whose costs are kept one by one. Totals are of all updates.
UPDATES_KEPT = 1_000

#: The numbers of a `RunCost`.
_Numbers = tuple[int, float, int, int, int, int, int, int]

#: Rules that a page draws.
RULES_DRAWN = 25

#: The name of work that belongs to no rule: comparing and joining sets of facts.
SETS = "(sets of facts)"


@dataclass(frozen=True)
class RunCost:
    """The cost of the materialisation, whose `update` is 0, or of an update by its number."""

    update: int
    seconds: float
    instances: int
    #: Facts touched, rounds, and the facts that appeared and disappeared.
    facts: int
    rounds: int
    inserted: int
    deleted: int
    #: The most threads that shared a piece of work: 1 if all pieces were small.
    threads: int = 1


@dataclass(frozen=True)
class Cost:
    """The cost of a phase, a stratum or a rule.

    `facts` of a rule are the facts that it derives now, None with `equality="rewrite"`; of a phase or a stratum, the
    facts that its rounds found.
    """

    name: str
    seconds: float
    instances: int
    facts: int | None


@dataclass(frozen=True)
class RuleCost(Cost):
    """The cost of a rule, with its place in the program and the number of its stratum."""

    place: str | None
    stratum: int


@dataclass(frozen=True)
class Profile:
    """Costs of a materialisation and its updates, the greatest first. A notebook shows it as a page with plots.

    >>> m = materialise("q(x) :- p(x).", {"p": [1, 2]})
    >>> profile = m.profile()
    >>> [(rule.name, rule.instances, rule.facts) for rule in profile.rules if rule.place]
    [('q(x) :- p(x).', 2, 2)]
    """

    algorithm: str
    #: The materialisation, and the last updates.
    runs: tuple[RunCost, ...]
    #: How many updates there were, of which `runs` may have the last ones only.
    updates: int
    #: Of the materialisation and all updates together.
    rules: tuple[RuleCost, ...]
    strata: tuple[Cost, ...]
    phases: tuple[Cost, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as data that JSON can hold."""
        return asdict(self)

    def to_json(self) -> str:
        """Return the profile as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_html(self) -> str:
        """Return the profile as a page with plots, which needs no other file."""
        return page("Profile of a materialisation", self._body())

    def save(self, path: str | Path) -> None:
        """Write the page to a file.

        Args:
            path: Path of the file.
        """
        target = Path(path)
        with Replacement() as replacement:
            try:
                replacement.add(target, self.to_html().encode())
            except OSError as error:
                raise FactsError(unwritable(target, error)) from None
            replacement.place()

    def __repr__(self) -> str:
        return f"<Profile {count(self.updates, 'update')}, {count(len(self.rules), 'rule')}>"

    def _repr_html_(self) -> str:
        return self._body()

    def _body(self) -> Markup:
        first, updates = self.runs[0], self.runs[1:]
        threads = f" on {first.threads} threads" if first.threads > 1 else ""
        took = f"Materialising took {_seconds(first.seconds)}{threads} and {count(first.instances, 'rule instance')}."
        parts: list[object] = [element("p", took, f" Updates are made by {self.algorithm}.")]
        if updates:
            parts += self._updates(first, updates)
        for title, costs in (("Rules", self.rules), ("Strata", self.strata), ("Phases", self.phases)):
            drawn = costs[:RULES_DRAWN]
            parts.append(element("h2", f"{title} by time"))
            parts.append(bars([(cost.name, cost.seconds, _seconds(cost.seconds)) for cost in drawn]))
            summary = element("summary", f"Time, instances and facts of {len(costs):,} {title.lower()}")
            parts.append(element("details", summary, _cost_table(costs)))
        return joined(parts)

    def _updates(self, first: RunCost, updates: tuple[RunCost, ...]) -> Iterable[object]:
        mean = sum(run.seconds for run in updates) / len(updates)
        ratio = f", {first.seconds / mean:,.1f} times less than starting again" if 0 < mean < first.seconds else ""
        shown = f" (the last {len(updates):,} of {self.updates:,})" if len(updates) < self.updates else ""
        yield element("h2", f"Updates{shown}")
        yield element("p", f"An update took {_seconds(mean)} in the mean{ratio}.")
        points = [(run.update, run.seconds, f"update {run.update}: {_seconds(run.seconds)}") for run in updates]
        yield over_time(points, first.seconds, "seconds of each update, by its number")
        instances = [(run.update, float(run.instances), f"update {run.update}: {run.instances:,}") for run in updates]
        yield over_time(instances, float(first.instances), "rule instances of each update, by its number")
        longest = sorted(updates, key=lambda run: -run.seconds)
        columns = ("update", "seconds", "of starting again", "instances", "rounds", "appeared", "disappeared")
        rows = (
            (r.update, r.seconds, _share(r.seconds, first.seconds), r.instances, r.rounds, r.inserted, r.deleted)
            for r in longest
        )
        yield element("details", element("summary", "The longest updates"), first_rows(columns, rows, len(longest)))


def _cost_table(costs: Iterable[Cost]) -> Markup:
    facts = [[cost.name, cost.seconds, cost.instances, "" if cost.facts is None else cost.facts] for cost in costs]
    return table(("", "seconds", "instances", "facts"), facts)


def _seconds(seconds: float) -> str:
    return f"{seconds:,.2f} s" if seconds >= 1 else f"{1000 * seconds:,.2f} ms"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


class Costs:
    """The costs of a materialisation and its updates so far. Its size does not grow with their number."""

    def __init__(self) -> None:
        self._work = WorkDone()
        #: The numbers of a `RunCost` for each of the last updates.
        self._runs: deque[_Numbers] = deque(maxlen=UPDATES_KEPT)
        self._first: _Numbers = (0, 0.0, 0, 0, 0, 0, 0, 1)
        self.updates = 0

    def begin(self, statistics: Statistics, work: WorkDone) -> None:
        """Note what it took to materialise."""
        self._work = WorkDone()
        self._first = _cost(0, statistics, 0, 0)
        self._work.add(work)

    def note(self, change: Change, *work: WorkDone) -> None:
        """Note what it took to make an update, or the updates of a transaction."""
        self.updates += 1
        deleted, inserted, *_ = known_counts(change)
        self._runs.append(_cost(self.updates, change.statistics, inserted, deleted))
        for part in work:
            self._work.add(part)

    def profile(self, algorithm: str, strata: Mapping[Rule, int], facts_of: Callable[[Rule], int | None]) -> Profile:
        """Return the costs so far, of rules with their strata; `facts_of` counts the facts that a rule derives."""
        by_rule: dict[Rule | None, Work] = {rule: Work() for rule in strata}
        by_phase: dict[str, Work] = {}
        by_stratum = {number: Work() for number in strata.values()}
        for (phase, rule), work in self._work.by_rule().items():
            # The facts of a round are noted without a rule, and once more for the rule that was reported last.
            of_phase = work if rule is None else replace(work, facts=0)
            by_phase.setdefault(phase, Work()).add(of_phase)
            # Where constants are rewritten, rules are too.
            known = rule if rule is None or rule in strata else rule.whole
            by_rule.setdefault(known, Work()).add(work)
            if known is not None and known in strata:
                by_stratum[strata[known]].add(work)
        rules = [
            RuleCost(rule_text(rule), work.seconds, work.instances, facts_of(rule), _place(rule), strata.get(rule, 0))
            for rule, work in by_rule.items()
            if rule is not None
        ]
        if None in by_rule:
            rest = by_rule[None]
            rules.append(RuleCost(SETS, rest.seconds, 0, rest.facts, None, 0))
        phases = [Cost(name, work.seconds, work.instances, work.facts) for name, work in by_phase.items()]
        numbered = [Cost(f"stratum {n}", work.seconds, work.instances, work.facts) for n, work in by_stratum.items()]
        return Profile(
            algorithm,
            tuple(RunCost(*numbers) for numbers in (self._first, *self._runs)),
            self.updates,
            *(tuple(sorted(costs, key=lambda cost: -cost.seconds)) for costs in (rules, numbered, phases)),  # type: ignore[arg-type]
        )


def _cost(update: int, statistics: Statistics, inserted: int, deleted: int) -> _Numbers:
    """Return the numbers of a `RunCost`."""
    instances = sum(statistics.instances.values())
    rounds, threads = statistics.rounds, statistics.threads
    return update, statistics.seconds, instances, statistics.facts, rounds, inserted, deleted, threads


def _place(rule: Rule) -> str | None:
    return str(rule.span) if rule.span else None
