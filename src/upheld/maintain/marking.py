"""Streams of updates with one update of look-ahead: marking, after Illich and Glimm 2025.

E, I, E_minus, E_plus, D, A   as in `dred`
U1, U2                        the update that is made, and the next one, if it has arrived
negative marks                facts that U1 inserts and U2 deletes, and what appears with them
positive marks                facts that U1 deletes and U2 inserts, and what disappears with them

The paper (algorithm 1) marks the explicit facts that U2 deletes, passes marks on to the heads of rule instances that it
meets while it makes U1, and begins U2 with the marked facts, so that it need not apply the rules that lead to them. Set
at a time this alone would save nothing. The join that is driven by deleted facts finds every instance they have a part
in, whether the head is marked or not; it can be left out only for facts whose marks are *complete*, that is, all of
whose instances were met while U1 was made. Of the facts that U2 deletes these are the ones that U1 brings: a fact that
was there before has instances that nothing in U1 led to.

So marks are made complete by the order of the work. U1 is made in two steps: first all that U2 leaves alone (lines 10
to 30 of the paper, by whatever algorithm), then what U2 undoes. What appears in the second step is what is marked.
Every instance of it is met there, and none of it holds without the explicit facts that are about to go: a marked fact
certainly goes, whichever fact it was marked by, so marks pass on freely for B/F as they do for DRed. A head that was
there before the second step has a derivation without marked facts, and is not marked. U2 then begins by taking away
what is marked (line 32: it is put in D at once instead of in W), without a rule, a search or a check, and goes on from
the state that the first step has left. What disappears in the second step is marked positively, and comes back in the
same way.

Departures from the paper: the above. Marks that are not complete are not made, since they save nothing: those of facts
that were there before U1, and those passed on during forward chaining, where some instances of a fact are met but never
known to be all. Updates may speak of any predicate, and rules may negate: the second step is an update like any other,
with deletions where it makes negated facts true. An explicit fact that rules derive as well is marked only if it
appears in the second step, so if rules derive it by means of marked facts alone.

Marks are a wager on U2, no promise: they can be taken off a state before any update. If what comes is not U2, it is
only more work. Books (counters, ranks, traces) are those of the state without the marked facts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from upheld.algebra.sets import FactSet, settle
from upheld.maintain.update import Marks, Outcome, Requested, State, Update, step


@dataclass(frozen=True)
class Marking:
    """How an algorithm looks ahead. `lay` makes the second step, and keeps no books.

    Two steps cost more than one, as far as neither is empty. So what U2 undoes must be all that U1 inserts and U2
    deletes; with `partly`, it may also be much of it. With `positive`, positive marks are made.
    """

    lay: Update
    partly: bool
    positive: bool

    def pays(self, marked: int, inserted: int, deleted: int) -> bool:
        """Return whether it is worth it to mark so many of the facts that U1 inserts and U2 deletes.

        If fewer are worth it, so are more: where not even all could be, they need not be looked for.
        """
        if marked == inserted == deleted:
            return marked > 0
        return self.partly and marked >= MANY and marked >= SHARE * max(inserted, deleted)


#: Facts of a part that is worth a step of its own, and the least share (benchmarks/results/large-marking.md).
MANY, SHARE = 500, 0.5


def make(
    state: State, update: Update, marking: Marking | None, E_minus: FactSet, E_plus: FactSet, ahead: Requested | None
) -> Outcome:
    """Bring E and I up to date with U1, whose net effect is given, and mark what U2 undoes.

    The marks of the state are taken off first. They are still those of the state afterwards: the caller replaces them
    once nothing can fail any more.
    """
    change = None
    if state.marks is not None:
        change = take_off(state, state.marks)
        E_minus, E_plus = from_there(state.marks, E_minus, E_plus)
    marked = undone(marking, E_minus, E_plus, ahead) if marking is not None and ahead is not None else None
    if marked is not None:
        E_minus, E_plus = settle(E_minus - marked[0]), settle(E_plus - marked[1])
    if E_minus or E_plus or (change is None and marked is None):
        change = _after(change, step(state, update, E_minus, E_plus))
    if marking is not None and marked is not None:
        change = _after(change, lay(state, marking, *marked))
    assert change is not None, "an update in no step"
    return change


def _after(before: Outcome | None, made: Outcome) -> Outcome:
    return made if before is None else before.then(made)


def undone(marking: Marking, E_minus: FactSet, E_plus: FactSet, ahead: Requested) -> tuple[FactSet, FactSet] | None:
    """Return those of the explicit facts that U1 deletes and inserts that U2 undoes, if marking them is worth it."""
    minus = plus = E_minus.engine.nothing
    inserted, deleted = E_plus.count(), ahead.minus.count()
    if marking.pays(min(inserted, deleted), inserted, deleted):
        plus = settle(ahead.minus & E_plus)
        if plus and (kept := settle(ahead.plus & plus)):  # what U2 both deletes and inserts is there after it
            plus = settle(plus - kept)
        if not marking.pays(plus.count(), inserted, deleted):
            plus = E_plus.engine.nothing
    # Deleting in two steps looks twice for what holds without the deleted facts: that costs more than inserting again.
    if marking.positive and 0 < E_minus.count() <= ahead.plus.count() and not settle(E_minus - ahead.plus):
        minus = E_minus
    return (minus, plus) if minus or plus else None


def lay(state: State, marking: Marking, minus: FactSet, plus: FactSet) -> Outcome:
    """Make the second step of U1: what U2 undoes. All that changes is marked."""
    statistics = state.E.engine.meter.statistics
    before = Counter(statistics.instances)
    done = step(state, marking.lay, minus, plus)
    explicit, changed = minus.count() + plus.count(), done.deleted.count() + done.inserted.count()
    statistics.marks.update(explicit=explicit, derived=changed - _explicit_of(done, minus, plus))
    marks = Marks(minus, plus, done.deleted, done.inserted, Counter(statistics.instances) - before)
    return Outcome(done.deleted, done.inserted, marks)


def take_off(state: State, marks: Marks) -> Outcome:
    """Leave E and I as they were before the second step, and return what changed."""
    E, I = state.E, state.I
    E -= marks.E_plus
    E |= marks.E_minus
    I -= marks.A
    I |= marks.D
    return Outcome(marks.A, marks.D)


def from_there(marks: Marks, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
    """Return the explicit facts to delete and to insert when marks have been taken off, for what was to be done."""
    stays_away, stays = settle(marks.E_minus - E_plus), settle(marks.E_plus - E_minus)
    if not stays_away and not stays:
        _note_saved(marks)
    return settle((E_minus - marks.E_plus) | stays_away), settle((E_plus - marks.E_minus) | stays)


def _explicit_of(done: Outcome, minus: FactSet, plus: FactSet) -> int:
    return settle(minus & done.deleted).count() + settle(plus & done.inserted).count()


def _note_saved(marks: Marks) -> None:
    """Note the instances by which marks were made: what is taken off at once need not be found by them again."""
    saved = marks.E_plus.engine.meter.statistics.saved
    for phase, count in marks.instances.items():
        if phase == "insertion":
            saved["deletion"] += count
        elif phase in ("deletion", "overdeletion"):
            saved["insertion"] += count
