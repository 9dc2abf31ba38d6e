"""The dictionary of texts: each distinct one once, as UTF-8, and as a Python object only when that is asked for.

data      UTF-8 of all texts, one after the other, each behind a word of its length and one more than its code
starts    where the word of each text lies; for a code that is free, -2 - the next one that is, or -1
size      the number of codes, the bytes in use, the first code that is free, or -1, and how many are
slots     a hash table of texts: tag and 1 + code of one, or 0; its size is a power of two
bounds    where texts lie in other bytes: after the place in `before`, and before that in `after`
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.base.limits import reserve
from upheld.engines.memory.kernels.jit import kernel, prefetch, word_at
from upheld.engines.memory.storage.arrays import each_once
from upheld.facts.columns.utf8 import Part

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]

GROUP = 16
NEWLINE = ord("\n")
SEED = np.uint64(0xCBF29CE484222325)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
BYTE = np.uint64(8)
HALF = np.uint64(32)
#: How far upper bits are brought down to meet the next word: by whole bytes they would meet their own likes, in texts
#: such as `000000004217`, whose last word has bytes of the one before.
ASKEW = np.uint64(29)
LOW_HALF = np.uint64(2**32 - 1)
#: The bytes of the word before a text.
HEAD = 8
#: Texts, of which many may be the same, that room is made for at a time.
_AT_ONCE = 1 << 15
#: Names of what `size` holds.
CODES, USED, FREE, FREED = range(4)


class TextPool:
    """Distinct texts, each with a code. A code is that of one text until it is freed, and then of another."""

    def __init__(self) -> None:
        self._data: Bytes = np.empty(1 << 10, np.uint8)
        self._starts: Places = np.empty(1 << 6, np.int64)
        self._slots = np.zeros(1 << 7, np.uint64)
        self._size = np.array([0, 0, -1, 0], np.int64)
        #: Texts that have been made into Python objects, and which these are. Any thread may make more of them at any
        #: time, so both arrays are replaced together, and what one thread makes in vain another makes again.
        self._made: tuple[npt.NDArray[np.object_], npt.NDArray[np.bool_]]
        self._made = np.empty(0, np.object_), np.empty(0, np.bool_)
        self._has_newlines = False
        #: Held while texts are moved or given up, and while any thread reads them.
        self._reading = threading.Lock()
        #: The bytes of texts that are gone.
        self._waste = 0

    def __len__(self) -> int:
        """Return a number that all codes are below."""
        return int(self._size[CODES])

    @property
    def count(self) -> int:
        """The number of texts."""
        return int(self._size[CODES] - self._size[FREED])

    def nbytes(self) -> int:
        """Return the bytes of all arrays; Python objects are not counted."""
        arrays = self._data, self._starts, self._slots, *self._made
        return sum(array.nbytes for array in arrays)

    @property
    def bytes(self) -> int:
        """The bytes of all texts."""
        return int(self._size[USED]) - self._waste - HEAD * self.count

    # -- texts to codes ------------------------------------------------------------------------------------------------

    def intern(self, data: Bytes, before: Places, after: Places) -> Codes:
        """Return the codes of texts that lie within bounds in some bytes; none of them holds a newline."""
        self._make_room(len(before), int((after - before).sum()) - len(before))
        codes = np.empty(len(before), np.int64)
        intern(data, before, after, self._slots, self._data, self._starts, self._size, codes)
        return codes

    def intern_repeated(self, texts: Part, codes: Codes) -> None:
        """Write the codes of texts that may be the same over and over: there is no room made for all of them."""
        self._has_newlines |= not texts.is_plain
        for i in range(0, len(codes), _AT_ONCE):
            before, after, out = (array[i : i + _AT_ONCE] for array in (texts.before, texts.after, codes))
            self._make_room(len(out), int((after - before).sum()) - len(out))
            intern(texts.data, before, after, self._slots, self._data, self._starts, self._size, out)

    def intern_pool(self, other: TextPool) -> Codes:
        """Return the codes of all texts of another dictionary, by their codes there; of one that is free, -1."""
        with other._reading:
            self._has_newlines |= other._has_newlines
            if not len(self) and not other._size[FREED]:
                data, starts = other._data.copy(), other._starts.copy()
                slots, size = other._slots.copy(), other._size.copy()
                self._data, self._starts, self._slots, self._size, self._waste = data, starts, slots, size, other._waste
                return np.arange(len(self))
            codes = other.texts(0, len(other))
            starts, ends = other._bounds(codes)
            mine = np.full(len(other), -1, np.int64)
            mine[codes] = self.intern(_read_only(other._data), starts - 1, ends)
            return mine

    def intern_strings(self, texts: Sequence[str]) -> Codes:
        """Return the codes of texts."""
        return self.intern_utf8(*utf8(texts))

    def intern_utf8(self, data: Bytes, offsets: Places) -> Codes:
        """Return the codes of texts that lie one after the other in some bytes."""
        # Before they are interned: an interruption in between would leave a line break that nobody knows of.
        self._has_newlines |= bool((data == NEWLINE).any())
        return self.intern(_read_only(data), offsets[:-1] - 1, offsets[1:])

    def find_utf8(self, data: Bytes, offsets: Places) -> Codes:
        """Return the codes of texts that lie one after the other in some bytes; of one that has none, -1."""
        codes = np.empty(len(offsets) - 1, np.int64)
        find_each(_read_only(data), offsets, self._slots, self._data, self._starts, codes)
        return codes

    def find(self, text: str) -> int | None:
        """Return the code of a text, if it has one."""
        try:
            data = text.encode()
        except UnicodeEncodeError:  # a lone surrogate, which no text has
            return None
        code = int(find(np.frombuffer(data, np.uint8), 0, len(data), self._slots, self._data, self._starts))
        return None if code < 0 else code

    def _make_room(self, texts: int, length: int) -> None:
        """Make room for more texts, and for their bytes."""
        count, used = len(self), int(self._size[USED])
        length += HEAD * texts
        if used + length > len(self._data):
            self._data = _grown(self._data, used, used + length)
        if count + texts > len(self._starts):
            self._starts = _grown(self._starts, count, count + texts)
        if 4 * (count + texts) > 3 * len(self._slots):
            reserve(8 * _slots_for(count + texts))
            slots = np.zeros(_slots_for(count + texts), np.uint64)
            spread(self._slots, slots)
            self._slots = slots

    # -- texts that are gone -------------------------------------------------------------------------------------------

    def texts(self, start: int, stop: int) -> Codes:
        """Return the codes from one to another that have a text."""
        return np.flatnonzero(self._starts[start:stop] >= 0) + start

    def forget(self, codes: Codes) -> None:
        """Make texts unknown: they may still be read by their codes, and if they come again they get others."""
        remove(codes, self._slots, self._data, self._starts)

    def free(self, codes: Codes) -> None:
        """Give up codes of texts that are unknown: other texts get them."""
        with self._reading:
            texts, are_made = self._made
            known = codes[codes < len(texts)]
            texts[known], are_made[known] = None, False
            self._waste += free(codes, self._data, self._starts, self._size)

    def slide(self, most: int) -> Iterator[int]:
        """Close the gaps that texts have left; yield the bytes moved, about `most` at a time."""
        start = end = 0
        while end < self._size[USED]:
            with self._reading:
                before = end
                start, end = slide(self._data, self._starts, start, end, self._size[USED], most)
                if end == self._size[USED]:
                    self._size[USED], self._waste = start, 0
            yield end - before

    @property
    def has_gaps(self) -> bool:
        """Whether a good part of the bytes is of no text."""
        return 8 * self._waste > self._size[USED]

    @property
    def is_roomy(self) -> bool:
        """Whether there is room for several times as many texts."""
        return _slots_for(2 * self.count) < len(self._slots)

    def trim(self) -> None:
        """Give back memory beyond what texts need."""
        with self._reading:
            drop_last(self._starts, self._size)
            count, texts, are_made = len(self), *self._made
            self._made = texts[:count].copy(), are_made[:count].copy()
            slots = np.zeros(_slots_for(self.count), np.uint64)
            spread(self._slots, slots)
            self._slots, self._starts = slots, self._starts[:count].copy()
            self._data = self._data[: self._size[USED]].copy()

    # -- codes to texts ------------------------------------------------------------------------------------------------

    def take(self, codes: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.object_]:
        """Return the texts of codes, as an array of objects."""
        with self._reading:
            made, is_made = self._made
            if len(made) < len(self):
                before, was_made = made, is_made
                made = _grown(before, len(before), len(self))
                is_made = np.zeros(len(made), np.bool_)
                is_made[: len(was_made)] = was_made
                self._made = made, is_made
        fresh = codes[~is_made[codes]]
        if len(fresh):
            fresh = each_once(fresh)
            made[fresh] = self.strings(fresh)
            is_made[fresh] = self._starts[fresh] >= 0  # a code that is free has no text, and may get one
        return made[codes]

    def _bounds(self, codes: npt.NDArray[np.integer[Any]]) -> tuple[Places, Places]:
        """Return where texts begin and end."""
        starts, ends = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
        bounds_of(codes.astype(np.int64, copy=False), self._data, self._starts, starts, ends)
        return starts, ends

    def length(self, codes: npt.NDArray[np.integer[Any]]) -> int:
        """Return the bytes of the texts of codes, of which some may be free."""
        with self._reading:
            starts, ends = self._bounds(codes[self._starts[codes] >= 0])
        return int((ends - starts).sum())

    def strings(self, codes: npt.NDArray[np.integer[Any]]) -> list[str]:
        """Return the texts of codes, of which no objects are kept."""
        with self._reading:
            if self._has_newlines:
                bounds = zip(*(ends.tolist() for ends in self._bounds(codes)))
                return [self._data[start:end].tobytes().decode() for start, end in bounds]
            data = self._joined(codes)
        # Decoding all at once and cutting at newlines takes a fifth of the time.
        return data[:-1].tobytes().decode().split("\n")

    def _joined(self, codes: npt.NDArray[np.integer[Any]]) -> Bytes:
        """Return the UTF-8 of texts, each with a newline."""
        starts, ends = self._bounds(codes)
        joined = np.empty(int((ends - starts).sum()) + len(codes), np.uint8)
        join(self._data, starts, ends, joined)
        return joined

    def check(self) -> None:
        """Raise `UnicodeDecodeError` if a text is not UTF-8."""
        data = self._joined(self.texts(0, len(self))).tobytes()
        if not data.isascii():
            data.decode()  # no character is in two texts: there is a newline between them


def utf8(texts: Sequence[str]) -> tuple[Bytes, Places]:
    """Return the UTF-8 of all texts, one after the other, and where each begins, with where the last one ends."""
    joined = "".join(texts)
    data = joined.encode()
    lengths = map(len, texts if len(data) == len(joined) else [text.encode() for text in texts])
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, len(texts)), out=offsets[1:])
    return np.frombuffer(data, np.uint8), offsets


def _slots_for(texts: int) -> int:
    """Return a power of two of slots, of which the texts fill three quarters at most."""
    return 1 << max(7, (4 * texts // 3).bit_length())


def _read_only(array: Bytes) -> Bytes:
    """Return the array as those that stand for Python's bytes are, so that kernels are compiled for one kind alone."""
    view = array.view()
    view.flags.writeable = False
    return view


