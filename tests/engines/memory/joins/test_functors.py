"""Built-ins on batches have the results that `language.functors` defines, at the extremes of each type as well."""

from __future__ import annotations

from itertools import product
from math import inf

import numpy as np
import pytest

from upheld.engines.memory.joins.functors import Batch, evaluate, holds
from upheld.engines.memory.storage.codec import Codec
from upheld.language.ast import Variable
from upheld.language.core import Apply, Builtin
from upheld.language.types.functors import SIGNATURES, Functor, Undefined, constraint, functor
from upheld.language.types.primitive import INT64_MAX, INT64_MIN, UINT64_MAX
from upheld.language.values import NAN, Value

EXTREMES: dict[str, list[Value]] = {
    "number": [INT64_MIN, INT64_MIN + 1, -(2**32), -64, -3, -1, 0, 1, 2, 5, 63, 64, 2**32, INT64_MAX - 1, INT64_MAX],
    "unsigned": [0, 1, 2, 5, 63, 64, 2**32, 2**63 - 1, 2**63, 2**63 + 1, UINT64_MAX - 1, UINT64_MAX],
    "float": [-inf, -1.7976931348623157e308, -2.5, -1.0, -5e-324, 0.0, 5e-324, 1.0, 2.5, 1e308, inf, NAN],
    "symbol": ["", "a", "ab", "\n", "é", "0", "-1"],
}

FUNCTORS = [
    functor(name, 2, type)
    for name, signatures in SIGNATURES.items()
    for signature in signatures
    for type in EXTREMES
    if len(signature.arguments) == 2 and type in signature.ranges_over and not signature.generates
    if {"T", *EXTREMES}.issuperset(signature.arguments)
]


@pytest.mark.parametrize("chosen", FUNCTORS, ids=lambda f: f"{f.name}-{f.type}")
def test_two_operands(chosen):
    """A pair of operands has its result or none, alone in its batch and beside any others."""
    pairs = list(product(EXTREMES[chosen.type], repeat=2))
    expected = {pair: _defined(chosen, pair) for pair in pairs}
    batches = [[pair] for pair in pairs]
    batches += [[(left, right) for right in EXTREMES[chosen.type]] for left in EXTREMES[chosen.type]]
    batches += [[(left, right) for left in EXTREMES[chosen.type]] for right in EXTREMES[chosen.type]]
    batches += [pairs, [pair for pair in pairs if expected[pair] is not None]]
    for batch in batches:
        assert _evaluated(chosen, batch) == [expected[pair] for pair in batch], batch


@pytest.mark.parametrize("type", EXTREMES)
@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_comparisons(operator, type):
    codec = Codec()
    pairs = list(product(EXTREMES[type], repeat=2))
    batch = _batch(codec, pairs, type)
    truth = holds(Builtin(operator, type, (Variable("x"), Variable("y"))), batch)
    assert truth.tolist() == [constraint(operator, type)(*pair) for pair in pairs]


def _batch(codec: Codec, pairs: list[tuple[Value, ...]], type: str) -> Batch:
    columns = {name: codec.encode([pair[i] for pair in pairs], type) for i, name in enumerate("xy")}
    return Batch(codec, {name: np.asarray(codes) for name, codes in columns.items()}, len(pairs))


def _evaluated(chosen: Functor, pairs: list[tuple[Value, ...]]) -> list[Value | None]:
    codec = Codec()
    batch = _batch(codec, pairs, chosen.type)
    codes, ok = evaluate(Apply(chosen, (Variable("x"), Variable("y"))), chosen.type, batch)
    values = codec.decode(codes, chosen.type)
    known = np.broadcast_to(ok, len(pairs))
    return [value if known[i] and i not in batch.undefined else None for i, value in enumerate(values)]


def _defined(chosen: Functor, pair: tuple[Value, ...]) -> Value | None:
    try:
        return chosen.evaluate(*pair)
    except Undefined:
        return None
