"""Derive a workload with egglog: the same rules in its own language, saturated.

The package runs egglog's rules semi-naively and joins bodies by its worst-case optimal join, on one thread.

    python -m benchmarks.engines.egglog FOLDER BYTES
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from egglog.bindings import EGraph

from benchmarks.measure.spending import Measurement, Spent, asked, limit_memory, peak_memory, spending
from benchmarks.workloads.rulesets import Atom, Rule, Ruleset, read_program, read_sum

TYPES = {"number": "i64", "symbol": "String"}


def atom_text(atom: Atom) -> str:
    return f"({atom.relation} {' '.join(map(term_text, atom.terms))})"


def term_text(term: str) -> str:
    summed = read_sum(term)
    return f"(+ {summed[0]} {summed[1]})" if summed else term


def rule_text(rule: Rule) -> str:
    body = [*map(atom_text, rule.body), *(f"({c.operator} {c.left} {c.right})" for c in rule.comparisons)]
    return f"(rule ({' '.join(body)}) ({atom_text(rule.head)}))"


class Evaluation:
    """Facts of one program in an e-graph of their own."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.program: Ruleset = read_program((folder / "program.dl").read_text(encoding="utf-8"))
        self.egraph = EGraph(fact_directory=str(folder))
        self.run(*(f"(relation {n} ({' '.join(map(TYPES.__getitem__, ts))}))" for n, ts in self.program.types.items()))
        self.run(*map(rule_text, self.program.rules))

    def run(self, *lines: str) -> list[str]:
        return [str(o) for o in self.egraph.run_program(*self.egraph.parse_program("\n".join(lines)))]

    def load(self) -> None:
        # egglog takes an empty file for one bad line.
        full = [n for n in self.program.inputs if (self.folder / f"{n}.facts").stat().st_size]
        self.run(*(f'(input {name} "{name}.facts")' for name in full))

    def derive(self) -> None:
        self.run("(run-schedule (saturate (run)))")

    def counts(self) -> dict[str, int]:
        return {name: n for name in self.program.arities if (n := int(self.run(f"(print-size {name})")[-1]))}


def main() -> None:
    folder, limit, _ = asked()
    limit_memory(limit)
    program = read_program((folder / "program.dl").read_text(encoding="utf-8"))
    if any(rule.negated for rule in program.rules):
        print(json.dumps({"failed": "has no negation"}))
        return
    tiny = Evaluation(folder / "tiny")
    tiny.load()
    tiny.derive()
    evaluation = Evaluation(folder)
    with spending() as loading:
        evaluation.load()
    with spending() as deriving:
        evaluation.derive()
    Measurement(
        total=Spent(loading.wall + deriving.wall, loading.cpu + deriving.cpu),
        loading=loading,
        peak=peak_memory(),
        facts=evaluation.counts(),
        version=version("egglog"),
    ).tell()


if __name__ == "__main__":
    main()