def _grown(array: npt.NDArray[Any], used: int, need: int) -> npt.NDArray[Any]:
    reserve(used * array.itemsize)  # what is beyond comes into memory as it is written
    grown = np.empty(max(need, 2 * len(array)), array.dtype)
    grown[:used] = array[:used]
    return grown


# -- kernels ----------------------------------------------------------------------------------------------------------


@kernel
def tag_of(data, start, end):
    """Return 32 bits of a hash of a text."""
    h = SEED ^ np.uint64(end - start)
    if end - start < 8:
        word = np.uint64(0)
        for k in range(start, end):
            word = (word << BYTE) | np.uint64(data[k])
    else:
        for k in range(start, end - 8, 8):
            h = (h ^ word_at(data, k)) * GOLDEN
            h ^= h >> ASKEW
        word = word_at(data, end - 8)
    h = (h ^ word) * GOLDEN
    return ((h ^ (h >> HALF)) * GOLDEN) >> HALF


@kernel
def home(tag, slots):
    """Return the first slot to search for a tag, by its upper bits."""
    return np.int64((tag * np.uint64(len(slots))) >> HALF)


@kernel
def same(data, start, end, others, other):
    """Return whether the bytes of a text are the bytes from a place on."""
    length = end - start
    if length < 8:
        for k in range(length):  # noqa: SIM110  (a loop compiles to less than a generator)
            if data[start + k] != others[other + k]:
                return False
        return True
    for k in range(0, length - 8, 8):
        if word_at(data, start + k) != word_at(others, other + k):
            return False
    return word_at(data, end - 8) == word_at(others, other + length - 8)


