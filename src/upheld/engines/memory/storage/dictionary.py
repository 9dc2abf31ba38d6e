"""The dictionary of texts: each distinct one once, as UTF-8, and as a Python object only when that is asked for.

data      UTF-8 of all texts, one after the other; text `i` lies from `offsets[i]` to `offsets[i + 1]`
slots     a hash table of texts: tag and 1 + code of one, or 0; its size is a power of two
bounds    where texts lie in other bytes: after the place in `before`, and before that in `after`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from upheld.engines.memory.kernels.jit import kernel, prefetch, word_at
from upheld.runtime.limits import reserve

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


class TextPool:
    """Distinct texts, each with a code: its number in the order in which they came. A code never changes."""

    def __init__(self) -> None:
        self._data: Bytes = np.empty(1 << 10, np.uint8)
        self._offsets: Places = np.zeros(1 << 6, np.int64)
        self._slots = np.zeros(1 << 7, np.uint64)
        self._size = np.zeros(1, np.int64)
        #: Texts that have been made into Python objects, and which these are. Any thread may make more of them at any
        #: time, so both arrays are replaced together, and what one thread makes in vain another makes again.
        self._made: tuple[npt.NDArray[np.object_], npt.NDArray[np.bool_]]
        self._made = np.empty(0, np.object_), np.empty(0, np.bool_)
        self._has_newlines = False

    @classmethod
    def with_room(cls, texts: int, length: int) -> TextPool:
        """Return an empty dictionary with room for so many texts of so many bytes; what is not used costs nothing."""
        pool = cls()
        pool._data, pool._offsets = np.empty(max(8, length), np.uint8), np.zeros(texts + 1, np.int64)
        pool._slots = np.zeros(1 << max(7, (4 * texts // 3).bit_length()), np.uint64)
        return pool

    def __len__(self) -> int:
        return int(self._size[0])

    def trim(self) -> None:
        """Give back the room that no text has taken."""
        count, slots = len(self), np.zeros(1 << max(7, (4 * len(self) // 3).bit_length()), np.uint64)
        spread(self._slots, slots)
        self._data, self._offsets = self._data[: max(8, self.bytes)].copy(), self._offsets[: count + 1].copy()
        self._slots = slots

    def nbytes(self) -> int:
        """Return the bytes of all that is kept, without those of Python objects."""
        arrays = self._data, self._offsets, self._slots, *self._made
        return sum(array.nbytes for array in arrays)

    @property
    def bytes(self) -> int:
        """The bytes of all texts."""
        return int(self._offsets[len(self)])

    # -- texts to codes ------------------------------------------------------------------------------------------------

    def intern(self, data: Bytes, before: Places, after: Places) -> Codes:
        """Return the codes of texts that lie within bounds in some bytes; none of them holds a newline."""
        self._make_room(len(before), int((after - before).sum()) - len(before))
        codes = np.empty(len(before), np.int64)
        intern(data, before, after, self._slots, self._data, self._offsets, self._size, codes)
        return codes

    def intern_pool(self, other: TextPool) -> Codes:
        """Return the codes of all texts of another dictionary."""
        self._has_newlines |= other._has_newlines
        if not len(self):
            data, offsets = other._data.copy(), other._offsets.copy()
            slots, size = other._slots.copy(), other._size.copy()
            self._data, self._offsets, self._slots, self._size = data, offsets, slots, size
            return np.arange(len(self))
        offsets = other._offsets[: len(other) + 1]
        return self.intern(_read_only(other._data), offsets[:-1] - 1, offsets[1:])

    def intern_from(self, other: TextPool, codes: Codes) -> Codes:
        """Return the codes of some texts of another dictionary."""
        self._has_newlines |= other._has_newlines
        return self.intern(_read_only(other._data), other._offsets[codes] - 1, other._offsets[codes + 1])

    def intern_strings(self, texts: Sequence[str]) -> Codes:
        """Return the codes of texts."""
        return self.intern_utf8(*utf8(texts))

    def intern_utf8(self, data: Bytes, offsets: Places) -> Codes:
        """Return the codes of texts that lie one after the other in some bytes."""
        # Before they are interned: an interruption in between would leave a line break that nobody knows of.
        self._has_newlines |= bool((data == NEWLINE).any())
        return self.intern(data, offsets[:-1] - 1, offsets[1:])

    def find(self, text: str) -> int | None:
        """Return the code of a text, if it has one."""
        try:
            data = text.encode()
        except UnicodeEncodeError:  # a lone surrogate, which no text has
            return None
        code = int(find(np.frombuffer(data, np.uint8), self._slots, self._data, self._offsets))
        return None if code < 0 else code

    def _make_room(self, texts: int, length: int) -> None:
        """Make room for so many more texts, and so many bytes of them."""
        count = len(self)
        used = int(self._offsets[count])
        if used + length > len(self._data):
            self._data = _grown(self._data, used, used + length)
        if count + texts >= len(self._offsets):
            self._offsets = _grown(self._offsets, count + 1, count + texts + 1)
        if 4 * (count + texts) > 3 * len(self._slots):
            reserve(8 << (4 * (count + texts) // 3).bit_length())
            slots = np.zeros(1 << (4 * (count + texts) // 3).bit_length(), np.uint64)
            spread(self._slots, slots)
            self._slots = slots

    # -- codes to texts ------------------------------------------------------------------------------------------------

    def take(self, codes: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.object_]:
        """Return the texts of codes, as an array of objects."""
        made, is_made = self._made
        if len(made) < len(self):
            before, was_made = made, is_made
            made = _grown(before, len(before), len(self))
            is_made = np.zeros(len(made), np.bool_)
            is_made[: len(was_made)] = was_made
            self._made = made, is_made
        fresh = codes[~is_made[codes]]
        if len(fresh):
            fresh = np.unique(fresh)
            made[fresh] = self._strings(fresh)
            is_made[fresh] = True
        return made[codes]

    def _strings(self, codes: npt.NDArray[np.integer[Any]]) -> list[str]:
        starts, ends = self._offsets[codes], self._offsets[codes + 1]
        if self._has_newlines:
            return [self._data[start:end].tobytes().decode() for start, end in zip(starts.tolist(), ends.tolist())]
        # Decoding all at once and cutting at newlines takes a fifth of the time.
        joined = np.empty(int((ends - starts).sum()) + len(codes), np.uint8)
        join(self._data, starts, ends, joined)
        return joined[:-1].tobytes().decode().split("\n")

    def check(self) -> None:
        """Raise `UnicodeDecodeError` if a text is not UTF-8."""
        starts, ends = self._offsets[: len(self)], self._offsets[1 : len(self) + 1]
        data = self._data[: self._offsets[len(self)]].tobytes()
        if data.isascii():
            return
        # Texts are UTF-8 if all together are, and none starts with a byte that continues a character.
        data.decode()
        first = self._data[starts[starts < ends]]
        if ((first & 0xC0) == 0x80).any():
            raise UnicodeDecodeError("utf-8", data, 0, 1, "a character in two halves")


def utf8(texts: Sequence[str]) -> tuple[Bytes, Places]:
    """Return the UTF-8 of all texts, one after the other, and where each begins, with where the last one ends."""
    joined = "".join(texts)
    data = joined.encode()
    lengths = map(len, texts if len(data) == len(joined) else [text.encode() for text in texts])
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, len(texts)), out=offsets[1:])
    return np.frombuffer(data, np.uint8), offsets


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
    """Return the slot from which on a tag is looked for, which its upper bits tell."""
    return np.int64((tag * np.uint64(len(slots))) >> HALF)


@kernel
def same(data, start, end, others, other, other_end):
    length = end - start
    if length != other_end - other:
        return False
    if length < 8:
        for k in range(length):  # noqa: SIM110  (a loop compiles to less than a generator)
            if data[start + k] != others[other + k]:
                return False
        return True
    for k in range(0, length - 8, 8):
        if word_at(data, start + k) != word_at(others, other + k):
            return False
    return word_at(data, end - 8) == word_at(others, other_end - 8)


@kernel
def intern(data, before, after, slots, pool, offsets, size, out):
    """Write the code of each text, a new one if it is not in the pool.

    There must be room for all. In groups, so that the cache misses of a group overlap: slots, then offsets, then texts.
    """
    tags = np.empty(GROUP, np.uint64)
    count = size[0]
    last = len(slots) - 1
    for i in range(0, len(before), GROUP):
        width = min(GROUP, len(before) - i)
        for j in range(width):
            tags[j] = tag_of(data, before[i + j] + 1, after[i + j])
            prefetch(slots, home(tags[j], slots))
        for j in range(width):
            entry = slots[home(tags[j], slots)]
            if entry:
                prefetch(offsets, np.int64(entry & LOW_HALF) - 1)
        for j in range(width):
            entry = slots[home(tags[j], slots)]
            if entry:
                prefetch(pool, offsets[np.int64(entry & LOW_HALF) - 1])
        for j in range(width):
            tag, start, end = tags[j], before[i + j] + 1, after[i + j]
            at = home(tag, slots)
            while True:
                entry = slots[at]
                if not entry:
                    slots[at] = (tag << HALF) | np.uint64(count + 1)
                    free = offsets[count]
                    for k in range(end - start):
                        pool[free + k] = data[start + k]
                    offsets[count + 1] = free + end - start
                    out[i + j] = count
                    count += 1
                    break
                code = np.int64(entry & LOW_HALF) - 1
                if entry >> HALF == tag and same(data, start, end, pool, offsets[code], offsets[code + 1]):
                    out[i + j] = code
                    break
                at = (at + 1) & last
    size[0] = count


@kernel
def find(data, slots, pool, offsets):
    """Return the code of a text, or -1."""
    tag = tag_of(data, 0, len(data))
    at = home(tag, slots)
    while True:
        entry = slots[at]
        if not entry:
            return -1
        code = np.int64(entry & LOW_HALF) - 1
        if entry >> HALF == tag and same(data, 0, len(data), pool, offsets[code], offsets[code + 1]):
            return code
        at = (at + 1) & (len(slots) - 1)


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
def join(data, starts, ends, out):
    """Write texts one after the other, each with a newline."""
    at = 0
    for i in range(len(starts)):
        for k in range(starts[i], ends[i]):
            out[at] = data[k]
            at += 1
        out[at] = NEWLINE
        at += 1
