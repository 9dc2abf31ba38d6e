"""Facts of program analyses: blocks of functions, the jumps between them, definitions and calls."""

from __future__ import annotations

import numpy as np

from experiments.data.facts import Facts, Numbers, distinct


def jumps(functions: int, blocks: int, r: np.random.Generator) -> Numbers:
    """Return the jumps within functions: from each block to the next one, from every third also to another block."""
    first = np.repeat(np.arange(functions) * blocks, blocks)
    block = first + np.tile(np.arange(blocks), functions)
    onwards = block[block % blocks < blocks - 1]
    from_third = np.flatnonzero(r.random(len(block)) < 1 / 3)
    to = first[from_third] + r.integers(0, blocks, len(from_third))
    pairs = np.concatenate([np.stack([onwards, onwards + 1], 1), np.stack([block[from_third], to], 1)])
    return r.permutation(distinct(pairs))


def definitions(functions: int, blocks: int, variables: int, r: np.random.Generator) -> Facts:
    """Control-flow graphs whose blocks define two variables each; a definition kills all others of its variable."""
    count = functions * blocks * 2
    definition = np.arange(count)
    block = definition // 2
    variable = block // blocks * variables + r.integers(0, variables, count)
    kills = []
    order = np.argsort(variable, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], variable[order][1:] != variable[order][:-1]]))
    for group in np.split(order, starts[1:]):
        one, two = np.repeat(group, len(group)), np.tile(group, len(group))
        kills.append(np.stack([one, block[two]], 1)[block[one] != block[two]])
    return {
        "defines": np.stack([definition, block], 1),
        "next": jumps(functions, blocks, r),
        "kills": distinct(np.concatenate(kills)),
    }


def instructions(functions: int, blocks: int, each: int, r: np.random.Generator) -> Facts:
    """Functions of blocks with `each` instructions; jumps are missing here and there, and every fourth block calls."""
    jumping = jumps(functions, blocks, r)
    calling = np.flatnonzero(r.random(functions * blocks) < 1 / 4)
    return {
        "entry": np.zeros((1, 1), np.int64),
        "next": jumping[r.random(len(jumping)) < 0.95],
        "calls": np.stack([calling, r.integers(0, functions, len(calling))], 1),
        "starts": np.stack([np.arange(functions), np.arange(functions) * blocks], 1),
        "instruction": np.stack(
            [np.repeat(np.arange(functions * blocks), each), np.arange(functions * blocks * each)], 1
        ),
    }
