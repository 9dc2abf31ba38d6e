"""Overlay: make what the next update of a stream undoes as a step of its own, which that update takes off again.

E, I, E_minus, E_plus, D, A   as in `dred`
U1, U2                        the update that is made, and the next one, if it has arrived
layer                         the facts that U1 inserts and U2 deletes, and all that changes with them

This scheme is ours, after the idea of `marking`: use the next update while the current one is made. Marks save the rule
applications that lead to marked heads. Set at a time that saves little: the join that is driven by deleted facts finds
every instance they have a part in, whether the head is marked or not. It can be left out only for facts whose instances
were all met while U1 was made. Of the facts that U2 deletes these are the ones that U1 brings: a fact that was there
before has instances that nothing in U1 led to.

So U1 is made in two steps: first all that U2 leaves alone, by whatever algorithm, then what U2 undoes. Everything that
appears in the second step is in the layer. Every instance of it is met there, and none of it holds without the explicit
facts that are about to go, so it certainly goes. U2 begins by taking the layer off, without a rule, a search or a
check, and goes on from the state that the first step has left. Rules may negate: the second step is an update like any
other, and facts that it deletes come back with the layer.

A layer is a wager on U2, not a promise: it can be taken off a state before any update. If another update comes, it is
only more work. The bookkeeping (counters, ranks, traces) is that of the state without the layer.
"""

from __future__ import annotations

from collections import Counter

from upheld.algebra.counters import RowsByName
from upheld.algebra.sets import FactSet, settle
from upheld.base.dataclass import dataclass
from upheld.maintain.update import Layer, LookAhead, Outcome, Requested, State, Update, step


def make(
    state: State,
    update: Update,
    look_ahead: LookAhead | None,
    E_minus: FactSet,
    E_plus: FactSet,
    ahead: Requested | None,
) -> Outcome:
    """Bring E and I up to date with U1, whose net effect is given.

    The layer of the state is taken off first. It is still that of the state afterwards: the caller replaces it once
    nothing can fail any more.
    """
    before = None
    if state.layer is not None:
        before = take_off(state, state.layer)
        E_minus, E_plus = from_there(state.layer, E_minus, E_plus)
        if not E_minus and not E_plus:
            return before
    if look_ahead is None:
        outcome = step(state, update, E_minus, E_plus)
    else:
        outcome = look_ahead.make(state, update, E_minus, E_plus, ahead)
    return outcome if before is None else before.then(outcome)


@dataclass(frozen=True)
class Overlay:
    """Look-ahead by layers. `lay` makes the second step, and has no bookkeeping."""

    lay: Update

    def make(self, state: State, update: Update, E_minus: FactSet, E_plus: FactSet, ahead: Requested | None) -> Outcome:
        undone = self.undone(E_plus, ahead) if ahead is not None else None
        if undone is None:
            return step(state, update, E_minus, E_plus)
        rest = settle(E_plus - undone)
        if not E_minus and not rest:
            return self.add_layer(state, undone)
        return step(state, update, E_minus, rest).then(self.add_layer(state, undone))

    def concerns(self, inserted: RowsByName, deleted_next: RowsByName) -> bool:
        """Return whether all rows that the next update deletes are among those that this one inserts."""
        return any(deleted_next.values()) and all(
            set(rows) <= set(inserted.get(name, ())) for name, rows in deleted_next.items()
        )

    def undone(self, E_plus: FactSet, ahead: Requested) -> FactSet | None:
        """Return the explicit facts that U1 inserts and U2 deletes, if a step of their own pays."""
        inserted, deleted = E_plus.count(), ahead.minus.count()
        if not self.pays(min(inserted, deleted), inserted, deleted):
            return None
        undone = settle(ahead.minus & E_plus)
        if undone and (kept_by_both := settle(ahead.plus & undone)):  # deleted and inserted by U2: there after it
            undone = settle(undone - kept_by_both)
        return undone if self.pays(undone.count(), inserted, deleted) else None

    def pays(self, undone: int, inserted: int, deleted: int) -> bool:
        """Return whether a step of its own pays for this many of the facts that U1 inserts and U2 deletes.

        Two steps cost more than one, unless one of them has nothing to insert: so all that U1 inserts must be what U2
        deletes. If fewer would pay, so would more: where not even all could, they need not be looked for.
        """
        return undone == inserted == deleted and undone > 0

    def add_layer(self, state: State, undone: FactSet) -> Outcome:
        """Make the second step of U1: what U2 undoes."""
        statistics = state.E.engine.meter.statistics
        before = Counter(statistics.instances)
        outcome = step(state, self.lay, state.E.engine.nothing, undone)
        changed = outcome.deleted.count() + outcome.inserted.count()
        explicit = undone.count()
        statistics.marks.update(explicit=explicit, derived=changed - settle(undone & outcome.inserted).count())
        layer = Layer(undone, outcome.deleted, outcome.inserted, Counter(statistics.instances) - before)
        return Outcome(outcome.deleted, outcome.inserted, layer)


def take_off(state: State, layer: Layer) -> Outcome:
    """Leave E and I as they were before the second step, and return what changed."""
    E, I = state.E, state.I
    E -= layer.E_plus
    I -= layer.A
    I |= layer.D
    return Outcome(layer.A, layer.D)


def from_there(layer: Layer, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
    """Return the explicit facts to delete and to insert after `take_off`, for an update of the state with the layer."""
    stays = settle(layer.E_plus - E_minus)
    if not stays:
        _note_saved(layer)
    return settle(E_minus - layer.E_plus), settle(E_plus | stays)


def _note_saved(layer: Layer) -> None:
    """Note the instances by which the layer was made: what is taken off need not be found by them again."""
    saved = layer.E_plus.engine.meter.statistics.saved
    for phase, count in layer.instances.items():
        if phase == "insertion":
            saved["deletion"] += count
        elif phase in ("deletion", "overdeletion"):
            saved["insertion"] += count
