"""Random programs with dates, timestamps, decimals, Booleans and nulls, and streams of updates."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random

from tests.helpers.programs.aggregates import random_updates
from tests.helpers.programs.strategies import Case, FactsGiven

#: Relations in levels: a negation or an aggregate reads those of lower levels.
DECLARED = {
    "s": ("symbol", "date", "decimal(6, 2)", "boolean", "timestamp?"),
    "n": ("number?", "symbol?"),
    "d": ("date", "decimal(6, 2)?"),
    "k": ("boolean",),
    "r": ("List",),
    "t": ("date", "date"),
    "x": ("symbol?", "number?"),
    "m": ("date", "decimal(6, 2)"),
    "u": ("timestamp?", "boolean"),
    "l": ("date", "decimal(6, 2)?", "List"),
    "a": ("symbol", "decimal(6, 2)"),
    "f": ("date", "float"),
    "c": ("number?", "number"),
    "z": ("date",),
}
GIVEN = ("s", "n", "d", "k", "r", "t")
TYPES = ".type List = [day:date, price:decimal(6, 2), seen:timestamp, open:boolean, rest:List]"

#: Joins, comparisons and functors, in recursion too.
BELOW = (
    "t(d, e) :- d(d, _), d(e, _), 0 < days_between(d, e), days_between(d, e) < 40.",
    "t(d, f) :- t(d, e), t(e, f).",
    "t(d, add_months(d, 1)) :- d(d, a), a > 1.5, k(true).",
    't(truncate(d, "month"), d) :- s(_, d, _, b, _), k(b).',
    "x(s, n) :- n(n, s).",
    "x(s, n) :- n(n, _), s(s, _, _, _, _), n != 2.",
    "x(s, null) :- n(_, s), !s(s, _, _, true, _).",
    "x(s, m) :- n(m, s), n(m, t), t != s.",
    "m(d, a) :- d(d, a), !is_null(a).",
    "m(d, a + b) :- d(d, a), s(_, d, b, _, _).",
    "m(d, a * b) :- d(d, a), d(d, b), a < b.",
    "m(d, a / 3) :- s(_, d, a, false, _), a != 0.5.",
    'm(to_date(t), 1.25) :- s("a", _, _, _, t).',
    "u(t, b) :- s(_, _, _, b, t).",
    "u(t, c) :- u(t, _), k(c), s(_, d, _, _, t), to_date(t) >= d.",
    "u(add_seconds(t, 3600), b) :- s(_, _, _, b, t), hour(t) < 20.",
    "u(null, b) :- k(b).",
    "r(q) :- r([_, _, _, _, q]).",
    "r([d, a, to_timestamp(d), b, nil]) :- s(_, d, a, b, _), k(b).",
    "r([d, -a, t, false, q]) :- r(q), q = [d, a, t, true, nil], a > 0.",
    "l(d, a, q) :- r(q), q = [d, a, _, _, _].",
    "l(d, a, q) :- d(d, a), r(q), q = [d, a, _, true, _].",
    "l(e, a, q) :- l(d, a, q), t(d, e), !is_null(a).",
)
ABOVE = (
    "a(s, n) :- s(s, _, _, _, _), n = sum p : { s(s, _, p, _, _) }.",
    "a(s, n) :- s(s, d, _, _, _), n = max p : { m(d, p) }.",
    "f(d, n) :- d(d, _), n = mean p : { d(e, p), t(e, d) }.",
    "c(n, k) :- n(n, _), k = count : { x(s, n) }.",
    "c(year(d), k) :- t(d, _), k = count : { u(t, _), d(d, _) }.",
    "c(0, k) :- k = sum n : { n(n, _) }.",
    "c(k, 0) :- k = count : { l(_, a, [_, b, _, _, _]), a != b }.",
    "z(d) :- d(d, a), !m(d, a).",
    "z(d) :- t(d, e), !t(e, d), !u(_, true).",
    "z(d) :- d = min e : { t(e, _) }.",
    "z(d) :- l(d, a, _), !r([d, a, _, _, nil]).",
)

DATES = tuple(dt.date(2024, 1, 31) + dt.timedelta(days) for days in (0, 1, 29, 30, 366))
TIMES = tuple(dt.datetime(2024, 1, 31, hour, tzinfo=dt.UTC) for hour in (0, 12, 23))
PRICES = tuple(map(Decimal, ("0.50", "1.25", "-2.00", "3.33", "9999.99")))


def random_column_case(r: Random, updates: int) -> Case:
    """Return rules over values of these types, in records too, with updates of the explicit facts."""
    lines = [TYPES]
    for name, types in DECLARED.items():
        lines.append(f".decl {name}({', '.join(f'c{i}:{type}' for i, type in enumerate(types))})")
    lines += r.sample(BELOW, r.randint(4, 10)) + r.sample(ABOVE, r.randint(1, 4))
    facts = random_facts(r, 6)
    return Case("\n".join(lines), facts, random_updates(r, facts, updates, random_facts))


def random_facts(r: Random, most: int) -> FactsGiven:
    return {  # type: ignore[return-value]
        name: [tuple(random_value(r, type) for type in DECLARED[name]) for _ in range(r.randint(0, most))]
        for name in GIVEN
        if r.random() < 0.8
    }


def random_value(r: Random, type: str) -> object:
    if type.endswith("?") and r.random() < 0.3:
        return None
    match type.removesuffix("?"):
        case "date":
            return r.choice(DATES)
        case "timestamp":
            return r.choice(TIMES)
        case "boolean":
            return r.random() < 0.5
        case "symbol":
            return r.choice("abc")
        case "number":
            return r.randint(0, 3)
        case "List":
            return random_record(r, 2)
        case _:
            return r.choice(PRICES if r.random() < 0.2 else PRICES[:3])


def random_record(r: Random, depth: int) -> str:
    """Return the canonical text of a record."""
    if not depth or r.random() < 0.2:
        return "nil"
    price = r.choice(PRICES)
    seen = r.choice(TIMES).isoformat().replace("+00:00", "Z")
    rest = random_record(r, depth - 1)
    return f'["{r.choice(DATES)}", {price}, "{seen}", {r.choice(("true", "false"))}, {rest}]'
