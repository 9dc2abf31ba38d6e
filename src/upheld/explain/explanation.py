"""Why a fact holds or does not, as objects, as text and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from upheld.base.errors import count
from upheld.base.pages import indented, outline
from upheld.explain.aggregates import ASKED_BY_ATOM
from upheld.language.ast import Constant
from upheld.language.core import Atom, Builtin, Fact, Rule
from upheld.language.core_text import atom_text, builtin_text, expression_text, is_matched, rule_text
from upheld.language.terms.iris import shortened

#: Rules of which the text shows why they do not derive a fact.
FAILURES_SHOWN = 10

#: Bindings of an aggregate that the text shows; JSON has all of them.
BINDINGS_SHOWN = 3

#: Levels of a proof that its text shows unless told otherwise.
LEVELS_SHOWN = 20

#: Levels shown by indentation; deeper levels are numbered, to bound the length of lines.
LEVELS_INDENTED = 40


@dataclass(frozen=True)
class Literal:
    """A literal of a rule body, under a binding of some of its variables."""

    of: Atom | Builtin
    negated: bool = False

    def __str__(self) -> str:
        if isinstance(self.of, Builtin):
            return builtin_text(self.of)
        return f"{'!' if self.negated else ''}{atom_text(self.of)}"


def _sources_text(sources: Sequence[str | None]) -> str:
    """Return the sources of an explicit fact as they are shown after it."""
    if not sources:
        return ""
    named = ", ".join(sorted(source for source in sources if source is not None))
    return f", from {named}" + (" and without a source" if None in sources else "")


@dataclass(frozen=True)
class ProofStep:
    """A fact of a proof, with the rule that derives it and the instance of that rule; an explicit fact has neither.

    Nor has the value of an aggregate, which has bindings instead; nor a fact that holds by equality: as its premises
    do, in which equal constants stand in the place of some, and which say that these are equal.
    """

    fact: Fact
    #: The fact as it is written.
    text: str
    #: Its values as Python has them; `fact` has codes for values of column types.
    values: tuple[object, ...]
    rule: Rule | None = None
    #: The rule with its values for variables.
    instance: Rule | None = None
    #: Where in the proof the facts are that the positive atoms of the rule were matched to.
    premises: tuple[int, ...] = ()
    #: For the value of an aggregate, the bindings of its body; None for a fact.
    bindings: tuple[str, ...] | None = None
    #: For an explicit fact, the named sources that claim it; None among them is the unnamed source.
    sources: tuple[str | None, ...] = ()

    @property
    def explicit(self) -> bool:
        """Whether it is an explicit fact."""
        return self.rule is None and not self.premises and self.bindings is None

    @property
    def conditions(self) -> tuple[Literal, ...]:
        """The other literals of the body: negated atoms, which do not hold, and built-ins, which do."""
        if self.instance is None:
            return ()
        return (
            *(Literal(a, negated=True) for a in self.instance.negative),
            *(Literal(b) for b in self.instance.builtins if b.type != ASKED_BY_ATOM and not is_matched(b)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the step as data that JSON can hold."""
        told: dict[str, Any] = {"fact": self.text, "relation": self.fact[0], "values": list(map(_plain, self.values))}
        if self.explicit:
            return {**told, "explicit": True, **({"sources": list(self.sources)} if self.sources else {})}
        if self.bindings is not None:
            value = _plain(self.values[-1])
            return {"aggregate": self.text, "value": value, "explicit": False, "bindings": list(self.bindings)}
        if self.rule is None:
            return {**told, "explicit": False, "by": "equality", "premises": list(self.premises)}
        return {
            **told,
            "explicit": False,
            **_rule(self.rule),
            "premises": list(self.premises),
            "conditions": [str(c) for c in self.conditions],
        }


@dataclass(frozen=True)
class Proof:
    """A proof down to explicit facts: each fact once, the one that is proved first, premises after what they prove."""

    steps: tuple[ProofStep, ...]

    @property
    def height(self) -> int:
        """The number of steps one upon the other, by rules and by equality; 0 for an explicit fact."""
        heights = [0] * len(self.steps)
        for at in range(len(self.steps) - 1, -1, -1):
            if not self.steps[at].explicit and self.steps[at].bindings is None:
                heights[at] = 1 + max((heights[p] for p in self.steps[at].premises), default=0)
        return heights[0]

    def __len__(self) -> int:
        """The number of facts in it."""
        return len(self.steps)

    def lines(self, depth: int | None) -> Iterator[str]:
        """Yield the lines of the proof as an indented tree.

        Args:
            depth: Maximum number of levels below the fact; None for all.
        """
        for level, text in self.levels(depth):
            yield f"{_indent(level)}{text}"

    def levels(self, depth: int | None) -> Iterator[tuple[int, str]]:
        """Yield the lines of the proof without their indentation, each with its level.

        Args:
            depth: Maximum number of levels below the fact; None for all.
        """
        shown: set[int] = set()
        proved: set[int] = set()
        used = {step.rule for step in self.steps if step.rule is not None}
        rules = {rule: f"{_place(rule)}{rule_text(rule)}" for rule in used}
        pending: list[tuple[int, int | Literal]] = [(0, 0)]
        while pending:
            level, which = pending.pop()
            if isinstance(which, Literal):
                yield level, f"{which}{'  does not hold' if which.negated else ''}"
                continue
            step = self.steps[which]
            shown.add(which)
            if step.explicit:
                yield level, f"{step.text}  explicit{_sources_text(step.sources)}"
            elif step.bindings is not None:
                proved.add(which)
                yield level, f"{step.text}  of {count(len(step.bindings), 'binding')}"
                yield from ((level + 1, binding) for binding in step.bindings[:BINDINGS_SHOWN])
                if len(step.bindings) > BINDINGS_SHOWN:
                    yield level + 1, "..."
            elif which in proved:
                yield level, f"{step.text}  as above"
            elif depth is not None and level >= depth:
                yield level, f"{step.text}  ..."
            else:
                proved.add(which)
                yield level, f"{step.text}  by {'equality' if step.rule is None else rules[step.rule]}"
                below: list[int | Literal] = [*step.premises, *step.conditions]
                pending += [(level + 1, b) for b in reversed(below)]
        if any(not self.steps[which].explicit for which in shown - proved):
            missing = len(self.steps) - len(shown)
            cut = f"cut at level {depth:,} of {self.height:,}"
            yield 0, f"{cut}: {missing:,} of {len(self.steps):,} facts are not shown"


