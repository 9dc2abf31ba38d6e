"""What an algorithm maintains: explicit facts, all that follows, and the bookkeeping that it relies on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from upheld.algebra.counters import Numbers, Ranks, Trace
from upheld.algebra.engine import Engine
from upheld.algebra.sets import FactSet
from upheld.language.strata import Stratification, Stratum
from upheld.maintain.equivalences import MaintainedClasses


@dataclass(frozen=True)
class Marks:
    """What an update of a stream did last, for the next one to undo: see `marking`.

    E_minus, E_plus   explicit facts that it deleted and inserted
    D, A              facts that disappeared and appeared with them
    instances         rule instances that were considered to find these, by phase
    """

    E_minus: FactSet
    E_plus: FactSet
    D: FactSet
    A: FactSet
    instances: Counter[str]

    def sets(self) -> tuple[FactSet, ...]:
        return self.E_minus, self.E_plus, self.D, self.A


@dataclass
class State:
    """Explicit facts E, their materialisation I, and what is known beside of each fact that a rule could derive.

    cnr, cr   derivations of a fact, the explicit one included, by nonrecursive and by recursive rules
    trace     derivations by the round of its stratum that finds them
    ranks     all derivations, and those that lean on facts of lower rank alone
    beside    sets that are kept as well, by whoever keeps the classes of equal constants
    marks     what was done last and not counted in any of these: without it E and I are what the books speak of
    """

    engine: Engine
    E: FactSet
    I: FactSet
    strata: Stratification
    cnr: Numbers | None = None
    cr: Numbers | None = None
    trace: Trace | None = None
    ranks: Ranks | None = None
    marks: Marks | None = None
    beside: tuple[FactSet, ...] = ()

    def sets(self) -> tuple[FactSet, ...]:
        """The sets that the state is made of."""
        return self.E, self.I, *self.beside, *(self.marks.sets() if self.marks else ())


#: Returns the sets D and A: the new materialisation is (I - D) | A.
Update = Callable[[State, FactSet, FactSet], tuple[FactSet, FactSet]]


def reached(state: State, E_minus: FactSet, E_plus: FactSet, D: FactSet, A: FactSet) -> Iterator[Stratum]:
    """Yield the strata that explicit facts of an update belong to, or whose rules look at what has changed so far.

    A stratum without rules holds explicit facts alone. It changes as it is told to, and nothing is kept of its facts
    beside, so it is not yielded. Neither is one with the classes of equivalences: algorithms maintain these alike.
    """
    strata = state.strata
    explicit = E_minus.classes(strata) | E_plus.classes(strata)
    changed: set[int] = set()
    for s in strata:
        if not s.rules and not s.classings:
            D |= s.out(E_minus)
            A |= s.out(E_plus)
            changed |= explicit & s.classes
        elif s.classes & explicit or s.reads & changed:
            if s.classings:
                MaintainedClasses(state.engine, s, state.E, state.I, E_minus, E_plus, D, A).maintain()
            else:
                yield s
            changed |= D.classes(strata) | A.classes(strata)
