"""How quickly facts get into the memory engine and out of it: `python -m benchmarks.measure.files`.

Prints a table of CPU seconds on one thread. Everything is made with one seed, and each kernel is called once before it
is timed. `--rows` and `--megabytes` make it smaller.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from upheld.engines.memory.files.reader import columns_in
from upheld.engines.memory.files.writer import columns_text
from upheld.engines.memory.kernels.jit import compile_kernels
from upheld.engines.memory.storage.codec import Codec
from upheld.facts.columns import Columns
from upheld.facts.files.formats import Format
from upheld.facts.ingest import facts_of
from upheld.facts.relation import Relation

T = TypeVar("T")

COLUMNS = ("x", "y")
NODES = 1_000_000
FORMAT = Format("edge", COLUMNS)
KINDS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "numbers": ("number", str),
    "floats": ("float", lambda i: str(i / 100)),
    "symbols, each about ten times": ("symbol", lambda i: f"node{i}"),
    "symbols, each once": ("symbol", lambda i: f"n{i * 2_654_435_761 % 2**61}"),
    "IRIs": ("symbol", lambda i: f"<http://example.org/department{i % 100}/student{i}>"),
}


def main() -> None:
    compile_kernels()
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--megabytes", type=int, default=100)
    arguments.add_argument("--rows", type=int, default=10_000_000)
    given = arguments.parse_args()
    print("| facts file | MB | rows | seconds | MB per second |\n|---|---|---|---|---|")
    for name, (type_, spelled) in KINDS.items():
        read_file(name, type_, file(spelled, given.megabytes * 1_000_000, distinct="once" in name))
    print("\n| relation | rows | to | seconds |\n|---|---|---|---|")
    for type_ in ("number", "symbol"):
        give_back(type_, given.rows)


def file(spelled: Callable[[Any], str], size: int, distinct: bool) -> bytes:
    """Return a facts file of about that size."""
    random = np.random.default_rng(1)
    parts: list[str] = []
    length, next_node = 0, 0
    while length < size:
        nodes = np.arange(next_node, next_node + 200_000) if distinct else random.integers(0, NODES, 200_000)
        next_node += 200_000
        texts = list(map(spelled, nodes.tolist()))
        parts.append("".join(f"{x}\t{y}\n" for x, y in zip(texts[::2], texts[1::2])))
        length += len(parts[-1])
    return "".join(parts).encode()


def read_file(name: str, type_: str, data: bytes) -> None:
    def read(data: bytes) -> int:
        facts = columns_in(data, Path("edge.facts"), (type_, type_), FORMAT)
        Codec().encode_columns(facts)  # type: ignore[arg-type]
        return len(facts)

    read(data[: data.index(b"\n", 1_000_000) + 1])
    rows, seconds = timed(lambda: read(data))
    print(
        f"| {name} | {len(data) / 1e6:.0f} | {rows:,} | {seconds:.2f} | {len(data) / 1e6 / seconds:.0f} |", flush=True
    )


def give_back(type_: str, count: int) -> None:
    types = (type_, type_)
    codec = Codec()
    codec.encode([f"node{i}" for i in range(NODES)], "symbol")
    codes = np.random.default_rng(1).integers(0, NODES, (count, 2)).astype(np.int32)
    columns_text(Relation("edge", COLUMNS, types, codec.reading.columns(codes[:10_000], types)), types, FORMAT)
    relation = Relation("edge", COLUMNS, types, codec.reading.columns(codes, types))
    ways: dict[str, Callable[[], Any]] = {
        "ascending order": lambda: relation.by_column,
        "NumPy, in order": relation.to_numpy,
        "pandas, in order": relation.to_pandas,
        "Arrow, in order": relation.to_arrow,
        "text of a facts file, in order": lambda: columns_text(relation, types, FORMAT),
    }
    for name, way in ways.items():
        print(f"| {type_}, {type_} | {count:,} | {name} | {timed(way)[1]:.2f} |", flush=True)
    table = relation.to_arrow()
    taken, seconds = timed(lambda: facts_of("edge", table, types, COLUMNS)[0])
    assert isinstance(taken, Columns), "rows where columns were given"
    print(f"| {type_}, {type_} | {count:,} | columns again, from Arrow | {seconds:.2f} |", flush=True)
    print(f"| {type_}, {type_} | {count:,} | codes again | {timed(lambda: Codec().encode_columns(taken))[1]:.2f} |")


def timed(work: Callable[[], T]) -> tuple[T, float]:
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


if __name__ == "__main__":
    main()
