"""Soufflé's own tests in steps: facts come in batches, some go and come back; each state is the one from scratch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

import upheld
from tests.collected.test_souffle import LIMITS, LONG, REFUSED, RUN, program_in
from tests.helpers.cases import requires_cases
from tests.helpers.sizes import exhaustive, usually
from upheld.language.core import Fact
from upheld.maintain.registry import ALGORITHMS
from upheld.materialisation.build import materialise_core
from upheld.materialisation.materialisation import Materialisation

pytestmark = requires_cases

ACCEPTED = [case for case in RUN if case not in REFUSED]
OTHERS = [name for name in ALGORITHMS if name != "adaptive"]

#: Every case is maintained by `adaptive`, and by another algorithm in turn; `make test` has every second one.
CHOSEN = [
    pytest.param(case, OTHERS[i % len(OTHERS)], marks=[exhaustive] if case in LONG or i % 2 else [])
    for i, case in enumerate(ACCEPTED)
]


def by_relation(facts: Iterable[Fact]) -> dict[str, list[tuple]]:
    given = defaultdict(list)
    for name, row in facts:
        given[name].append(row)
    return given


@pytest.mark.parametrize("case, other", CHOSEN)
def test_in_batches(cases, case, other):
    """From half of the facts, the rest in a batch or three, a tenth gone and back; the end is as if loaded at once."""
    folder = cases / "souffle" / "run" / case
    whole = upheld.load(program_in(folder), folder / "facts", algorithm="rematerialise", limits=LIMITS)
    core = replace(whole._core, facts=())  # so that facts of the program can come and go as well
    given = sorted({(name, row) for name in whole.relations for row in whole.explicit(name).to_set()}, key=repr)
    r = Random(case)
    r.shuffle(given)

    def scratch(facts: Iterable[Fact]) -> Materialisation:
        return materialise_core(core, by_relation(facts).items(), engine="memory", algorithm="rematerialise")

    half = len(given) // 2
    now = set(given[:half])
    ms = [
        materialise_core(core, by_relation(now).items(), engine="memory", algorithm=name)
        for name in ("adaptive", other)
    ]
    expected = scratch(now).facts()
    assert all(m.facts() == expected for m in ms)
    cuts = sorted(r.randint(half, len(given)) for _ in range(usually(0, 2)))
    batches = [given[a:b] for a, b in zip([half, *cuts], [*cuts, len(given)])]
    gone = r.sample(given, -(-len(given) // 10))
    for delete, insert in [*(((), batch) for batch in batches), (gone, ()), ((), gone)]:
        now = (now - set(delete)) | set(insert)
        expected = scratch(now).facts()
        for m in ms:
            m.update(delete=by_relation(delete), insert=by_relation(insert))
            assert m.facts() == expected
    assert expected == whole.facts()