@dataclass(frozen=True)
class Failure:
    """Why a rule does not derive a fact: where its body fails under the binding that gets furthest."""

    rule: Rule
    #: The values of the variables that its author named.
    binding: Mapping[str, Constant]
    #: The literals that hold under the binding, in the order in which they were matched.
    holds: tuple[Literal, ...]
    #: The first literal that fails, for this binding and for all others that get so far.
    fails: Literal
    #: The reason why it fails.
    because: str
    #: Whether the literal that fails is the fact itself for every binding, so that nothing is learnt from it.
    circular: bool = False

    @property
    def distance(self) -> tuple[int, int]:
        """How far the rule is from deriving the fact: less if its head has more constants, then if more holds."""
        return -sum(isinstance(term, Constant) for term in self.rule.head.terms), -len(self.holds)

    def to_dict(self) -> dict[str, Any]:
        """Return the failure as data that JSON can hold."""
        return {
            **_rule(self.rule),
            "binding": {name: _plain(constant.value) for name, constant in self.binding.items()},
            "holds": [str(literal) for literal in self.holds],
            "fails": str(self.fails),
            "because": self.because,
        }

    def lines(self) -> Iterator[str]:
        """Yield its lines of text."""
        yield f"  {_place(self.rule)}{rule_text(self.rule)}"
        if self.binding:
            yield f"    with {', '.join(f'{name} = {expression_text(c)}' for name, c in self.binding.items())}"
        for literal in self.holds:
            yield f"    {literal}  {'does not hold, as required' if literal.negated else 'holds'}"
        yield f"    {self.fails}  fails: {self.because}"


@dataclass(frozen=True)
class Explanation:
    """Why a fact holds, by a proof, which is the shortest unless equal constants are rewritten; or why it does not."""

    fact: Fact
    #: The fact as it is written.
    text: str
    #: Its values as Python has them; `fact` has codes for values of column types.
    values: tuple[object, ...]
    #: The proof of least height and, fact by fact, of fewest facts among those; None if the fact does not hold.
    proof: Proof | None
    #: For a fact that does not hold, each rule that could derive it, with what is missing.
    failures: tuple[Failure, ...] = ()
    #: Prefixes that shorten the IRIs of the text.
    prefixes: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def holds(self) -> bool:
        """Whether the fact holds."""
        return self.proof is not None

    @property
    def shortened(self) -> str:
        """The fact as it is written, with prefixes."""
        return self.short(self.text)

    def short(self, text: str) -> str:
        """Return a text with the prefixes of the explanation for IRIs.

        Args:
            text: A text in which facts are written.
        """
        return shortened(text, self.prefixes)

    def to_text(self, depth: int | None = LEVELS_SHOWN) -> str:
        """Return the explanation as an indented tree.

        For a fact that does not hold it lists up to ten rules, those closest to deriving it first, preferably without
        rules that depend on the fact itself.

        Args:
            depth: Maximum number of levels; None for all.
        """
        if self.proof is not None:
            return shortened("\n".join(self.proof.lines(depth)), self.prefixes)
        lines = [f"{self.text}  does not hold", "  not explicit"]
        learnt = [failure for failure in self.failures if not failure.circular] or self.failures
        shown = sorted(learnt, key=lambda failure: failure.distance)[:FAILURES_SHOWN]
        for failure in shown:
            lines += failure.lines()
        if len(shown) < len(self.failures):
            lines.append(f"  {len(self.failures) - len(shown)} more rules do not derive it; the JSON has all of them")
        if not self.failures:
            lines.append("  no rule derives such a fact")
        return shortened("\n".join(lines), self.prefixes)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        if self.proof is None:
            return outline(indented(self.to_text().splitlines()))
        levels = self.proof.levels(LEVELS_SHOWN)
        return outline((level, shortened(text, self.prefixes)) for level, text in levels)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as data that JSON can hold. Premises are positions in the list that is the proof."""
        values = list(map(_plain, self.values))
        told = {"fact": self.text, "relation": self.fact[0], "values": values, "holds": self.holds}
        if self.proof is None:
            return {**told, "failures": [f.to_dict() for f in self.failures]}
        return {**told, "height": self.proof.height, "proof": [s.to_dict() for s in self.proof.steps]}

    def to_json(self) -> str:
        """Return the explanation as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def _indent(level: int) -> str:
    return "  " * level if level <= LEVELS_INDENTED else f"{'  ' * LEVELS_INDENTED}({level}) "


def _place(rule: Rule) -> str:
    return f"{rule.span}: " if rule.span else ""


def _rule(rule: Rule) -> dict[str, Any]:
    return {"rule": rule_text(rule), "place": str(rule.span) if rule.span else None}


def _plain(value: object) -> object:
    """Return a value that JSON has: dates, decimals, NaN and the infinities as texts."""
    is_plain = math.isfinite(value) if isinstance(value, float) else value is None or isinstance(value, (int, str))
    return value if is_plain else str(value)
