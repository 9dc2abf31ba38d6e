"""All experiments by id."""

from __future__ import annotations

from experiments.papers import paper1, paper1_large, paper2, paper3, paper4, paper5, spark
from experiments.registry import Experiment
from upheld.base.errors import Problem, UsageError, nearest, quote


def experiments() -> dict[str, Experiment]:
    """Return all experiments by id, in the order of the papers."""
    papers = (paper1, paper1_large, paper2, paper3, paper4, paper5, spark)
    return {experiment.id: experiment for paper in papers for experiment in paper.EXPERIMENTS}


def experiment_named(name: str) -> Experiment:
    """Return the experiment with this id."""
    known = experiments()
    if name not in known:
        problem = Problem(
            "unknown-experiment",
            f"unknown experiment {quote(name)}",
            note=f"the experiments are {', '.join(map(quote, known))}",
            hint=nearest(name, list(known)),
        )
        raise UsageError(problem)
    return known[name]
