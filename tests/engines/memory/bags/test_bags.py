"""Unions of rule instances: each instance once, with the rows that are known of it."""

import numpy as np

import upheld
from upheld.algebra.sets import instances
from upheld.engines.memory.bags.bags import Group, MemoryInstances, own_instances, union

RULES = "two(x, z) :- edge(x, y), edge(y, z)."
EDGES = [(k, (k * 3 + 1) % 17) for k in range(17)]


def found() -> MemoryInstances:
    """The instances of a rule from all edges, as an update finds them."""
    m = upheld.materialise(RULES, {"edge": EDGES}, algorithm="counting")
    state = m._state
    return own_instances(instances(state.strata.with_rules[0].rules, state.I, state.I, via=state.I))


def test_instances_come_with_the_rows_of_their_bodies():
    """The join knows the rows of both atoms, and they are the rows that looking them up finds."""
    some = found()
    assert len(some) == 17
    for group in some.groups:
        assert len(group._rows) == 2
        for atom in group.rule.positive:
            looked_up = some.matcher.find(atom, group.rule.variables(), group.B)
            assert group.rows(some.matcher, atom).tolist() == looked_up.tolist()


def test_a_union_has_each_instance_once():
    some = found()
    twice = some | some
    assert twice.at_most == 34
    assert sorted(map(str, twice)) == sorted(map(str, some))
    assert twice.at_most == len(twice) == 17
    assert all(len(group._rows) == 2 for group in twice.groups)


def test_rows_that_one_group_does_not_know_are_looked_up():
    some = found()
    (group,) = some.groups
    together = union([group, Group(group.rule, group.B)])
    assert len(together) == 17 and not together._rows
    assert (
        together.rows(some.matcher, group.rule.positive[0]).tolist()
        == group.rows(some.matcher, group.rule.positive[0]).tolist()
    )


def test_an_instance_may_be_twice_in_one_group():
    """As a kernel that stops may leave it, which lists an instance for each fact that brings it to a round."""
    some = found()
    (group,) = some.groups
    doubled = Group(group.rule, np.concatenate([group.B, group.B[:, :3]], axis=1))
    assert len(MemoryInstances(some.matcher, [doubled], may_repeat=True)) == 17
