"""Counting with recursion, round by round: algorithm 3 of Motik et al. 2019. The yardstick for `counting`.

E_minus, E_plus    as in `dred`
trace              for each stratum, the multisets N of its rounds, as `seminaive_counting` returns them
I_o, I_n           the old and the new materialisation, as far as they have been reconstructed
delta_o, delta_n   facts that are new to them in a round
I_on, I_no         I_o - I_n and I_n - I_o

Lines 23 and 36 subtract, where the text prints the plus; in (69) and (70) read `(delta1 & I2) - delta2`.

Departures from the paper: E is brought up to date by the caller. Lines 36 and 37 ask for instances with two conditions,
for which the algebra has no word: those with both are those with the first, without those with the first alone. So more
instances are considered than theorem 12 allows, and only what is counted can be compared, not the work. All of the
materialisation is rebuilt in each update, so this is of use for small cases alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from upheld.algebra.sets import Bag, FactSet, bag, derive_bag, settle
from upheld.language.core import Rule
from upheld.language.strata import Stratification
from upheld.maintain.seminaive import Multisets
from upheld.runtime.statistics import phase


@phase("counting by rounds")
def counting_by_rounds(strata: Stratification, trace: Multisets, E_minus: FactSet, E_plus: FactSet) -> FactSet:
    """Return the new materialisation; the trace is brought up to date. Its last multisets may be empty."""
    engine = E_minus.engine
    I_o, I_n, I_on, I_no = (engine.named(name) for name in ("I_o", "I_n", "I_on", "I_no"))  # 19
    for s, N in zip(strata, trace, strict=True):  # 20
        i = 0  # 21; here rounds are counted from 0
        N_o = settle(N[i].facts())  # 22
        N[i] -= bag(s.out(E_minus))  # 23
        N[i] -= derive_bag(s.nonrecursive, I_o, I_o, via=I_on, via_not=I_no)
        N[i] += bag(s.out(E_plus))  # 24
        N[i] += derive_bag(s.nonrecursive, I_n, I_n, via=I_no, via_not=I_on)
        N_n = settle(N[i].facts())  # 25
        while True:  # 26
            delta_o, delta_n = settle(N_o - I_o), settle(N_n - I_n)  # 27
            if not delta_o and not delta_n:
                break  # 28
            I_o |= delta_o  # 29
            I_n |= delta_n
            I_on -= delta_n  # 30
            I_on |= delta_o - I_n
            I_no -= delta_o
            I_no |= delta_n - I_o
            if not settle((delta_o - delta_n) | (delta_n - delta_o)) and not I_on and not I_no:  # 31
                for later in N[i + 1 :]:  # 32
                    I_o |= later.facts()
                    I_n |= later.facts()
                break  # 33
            i += 1  # 34
            if i == len(N):
                N.append(bag(engine.named("empty")))
            N_o = settle(N[i].facts())  # 35
            lost = fire_only(s.recursive, I_o, delta_o, I_on, I_no, delta_n)  # 36
            gained = fire_only(s.recursive, I_n, delta_n, I_no, I_on, delta_o)  # 37
            N[i] -= lost
            N[i] += gained
            N_n = settle(N[i].facts())  # 38
    return I_n


def fire_only(
    rules: Sequence[Rule], I: FactSet, delta: FactSet, only: FactSet, only_other: FactSet, delta_other: FactSet
) -> Bag:
    """Return the heads of the instances from I with an atom in delta that do not fire from the other I and delta (69).

    `only` is what the other I has not, and `only_other` what it has beside.
    """
    both, either = I - only, I | only_other
    N = derive_bag(rules, I, I, via=delta)  # with an atom in delta ...
    N -= derive_bag(rules, both, either, via=delta - only)  # ... and one that the other does not have
    N += derive_bag(rules, both - delta_other, either, via=(delta - only) - delta_other)
    return N