@kernel
def length_at(data, start):
    """Return the length of the text whose word lies at a place."""
    return np.int64(word_at(data, start) >> HALF)


@kernel
def write_head(data, start, code, length):
    """Write the word before a text: its length, and one more than its code, or 0 if the text is gone."""
    word = (np.uint64(length) << HALF) | np.uint64(code + 1)
    for k in range(HEAD):
        data[start + k] = np.uint8(word & np.uint64(255))
        word >>= BYTE


@kernel
def has_text(pool, starts, code, data, start, end):
    """Return whether a code is that of a text."""
    head = starts[code]
    return length_at(pool, head) == end - start and same(data, start, end, pool, head + HEAD)


@kernel
def intern(data, before, after, slots, pool, starts, size, out):
    """Write the code of each text, a new one if it is not in the pool.

    There must be room for all. In groups, so that the cache misses of a group overlap: slots, then starts, then texts.
    Each step keeps the entries that it has read for the next one: a text of the pool takes 49 ns instead of 76.
    """
    tags, entries = np.empty(GROUP, np.uint64), np.empty(GROUP, np.uint64)
    heads = np.empty(GROUP, np.int64)
    last = len(slots) - 1
    for i in range(0, len(before), GROUP):
        width = min(GROUP, len(before) - i)
        for j in range(width):
            tags[j] = tag_of(data, before[i + j] + 1, after[i + j])
            prefetch(slots, home(tags[j], slots))
        for j in range(width):
            at = home(tags[j], slots)
            while slots[at] and slots[at] >> HALF != tags[j]:
                at = (at + 1) & last
            entries[j] = slots[at]
            prefetch(starts, np.int64(entries[j] & LOW_HALF) - 1)
        for j in range(width):
            heads[j] = starts[np.int64(entries[j] & LOW_HALF) - 1] if entries[j] else 0
            prefetch(pool, heads[j])
        for j in range(width):
            start, end, entry = before[i + j] + 1, after[i + j], entries[j]
            head = (np.uint64(end - start) << HALF) | (entry & LOW_HALF)
            if entry and word_at(pool, heads[j]) == head and same(data, start, end, pool, heads[j] + HEAD):
                out[i + j] = np.int64(entry & LOW_HALF) - 1
            else:  # a new text, which may have become known within the group, or one of two with the same tag
                out[i + j] = find_or_add(data, start, end, tags[j], slots, pool, starts, size)


