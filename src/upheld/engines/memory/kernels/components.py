"""The kernel that finds the connected components of pairs."""

from __future__ import annotations

from upheld.engines.memory.kernels.jit import kernel


@kernel
def connect(left, right, groups):
    """Write for each place the number of the group that pairs of places put it into; groups are numbered from 0 on."""
    for i in range(len(groups)):
        groups[i] = i
    for k in range(len(left)):
        a, b = left[k], right[k]
        while groups[a] != a:
            groups[a] = groups[groups[a]]
            a = groups[a]
        while groups[b] != b:
            groups[b] = groups[groups[b]]
            b = groups[b]
        groups[max(a, b)] = min(a, b)
    # A root comes before all others of its group, and keeps its own number until all that point to it are numbered.
    count = 0
    for i in range(len(groups)):
        if groups[i] == i:
            count += 1
            groups[i] = -count
        else:
            root = groups[i]
            while root >= 0:
                root = groups[root]
            groups[i] = root
    for i in range(len(groups)):
        groups[i] = -1 - groups[i]
