"""Equality by rewriting: one constant for each class of equal ones, after Motik et al. 2015 (paper 3).

Classes, normal facts and insertion are the paper's. Deletion as it stands here, which goes by `adaptive`, is our own;
`backward_forward` has the paper's deletion, B/F with equality, which goes by `bf`.

E, I              explicit facts, as they were given; the normal facts that stand for all that follows
E_minus, E_plus   explicit facts to delete and to insert
pi                the classes of equal constants, each with its representative
Gamma             the rules with each constant replaced by its representative, and rules (4): reflexivity
D, A              normal facts that are over-deleted; those that are added, so that (I - D) | A is what there is now
P                 equalities that are known to hold after the deletion, and are not over-deleted
L                 facts about members of classes that follow from explicit facts without any class
S                 representatives of classes that are torn apart: such facts do not hold them together
N, M, delta       candidates of a round; those by reflexivity alone; those not seen before

Insertion is algorithms 5 and 6, a round at a time: an equality between two representatives makes one class of two, the
facts that mention the one that lost are taken out and come back rewritten, and rules with new constants are applied to
all facts once.

How our deletion differs from the paper's:

- It over-deletes and rederives (`dred`) where algorithm 1 checks first. It checks first only what would be expensive.
- A normal equality c = c says that something mentions each member of its class, and that they are equal. The first is
  all that rule (4) gives it, and it is not in doubt as long as explicit facts mention them (lines 37 to 39). The second
  is in doubt once an equality that was explicit, or that a rule has derived, is over-deleted. The class is torn apart,
  that is, all facts that mention it are over-deleted (lines 9 to 11), unless explicit facts, and rules as they were
  written applied to these in a few steps, connect all its members: such a proof needs no class, so it cannot be
  circular.
- Line 40 asks for the explicit facts that a normal fact stands for. Their number is kept with it (`stand_ins`), and
  what a torn class leaves behind is found by its members, in the indexes: no product of classes is ever formed.
- Over-deletion that has cost half of what it costs to derive everything from nothing is given up, and everything is:
  what comes back would cost about as much again.

Positive programs only. `layered` has the others, of which this is the lower layer.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import cached_property

from upheld.algebra.engine import Engine
from upheld.algebra.equality import Classes, Constants, Overdeletion
from upheld.algebra.expansion import Rows
from upheld.algebra.sets import FactSet, Instances, SetEngine, derive, settle
from upheld.base.statistics import phase
from upheld.compiler.equality.equality import Equality, reflexivity
from upheld.compiler.strata import Stratification, Whole
from upheld.language.core import Core, Rule
from upheld.maintain.backward import Abort, Proving
from upheld.maintain.equality.backward_forward import BackwardForward
from upheld.maintain.equality.rewritten_rules import RewrittenRules, represented
from upheld.maintain.update import State

#: Further steps by which explicit facts may prove that classes hold together, and the facts that must mention a class
#: for that: with fewer, to split the class costs less.
STEPS, SMALL = 3, 1000
#: Over-deleted facts, and their ratio to the facts to delete, from which on proofs of further facts are searched for
#: before these are over-deleted; and the rounds of this search.
FEW, MANY_TIMES, DEPTH = 1000, 20, 8
#: The cost of a round beside its instances, in instances; the part of the cost of starting again that over-deletion may
#: take, and what it may take in any case.
ROUND, MOST_SPENT, LEAST_SPENT = 1_000, 0.5, 300_000


class Rewriting:
    """The classes of equal constants of a materialisation, and how updates change them."""

    def __init__(self, engine: Engine, core: Core, strata: Stratification, E: FactSet, I: FactSet):
        self.engine, self.E, self.I, self.strata = engine, E, I, strata
        equality = Equality()
        self.pi: Classes = engine.classes(equality)
        self.reflexivity = tuple(reflexivity(core, equality))
        self.follow(RewrittenRules(core.rules, self.reflexivity))
        #: For each normal fact, how many explicit facts it stands for beside itself.
        self.stand_ins = engine.numbers("stand-ins")
        #: The cost of deriving everything from nothing, the last time.
        self.again_cost = 0

    @cached_property
    def gamma(self) -> Classes:
        """The classes that `bf` finds while it deletes. They begin anew with each update."""
        return self.engine.classes(Equality())

    def sets(self) -> tuple[FactSet, ...]:
        """The sets beside E and I that are kept from one update to the next."""
        return ()

    def shown(self) -> FactSet:
        """Return the normal facts that stand for what users see."""
        return self.I

    def layer(self, rule: Rule | None) -> tuple[int, int]:
        """Return the layer of a rule at work, and how many there are."""
        return 1, 1

    def follow(self, rules: RewrittenRules) -> None:
        """Have these rules from now on, as they are by the classes that there are."""
        self.Gamma = rules
        rules.follow(self.pi)

    def convert(self, algorithm: str) -> None:
        """Begin the bookkeeping that an algorithm relies on: all of them rely on the same."""

    def materialise(self) -> None:
        """Derive all that follows from E."""
        _, A = self.first()
        self.I |= A

    def update(self, state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
        """Return what is over-deleted and what is added by an update. The classes are changed."""
        self.begin(E_minus, E_plus)
        return self.changes(E_minus, E_plus)

    def bf(self, state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
        """As `update`, by B/F with equality: see `backward_forward`."""
        self.begin(E_minus, E_plus)
        return self.changes_by_bf(E_minus, E_plus)

    def rematerialise(self, state: State, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
        """As `update`, by deriving everything anew."""
        self.begin(E_minus, E_plus)
        return self.anew(E_minus, E_plus)

    def changed(self, deleted: FactSet, inserted: FactSet) -> tuple[dict[str, Rows], dict[str, Rows]]:
        """Return by predicate what an update has made disappear and appear, given the normal facts that have.

        I is what it is after the update. Nothing is expanded here.
        """
        I, pi = self.I, self.pi
        differ = pi.difference()
        gone, came = deleted, inserted
        if differ.before or differ.now:
            gone = settle(deleted | pi.mentioning((I - inserted) | deleted, differ.before))
            came = settle(inserted | pi.mentioning(I, differ.now))
        return changed_rows(pi, gone, came)

    # -- an update that has begun --------------------------------------------------------------------------------------

    def first(self) -> tuple[FactSet, FactSet]:
        """Return nothing, and all that follows from E."""
        nothing, before = self.E.engine.nothing, cost_so_far(self.engine)
        update = _Update(self, nothing, nothing)
        self.pi.count(nothing, self.E)
        update.insert(self.E)
        self.again_cost = cost_so_far(self.engine) - before
        return update.D, update.A

    def changes(self, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
        """Return what is over-deleted and what is added."""
        update = _Update(self, E_minus, E_plus)
        left = update.delete() if E_minus else self.E.engine.nothing
        if left is None:
            self.stand_ins.gain(self.pi.rewritten(E_plus))
            return self.again(E_minus, E_plus)
        N = settle(left)
        self.stand_ins.gain(self.pi.rewritten(E_plus))
        update.insert(N | E_plus)
        return update.D, update.A

    def changes_by_bf(self, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
        """As `changes`, by B/F with equality."""
        update = _Update(self, E_minus, E_plus)
        if E_minus:
            update.check_and_delete(self.gamma)
        self.stand_ins.gain(self.pi.rewritten(E_plus))
        update.insert(E_plus)
        return update.D, update.A

    def anew(self, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
        """Return all that there was, and all that there is."""
        self.stand_ins.lose(self.pi.rewritten(E_minus))
        self.stand_ins.gain(self.pi.rewritten(E_plus))
        return self.again(E_minus, E_plus)

    def again(self, E_minus: FactSet, E_plus: FactSet) -> tuple[FactSet, FactSet]:
        """As `anew`, when the explicit facts as they are to be have been counted."""
        update, before = _Update(self, E_minus, E_plus), cost_so_far(self.engine)
        self.stand_ins.lose(self.pi.rewritten(update.explicit()))
        update.D |= self.I
        self.pi.split_all()
        self.Gamma.follow(self.pi)
        update.insert(update.explicit())
        self.again_cost = cost_so_far(self.engine) - before
        return update.D, update.A

    def rule_pairs(self) -> Sequence[tuple[Rule, Rule]]:
        """Return each rule as it was written, and as it is by the classes that there are."""
        self.Gamma.follow(self.pi)
        return list(zip(self.Gamma.written, self.Gamma.now, strict=True))

    def exact(self) -> tuple[frozenset[str], Core | None]:
        """Return the relations whose facts speak of constants themselves, and a program with their aggregates: none."""
        return frozenset(), None

    def represented(self, core: Core) -> Core:
        """Return a program, such as a query, whose rules speak of representatives."""
        return represented(core, self.pi)

    def begin(self, E_minus: FactSet, E_plus: FactSet) -> None:
        """Begin an update: changes are computed relative to the present state."""
        self.pi.remember()
        self.pi.count(E_minus, E_plus)
        self.Gamma.follow(self.pi)  # an update that failed may have left other rules than its classes ask for


def changed_rows(
    pi: Classes, gone: FactSet, came: FactSet, hidden: Set[str] = frozenset()
) -> tuple[dict[str, Rows], dict[str, Rows]]:
    """Return by predicate what has disappeared and appeared since classes were remembered: see `Classes.changed`."""
    rows = {name: pi.changed(gone, came, name) for name in sorted((gone.predicates() | came.predicates()) - hidden)}
    return {name: before for name, (before, _) in rows.items()}, {name: now for name, (_, now) in rows.items()}


def cost_so_far(engine: SetEngine) -> int:
    """Return what the run under way has cost, in instances."""
    statistics = engine.meter.statistics
    return statistics.instances.total() + ROUND * statistics.rounds


class Outlay:
    """Compares what over-deletion costs with the cost of deriving everything from nothing."""

    def __init__(self, I: FactSet, again: int):
        self._engine, self._before, self._facts = I.engine, cost_so_far(I.engine), max(I.count(), 1)
        self._again = max(again, self._facts)  # it is not known of a state that was restored
        self._most = max(LEAST_SPENT, MOST_SPENT * self._again)

    def exceeds_starting_again(self, going: int, deleted: int) -> bool:
        """Return whether it is better to start again than to delete further facts; note it if so.

        Each of them is expected to have an average part of all derivations.
        """
        spent = cost_so_far(self._engine) - self._before
        if spent + self._again * going / self._facts <= self._most:
            return False
        choice = f"started again after {deleted:,} normal facts were deleted, and {going:,} were about to be"
        self._engine.meter.statistics.choices.append(f"all strata: {choice}")
        return True


class _Update:
    """One update in the making."""

    def __init__(self, rewriting: Rewriting, E_minus: FactSet, E_plus: FactSet):
        self.E, self.I, self.pi, self.Gamma = rewriting.E, rewriting.I, rewriting.pi, rewriting.Gamma
        self.stand_ins, self.E_minus, self.E_plus = rewriting.stand_ins, E_minus, E_plus
        self.strata, self.rewriting = rewriting.strata, rewriting
        #: Nothing is added before all is over-deleted, so that this needs no set of its own till then.
        self.D, self.A = self.E.engine.named("D"), self.E.engine.nothing
        self.S: Constants | None = None

    def now(self) -> FactSet:
        return (self.I - self.D) | self.A

    def explicit(self) -> FactSet:
        """Return the explicit facts as they are after the update."""
        return (self.E - self.E_minus) | self.E_plus

    # -- insertion -----------------------------------------------------------------------------------------------------

    @phase("insertion")
    def insert(self, N: FactSet) -> None:
        """Add to A the representatives of facts, and all that follows."""
        pi, A = self.pi, self.E.engine.named("A")
        A |= self.A
        self.A = A
        while fresh := settle(N - self.now()):  # 41, 42
            delta = settle(pi.represent(fresh) - self.now())  # 43, 44
            if apart := settle(pi.apart(delta)):
                N = settle(self.join(apart) | delta)  # 45
                continue
            # Morally:  A |= delta
            #           N = derive(self.Gamma.all, self.now(), self.now(), via=delta)  # 47 to 50
            # Below, an engine may go through several small rounds at once.
            N = pi.insert(delta, self.Gamma.listed, self.I, self.D, A)

    def join(self, apart: FactSet) -> FactSet:
        """Make classes one that are equal (algorithm 6), and return facts that come from that."""
        I, pi, D, A = self.I, self.pi, self.D, self.A
        joining = pi.joining(apart)
        explicit = settle(pi.mentioning(self.explicit(), joining.constants))
        self.stand_ins.lose(pi.rewritten(explicit))
        moved = settle(pi.mentioning(self.now(), joining.constants))  # 53
        joining.make()  # 52
        self.stand_ins.gain(pi.rewritten(explicit))
        D |= moved & I
        A -= moved
        fresh = self.Gamma.follow(pi)  # 55, 56
        return moved | derive(fresh, self.now(), self.now())  # 54, 57, 58

    # -- deletion ------------------------------------------------------------------------------------------------------

    def delete(self) -> FactSet | None:
        """Over-delete, and return what of it holds nevertheless, as far as one step from what is left shows.

        None, with the classes as they were, if it is better to derive everything anew.
        """
        pi = self.pi
        self.stand_ins.lose(pi.rewritten(self.E_minus))
        if not self.overdelete():
            return None
        left = self.E.engine.nothing
        if self.S:
            left = settle(pi.represent(self.split(self.S)))
        return left | self.rederive(self.Gamma.follow(pi))

    def split(self, S: Constants, by: Classes | None = None) -> FactSet:
        """Split the classes of representatives, and return the explicit facts that mention their members."""
        pi = self.pi
        explicit = settle(pi.mentioning(self.E - self.E_minus, pi.members(S)))
        self.stand_ins.lose(pi.rewritten(explicit))
        pi.split(S, by)
        self.stand_ins.gain(pi.rewritten(explicit))
        return explicit

    def check_and_delete(self, gamma: Classes) -> None:
        """Delete by B/F with equality: afterwards (I - D) | A is what holds without E_minus."""
        pi = self.pi
        self.stand_ins.lose(pi.rewritten(self.E_minus))
        checking = BackwardForward(self.explicit(), self.I, pi, gamma, self.Gamma)
        checking.delete(self.E_minus)
        self.split(checking.split_classes(), gamma)  # 18, 19
        self.Gamma.follow(pi)
        D = self.D
        gone, self.A = checking.changes()
        D |= gone
        gamma.split_all()  # it belongs to this update, and so does the cost

    @phase("overdeletion")
    def overdelete(self) -> bool:
        """Add to D all facts that have lost a derivation, and to S the representatives of classes that are torn.

        Return whether that was carried through: not if it costs too much.
        """
        I, pi, D = self.I, self.pi, self.D
        P = I.engine.named("P")
        proofs: Proofs | None = None
        N, M, delta = settle(pi.represent(self.E_minus)), I.engine.nothing, I.engine.nothing  # 3, 4
        deleted, going = 0, N.count()
        enough, outlay = FEW + MANY_TIMES * going, Outlay(I, self.rewriting.again_cost)
        over = Overdeletion(self.Gamma.listed, I, D, P, self.explicit())
        while True:
            if outlay.exceeds_starting_again(going, deleted):
                return False
            # Morally:  N = settle(N | derive(self.Gamma.now, I - D, I, via=delta))  # 13 to 15
            #           M = settle(M | derive(self.Gamma.reflexivity, I - D, I, via=delta))
            #           D |= delta
            # Below, an engine may go through several small rounds at once, as far as they concern no class.
            N, M = pi.overdelete(delta, N, M, over, enough - deleted)
            if not N and not M:
                return True
            deleted = D.count()
            known = D | (P if proofs is None else P | proofs.P)
            doubted = settle((N | self.unmentioned(settle(M - known))) - known)  # 12
            P |= self.obvious(settle(pi.plain(doubted)))  # 37 to 39
            large = settle(pi.several(doubted))
            torn = self.torn(large)
            P |= large
            struck = I.engine.nothing
            while torn:  # 9 to 11
                self.S = torn if self.S is None else self.S | torn
                more = settle(pi.mentioning(I - D, torn) - struck)
                struck = settle(struck | more)
                P -= more
                if proofs is not None:
                    proofs.P -= more
                torn = self.torn(settle(pi.several(more)))  # some are found so if equality itself equals something
            if deleted > enough:
                proofs = proofs or Proofs(self)
                proofs.check(settle(pi.plain(settle(doubted - (P | struck)))))
            delta = settle((doubted - (P if proofs is None else P | proofs.P)) | struck)
            if not delta:
                return True
            N, M, going = I.engine.nothing, I.engine.nothing, delta.count()

    def unmentioned(self, M: FactSet) -> FactSet:
        """Return the normal equalities of some that stand for one of a constant with itself that is in doubt.

        Of those of a class, it is in doubt if no explicit fact mentions the constant. Equalities with
        others do not prove it: they may hold only because it equals itself.
        """
        pi = self.pi
        if not (large := settle(pi.several(M))):
            return M
        loops = settle(pi.loops(pi.members(pi.constants(large))))
        return (M - large) | pi.represent(loops - settle(pi.counted(loops)))

    @phase("check")
    def obvious(self, plain: FactSet) -> FactSet:
        """Return the facts of `plain` that are explicit or derivable in one step from explicit facts."""
        known = settle((plain & self.explicit()) | self.pi.counted(plain))
        return known | derive(self.Gamma.written, self.explicit(), self.explicit(), heads=plain - known)

    @phase("check")
    def torn(self, large: FactSet) -> Constants | None:
        """Return the classes of the equalities `large`, without S, that explicit facts do not prove."""
        pi, S = self.pi, self.S
        representatives = pi.constants(large) if S is None else pi.constants(large) - S
        if not representatives:
            return None
        explicit = self.explicit()
        torn = pi.loose(representatives, explicit, self.Gamma.listed)  # few rules, and enough as a rule
        if not torn:
            return None
        members, L = pi.members(torn), self.E.engine.named("L")
        delta = settle(pi.mentioning(explicit, members))
        L |= delta
        for _ in range(STEPS if delta.count() > SMALL * len(torn) else 0):
            if not torn or not delta:
                break
            known = self.explicit() | L
            found = settle(derive(self.Gamma.written, known, known, via=delta))
            delta = settle(pi.mentioning(found, members) - known)
            L |= delta
            torn = pi.torn(torn, settle(pi.apart(L)))
        return torn or None

    @phase("one-step rederivation")
    def rederive(self, fresh: Sequence[Rule]) -> FactSet:
        """Return the over-deleted facts that are explicit or derivable from the rest, and the facts of new rules."""
        D, I = self.D, self.I
        known = (D & (self.E - self.E_minus)) | self.stand_ins.above_zero(D)
        known = settle(known | derive(fresh, I - D, I)) if fresh else settle(known)
        return known | self.pi.rederive(settle(D - known), self.Gamma.listed, I, D)


class Proofs(Proving):
    """Proofs of facts that stand for themselves alone, from such facts alone: they need no class of constants."""

    def __init__(self, update: _Update):
        self.pi = update.pi
        rules = Whole(1, update.Gamma.all, (), update.strata)
        explicit = update.explicit()
        super().__init__(rules, update.I, update.D, update.A, lambda H: H & explicit, Abort(depth=DEPTH))

    def bodies(self, found: Instances) -> FactSet:
        return self.pi.plain(super().bodies(found))