@kernel
def find_or_add(data, start, end, tag, slots, pool, starts, size):
    """Return the code of a text, a new one if it is not in the pool."""
    at, last = home(tag, slots), len(slots) - 1
    while slots[at]:
        code = np.int64(slots[at] & LOW_HALF) - 1
        if slots[at] >> HALF == tag and has_text(pool, starts, code, data, start, end):
            return code
        at = (at + 1) & last
    code, free = size[FREE], size[USED]
    if code >= 0:
        size[FREE] = -2 - starts[code]
        size[FREED] -= 1
    else:
        code = size[CODES]
        size[CODES] += 1
    slots[at] = (tag << HALF) | np.uint64(code + 1)
    starts[code] = free
    write_head(pool, free, code, end - start)
    for k in range(end - start):
        pool[free + HEAD + k] = data[start + k]
    size[USED] = free + HEAD + end - start
    return code


@kernel
def find(data, start, end, slots, pool, starts):
    """Return the code of a text, or -1."""
    tag = tag_of(data, start, end)
    at = home(tag, slots)
    while True:
        entry = slots[at]
        if not entry:
            return -1
        code = np.int64(entry & LOW_HALF) - 1
        if entry >> HALF == tag and has_text(pool, starts, code, data, start, end):
            return code
        at = (at + 1) & (len(slots) - 1)


