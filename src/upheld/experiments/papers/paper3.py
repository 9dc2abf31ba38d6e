"""Paper 3: equality by rewriting; its table is not measured yet, so its claims are open."""

from __future__ import annotations

from upheld.experiments.registry import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
