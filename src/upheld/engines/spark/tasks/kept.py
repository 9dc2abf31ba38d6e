"""Objects such as rules and strata that a driver sends to tasks once, and names by numbers from then on."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any

from upheld.base.source import Source
from upheld.compiler.strata import Stratification, Stratum
from upheld.engines.spark.tasks.functors import Taught, functors_of
from upheld.engines.spark.tasks.held import EngineOfAll, Held
from upheld.language.ast import Constant, Variable
from upheld.language.core import Atom, Rule

#: How many rules, tuples of rules and stratifications tasks keep: the driver sends each of them once.
_MOST_KEPT = 1 << 14


class Kept:
    """Objects that were sent to tasks and are kept there, by the identity of the driver's: the last used of them."""

    def __init__(self, new_number: Callable[[], int], dropped: deque[int]):
        self._new_number, self._dropped = new_number, dropped
        self._numbers: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        self._things: dict[int, Any] = {}
        #: Functors that the tasks know.
        self._taught: set[str] = set()

    def know(self, rules: Sequence[Rule], first: int) -> None:
        """Note that tasks have rules, with their functors, under numbers from `first` on."""
        self._numbers.update((id(rule), (rule, number)) for number, rule in enumerate(rules, first))
        self._things.update(enumerate(rules, first))
        self._taught |= functors_of(rules)

    def thing(self, number: int) -> Any:
        """Return what has a number, None if it is kept no more."""
        return self._things.get(number)

    def pickled(self, thing: Any, sent: list[tuple[int, bytes]]) -> bytes:
        """Return the pickle of something, in which numbers stand for objects. New objects go to `sent`."""
        buffer = io.BytesIO()
        _Pickler(buffer, thing, lambda one: self._number(one, sent)).dump(thing)
        return buffer.getvalue()

    def _number(self, thing: Any, sent: list[tuple[int, bytes]]) -> int:
        known = self._numbers.get(id(thing))
        if known is None:
            if isinstance(thing, Rule) and (new := functors_of([thing]) - self._taught):
                sent.append((self._new_number(), pickle.dumps(Taught(new))))
                self._taught |= new
            pickled = self.pickled(thing, sent)
            known = self._numbers[id(thing)] = thing, self._new_number()
            self._things[known[1]] = thing
            sent.append((known[1], pickled))
            if len(self._numbers) > _MOST_KEPT:
                oldest = self._numbers.popitem(last=False)[1][1]
                del self._things[oldest]
                self._dropped.append(oldest)
        self._numbers.move_to_end(id(thing))
        return known[1]


#: Types of which no object is kept: nearly all that is pickled.
_PLAIN = frozenset((int, str, float, bool, bytes, type(None), dict, list, Atom, Variable, Constant))

#: Types of which all objects are kept. A source is part of every rule in it, and as long as all of them.
_KEPT = (Rule, Stratification, Source)


class _Pickler(pickle.Pickler):
    """Pickles one thing, with numbers for those in it that tasks keep."""

    def __init__(self, buffer: io.BytesIO, whole: Any, number: Callable[[Any], int]):
        super().__init__(buffer, protocol=5)
        self._whole, self._number = whole, number

    def persistent_id(self, thing: Any) -> int | None:
        if type(thing) in _PLAIN or thing is self._whole:
            return None
        if isinstance(thing, Held | EngineOfAll):
            return thing.number
        rules = isinstance(thing, tuple) and thing and isinstance(thing[0], Rule)
        apart = isinstance(thing, Stratum) and not _is_listed(thing)
        return self._number(thing) if rules or apart or isinstance(thing, _KEPT) else None

    def reducer_override(self, thing: Any) -> Any:
        """A stratum is that of a stratification by its number."""
        if isinstance(thing, Stratum) and thing.stratification is not self._whole and _is_listed(thing):
            return _stratum, (thing.stratification, thing.index)
        return NotImplemented


def _is_listed(stratum: Stratum) -> bool:
    """Return whether a stratum is one of its stratification."""
    return any(listed is stratum for listed in stratum.stratification.strata[stratum.index - 1 : stratum.index])


def _stratum(strata: Stratification, index: int) -> Stratum:
    return strata.strata[index - 1]