@kernel
def find_each(data, offsets, slots, pool, starts, out):
    """Write the code of each text, or -1."""
    for i in range(len(out)):
        out[i] = find(data, offsets[i], offsets[i + 1], slots, pool, starts)


@kernel
def spread(old, new):
    """Move the entries of slots to more slots."""
    last = len(new) - 1
    for entry in old:
        if entry:
            at = home(entry >> HALF, new)
            while new[at]:
                at = (at + 1) & last
            new[at] = entry


@kernel
def remove(codes, slots, data, starts):
    """Take texts out of the slots."""
    last = len(slots) - 1
    for code in codes:
        start = starts[code]
        at = home(tag_of(data, start + HEAD, start + HEAD + length_at(data, start)), slots)
        while np.int64(slots[at] & LOW_HALF) - 1 != code:
            at = (at + 1) & last
        slots[at] = np.uint64(0)
        other = (at + 1) & last  # what comes behind an empty slot must not be looked for before it
        while slots[other]:
            if (other - home(slots[other] >> HALF, slots)) & last >= (other - at) & last:
                slots[at] = slots[other]
                slots[other] = np.uint64(0)
                at = other
            other = (other + 1) & last


@kernel
def free(codes, data, starts, size):
    """Chain codes to those that are free, and mark their texts as gone; return the bytes of these."""
    bytes = 0
    for code in codes:
        length = length_at(data, starts[code])
        write_head(data, starts[code], -1, length)
        bytes += HEAD + length
        starts[code] = -2 - size[FREE]
        size[FREE] = code
        size[FREED] += 1
    return bytes


@kernel
def slide(data, starts, start, end, used, most):
    """Move texts from `end` on to `start` and behind it, about `most` bytes; return where both are then."""
    stop = min(used, end + most)
    while end < stop:
        length = HEAD + length_at(data, end)
        code = np.int64(word_at(data, end) & LOW_HALF) - 1
        if code >= 0:
            starts[code] = start
            if start < end:
                for k in range(length):
                    data[start + k] = data[end + k]
            start += length
        end += length
    # The gap is marked as a text that is gone, or several, for whoever begins anew.
    at = start
    while at < end:
        piece = end - at if end - at < 2**31 else np.int64(2**30)
        write_head(data, at, -1, piece - HEAD)
        at += piece
    return start, end


@kernel
def drop_last(starts, size):
    """Give up the last codes as far as they are free, and chain the others that are, the lowest first."""
    while size[CODES] > 0 and starts[size[CODES] - 1] < 0:
        size[CODES] -= 1
    size[FREE], size[FREED] = -1, 0
    for code in range(size[CODES] - 1, -1, -1):
        if starts[code] < 0:
            starts[code] = -2 - size[FREE]
            size[FREE] = code
            size[FREED] += 1


@kernel
def bounds_of(codes, data, starts, begins, ends):
    """Write where texts begin and end. A code that is free has an empty one."""
    for i in range(len(codes)):
        start = starts[codes[i]]
        begins[i] = start + HEAD if start >= 0 else 0
        ends[i] = begins[i] + length_at(data, start) if start >= 0 else 0


@kernel
def join(data, starts, ends, out):
    """Write texts one after the other, each with a newline."""
    at = 0
    for i in range(len(starts)):
        for k in range(starts[i], ends[i]):
            out[at] = data[k]
            at += 1
        out[at] = NEWLINE
        at += 1
