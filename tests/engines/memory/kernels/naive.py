"""A plain twin of each kernel: Python lists and loops that say what it computes, with no thought of how fast.

Rows are tuples of ints, flags are ints, and a truth table is a list of bools, as in `engines.memory.kernels`. A twin
returns all that its kernel writes when it is called again until it has nothing left to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Row = tuple[int, ...]
Pair = tuple[int, int]

BITS_64 = 2**64 - 1
GOLDEN, OWNING = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F


# -- hashes -----------------------------------------------------------------------------------------------------------


def shift_of(size: int) -> int:
    """The top `log2(size)` bits of 64 are left."""
    return 64 - (size.bit_length() - 1)


def hash_values(values: Sequence[int]) -> int:
    h = 0
    for value in values:
        h = ((h ^ (value & BITS_64)) * GOLDEN) & BITS_64
        h ^= h >> 32
    return h


def place(h: int, shift: int) -> int:
    return ((h * GOLDEN) & BITS_64) >> shift


def owner_of(value: int, parts: int) -> int:
    """The upper half of a hash, as a fraction of all of them."""
    h = ((value & BITS_64) * OWNING) & BITS_64
    h = ((h ^ (h >> 32)) * OWNING) & BITS_64
    return ((h >> 32) * parts) >> 32


# -- rows -------------------------------------------------------------------------------------------------------------


def make_rows(
    B: Sequence[Sequence[int]], width: int, terms: Sequence[int], constants: Sequence[int], bits: int
) -> tuple[list[Row], bool]:
    """The rows that terms name, cut to so many bits, and whether nothing was lost by cutting."""
    whole = [tuple(B[t][i] if t >= 0 else constants[-1 - t] for t in terms) for i in range(width)]
    made = [tuple(cut(value, bits) for value in row) for row in whole]
    return made, made == whole


def make_joined_rows(
    B: Sequence[Sequence[int]],
    parents: Sequence[int],
    rows: Sequence[Row],
    matches: Sequence[int],
    terms: Sequence[int],
    constants: Sequence[int],
    matched: int,
) -> list[Row]:
    def value(t: int, parent: int, row: int) -> int:
        return rows[row][t - matched] if t >= matched else B[t][parent] if t >= 0 else constants[-1 - t]

    return [tuple(value(t, p, m) for t in terms) for p, m in zip(parents, matches)]


def ascend(rows: Sequence[Row]) -> bool:
    return list(rows) == sorted(set(rows))


def cut(value: int, bits: int) -> int:
    """The signed number that the low bits of a value stand for."""
    low = value & (2**bits - 1)
    return low - 2**bits if low >> (bits - 1) else low


def find(wanted: Sequence[Row], rows: Sequence[Row]) -> list[int]:
    return [rows.index(row) if row in rows else -1 for row in wanted]


def find_or_add(
    wanted: Sequence[Row], rows: Sequence[Row], flags: Sequence[int], reject: Sequence[bool], bit: int
) -> tuple[list[Row], list[int], list[int]]:
    """The rows and their flags afterwards, and the rows that are new to the set with that bit."""
    rows, flags, out = list(rows), list(flags), []
    for row in wanted:
        if row not in rows:
            rows.append(row)
            flags.append(0)
        at = rows.index(row)
        if not flags[at] & bit and not reject[flags[at]]:
            flags[at] |= bit
            out.append(at)
    return rows, flags, out


def tally_rows(
    wanted: Sequence[Row], rows: Sequence[Row], numbers: Sequence[int], amount: int
) -> tuple[list[int], list[int]]:
    """The numbers of all rows afterwards, and the rows to which the amount was added, once for each time."""
    rows, numbers, log = list(rows), list(numbers), []
    for row in wanted:
        if row not in rows:
            rows.append(row)
            numbers.append(0)
        at = rows.index(row)
        numbers[at] += amount
        log.append(at)
    return numbers, log


def add_supports(
    rows: Sequence[int], heights: Sequence[int], ranks: Sequence[int], supports: Sequence[int], amount: int
) -> tuple[list[int], list[int]]:
    """The supports afterwards, and the rows to which the amount was added, once for each time."""
    log = [row for row, height in zip(rows, heights) if ranks[row] > height]
    return [n + amount * log.count(row) for row, n in enumerate(supports)], log


def take_back(numbers: Sequence[int], log: Sequence[int], amount: int) -> list[int]:
    return [number - amount * list(log).count(row) for row, number in enumerate(numbers)]


def add_counts(numbers: Sequence[int], rows: Sequence[int], counts: Sequence[int], sign: int) -> list[int]:
    return [n + sign * sum(c for r, c in zip(rows, counts) if r == row) for row, n in enumerate(numbers)]


# -- column indexes ---------------------------------------------------------------------------------------------------


def key(row: Row, columns: Sequence[int]) -> Row:
    return tuple(row[c] for c in columns)


def columns_equal(row: Row, equal: Sequence[Pair]) -> bool:
    return all(row[a] == row[b] for a, b in equal)


def chains(rows: Sequence[Row], columns: Sequence[int]) -> dict[Row, list[int]]:
    """For each key its rows, the newest first."""
    found: dict[Row, list[int]] = {}
    for number, row in enumerate(rows):
        found.setdefault(key(row, columns), []).insert(0, number)
    return found


def probe(
    wanted: Sequence[Row],
    rows: Sequence[Row],
    columns: Sequence[int],
    flags: Sequence[int],
    truth: Sequence[bool],
    equal: Sequence[Pair],
) -> list[Pair]:
    return [
        (i, number)
        for i, values in enumerate(wanted)
        for number, row in enumerate(rows)
        if key(row, columns) == values and truth[flags[number]] and columns_equal(row, equal)
    ]


def probe_some(
    wanted: Sequence[Row],
    asked: Sequence[tuple[int, int]],
    rows_of_key: Mapping[Row, Sequence[int]],
    rows: Sequence[Row],
    flags: Sequence[int],
    truth: Sequence[bool],
    equal: Sequence[Pair],
    seen: dict[int, int],
) -> list[Pair]:
    """The next rows of some keys, at most so many of each; `seen` is how many rows of a key have been looked at."""
    found = []
    for i, limit in asked:
        mine = rows_of_key.get(wanted[i], ())
        for row in mine[seen.get(i, 0) :]:
            if limit == 0:
                break
            seen[i] = seen.get(i, 0) + 1
            if truth[flags[row]] and columns_equal(rows[row], equal):
                found.append((i, row))
                limit -= 1
    return found


def group_rows(
    rows: Sequence[Row], columns: Sequence[int], equal: Sequence[Pair], groups: dict[Row, int]
) -> dict[int, int]:
    """The group of each row that has one."""
    fitting = (i for i in range(len(rows)) if columns_equal(rows[i], equal))
    return {i: groups[key(rows[i], columns)] for i in fitting if key(rows[i], columns) in groups}


def members(numbers: Sequence[int], start: int) -> dict[int, list[int]]:
    """The rows of each group from row `start` on."""
    return {g: [i for i in range(start, len(numbers)) if numbers[i] == g] for g in set(numbers[start:]) if g >= 0}


def copy_rows(
    rows: Sequence[Row], chosen: Sequence[int], rules: Sequence[Sequence[int]], sources: Sequence[int],
    constants: Sequence[Row],
) -> list[tuple[int, Row]]:  # fmt: skip
    """Each chosen row with its copies, by the rules that each has."""
    return [
        (row, tuple(rows[row][s] if s >= 0 else c for s, c in zip(sources, constants[rule])))
        for row, mine in zip(chosen, rules)
        for rule in mine
    ]


def cross(width: int, candidates: Sequence[int]) -> list[Pair]:
    return [(i, j) for i in range(width) for j in candidates]


# -- numbers by round -------------------------------------------------------------------------------------------------

#: A number for each row and round.
ByRound = dict[Pair, int]


def add_by_round(by_round: ByRound, rows: Sequence[int], counts: Sequence[int], sign: int, round: int) -> ByRound:
    after = dict(by_round)
    for row, count in zip(rows, counts):
        after[row, round] = after.get((row, round), 0) + sign * count
    return after


def number_in_round(by_round: ByRound, rows: Sequence[int], round: int) -> list[int]:
    return [by_round.get((row, round), 0) for row in rows]


def rounds_after(by_round: ByRound, rows: Sequence[int], round: int) -> set[Pair]:
    """The pairs of one of the rows and a later round in which its number is above zero."""
    return {(row, i) for (row, i), number in by_round.items() if row in rows and i > round and number > 0}


# -- batches and sets -------------------------------------------------------------------------------------------------


def gather(
    B: Sequence[Sequence[int]],
    kept: Sequence[int],
    parents: Sequence[int],
    rows: Sequence[Row],
    matches: Sequence[int],
    columns: Sequence[int],
) -> list[list[int]]:
    return [[B[v][i] for i in parents] for v in kept] + [
        [rows[j][c] if c >= 0 else j for j in matches] for c in columns
    ]


def first_of_each(bindings: Sequence[Row]) -> list[bool]:
    return [binding not in bindings[:i] for i, binding in enumerate(bindings)]


def select(candidates: Sequence[int], flags: Sequence[int], truth: Sequence[bool]) -> list[int]:
    return [row for row in candidates if truth[flags[row]]]


def narrow(rows: Sequence[int], flags: Sequence[int], truth: Sequence[bool], hold: Sequence[bool]) -> list[bool]:
    return [held and truth[flags[row]] for row, held in zip(rows, hold, strict=True)]


def raise_to(rows: Sequence[int], numbers: Sequence[int], highest: Sequence[int]) -> list[int]:
    return [max(high, numbers[row]) for row, high in zip(rows, highest, strict=True)]


def mark(
    candidates: Sequence[int], flags: Sequence[int], reject: Sequence[bool], bit: int
) -> tuple[list[int], list[int]]:
    """The candidates that are given a bit, and all flags then."""
    fresh = [row for row in candidates if not flags[row] & bit and not reject[flags[row]]]
    return fresh, set_bits(flags, fresh, bit)


def scan(flags: Sequence[int], n: int, truth: Sequence[bool]) -> list[int]:
    return [row for row in range(n) if truth[flags[row]]]


def set_bits(flags: Sequence[int], candidates: Sequence[int], bits: int) -> list[int]:
    return [f | bits if row in candidates else f for row, f in enumerate(flags)]


def clear_bits(flags: Sequence[int], candidates: Sequence[int], keep: int) -> list[int]:
    return [f & keep if row in candidates else f for row, f in enumerate(flags)]


# -- matrices of bits -------------------------------------------------------------------------------------------------


def pair_limits(rows: Sequence[Row], candidates: Sequence[int]) -> tuple[int, int, int]:
    """The lowest value, at most 0, and how wide and high a matrix for all of the pairs is."""
    chosen = [rows[row] for row in candidates]
    lowest = min([0, *(value for row in chosen for value in row)])
    return lowest, *(max([0, *(row[c] + 1 for row in chosen)]) for c in (0, 1))


def within(pairs: Sequence[Row], width: int, height: int) -> set[Row]:
    """The pairs that have a bit in a matrix."""
    return {(x, y) for x, y in pairs if 0 <= x < width and 0 <= y < height}


def clusters(pairs: Sequence[Row], values: int) -> list[list[int]]:
    """The values that pairs lead to from each other, in order; a value of no pair is by itself."""
    found = [{x} for x in range(values)]
    for x, y in pairs:
        joined = found[x] | found[y]
        for value in joined:
            found[value] = joined
    return sorted({min(cluster): sorted(cluster) for cluster in found}.values())


def within_clusters(pairs: Sequence[Row], clusters: Sequence[Sequence[int]]) -> set[Row]:
    """The pairs of two values of one cluster."""
    return {(x, y) for x, y in pairs if any(x in cluster and y in cluster for cluster in clusters)}


def unseen_pairs(pairs: Sequence[Row], seen: set[Row], within: set[Row]) -> list[Row]:
    """The pairs not seen yet; those without a bit, which are not `within` the matrix, are never seen."""
    seen, out = set(seen), []
    for pair in pairs:
        if pair not in seen:
            out.append(pair)
            seen |= {pair} & within
    return out


def append_pairs(
    pairs: Sequence[Row], marked: bool, seen: set[Row], within: set[Row]
) -> tuple[int, list[Row], set[Row]]:
    """Return the number of pairs before the first one without a bit, the pairs appended, and the pairs seen."""
    end = next((i for i, pair in enumerate(pairs) if pair not in within), len(pairs))
    if marked:
        return end, list(pairs[:end]), seen
    return end, unseen_pairs(pairs[:end], seen, within), seen | set(pairs[:end])


def unknown_pairs(pairs: Sequence[Row], seen: set[Row]) -> list[Row]:
    """The pairs that were not seen before; those without a bit are never seen."""
    return [pair for pair in pairs if pair not in seen]


# -- matrices of counts -----------------------------------------------------------------------------------------------

#: The cells of pairs that are within a matrix: one more than the times they were counted, or 0.
Cells = dict[Row, int]


def know_pairs(rows: Sequence[Row], candidates: Sequence[int], cells: Cells) -> tuple[Cells, list[int]]:
    """The cells afterwards, and the rows that are known then."""
    known = [row for row in candidates if rows[row] in cells]
    pairs = {rows[row] for row in known}
    return {pair: max(cell, 1) if pair in pairs else cell for pair, cell in cells.items()}, known


def tally_pairs(pairs: Sequence[Row], cells: Cells, full: int) -> tuple[Cells, list[Row], list[Row]]:
    """The cells afterwards, the pairs to be looked up, and those whose cells were full."""
    cells, out, filled = dict(cells), [], []
    for pair in pairs:
        if not cells.get(pair):
            out.append(pair)
        if pair in cells:
            if cells[pair] == full:
                filled.append(pair)
                cells[pair] = 1
            cells[pair] += 1
    return cells, out, filled


def count_known_pairs(pairs: Sequence[Row], known: set[Row], counts: Cells, full: int) -> tuple[Cells, list[Row]]:
    """The counts afterwards, and the pairs that are not known or have full cells."""
    counts, out = dict(counts), []
    for pair in pairs:
        if (pair in known or counts.get(pair, 0)) and counts[pair] < full:
            counts[pair] = max(counts[pair], 1) + 1
        else:
            out.append(pair)
    return counts, out


def take_counts(
    rows: Sequence[Row], candidates: Sequence[int], cells: Cells, left: int
) -> tuple[Cells, list[tuple[int, int]]]:
    """The cells afterwards, and the rows that were counted with the times they were."""
    taken = [(row, cells[rows[row]] - 1) for row in candidates if cells.get(rows[row], 0) > 1]
    emptied = {rows[row] for row in candidates}
    return {pair: left if cell and pair in emptied else cell for pair, cell in cells.items()}, taken


# -- groups -----------------------------------------------------------------------------------------------------------


def connect(pairs: Sequence[Pair], size: int) -> list[int]:
    """The number of the group of each place; groups are numbered in the order of their first places."""
    groups = list(range(size))
    for a, b in pairs:
        one, other = groups[a], groups[b]
        groups = [one if group == other else group for group in groups]
    numbered = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    return [numbered[group] for group in groups]
