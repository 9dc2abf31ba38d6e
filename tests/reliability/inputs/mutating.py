"""Mutations of bytes that know the shape of what they change: tokens, lines and brackets, beside bits and lengths."""

from __future__ import annotations

import random
import re

#: Words, numbers, strings and single signs.
_TOKEN = re.compile(rb"[A-Za-z0-9_.\x80-\xff]+|\"(?:[^\"\\\n]|\\.)*\"|\s+|.", re.DOTALL)

#: What breaks readers of any format: ends of ranges, halves of characters, signs that open and do not close.
ODD = [
    *(b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xc3", b"\r", b"\r\n", b"\n\n", b"\t", b"\\", b"\x85"),
    *(b"9223372036854775808", b"-9223372036854775809", b"1e400", b"0x", b"nan", b"\\u0000", b"\\UFFFFFFFF", b"\\uD800"),
    *(b'"', b"'", b"<", b">", b"(", b")", b"[", b"]", b"{", b"}", b"/*", b"*/", b"//", b"#", b"%", b"&", b";", b","),
    *(b"\xe2\x80\xa8", "é".encode(), "\N{GRINNING FACE}".encode(), b"-", b"+", b".", b":-", b"!", b"^^", b"@", b"_:"),
]


def mutated(data: bytes, others: list[bytes], words: list[bytes], rng: random.Random) -> bytes:
    """Return data after one to four random mutations, at most 64 kB of it."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        data = rng.choice(_MUTATIONS)(data, others, words, rng)[: 1 << 16]
    return data


def _tokens(data: bytes) -> list[bytes]:
    return _TOKEN.findall(data)


def _replace(data: bytes, others: list[bytes], words: list[bytes], rng: random.Random) -> bytes:
    tokens = _tokens(data)
    if tokens:
        tokens[rng.randrange(len(tokens))] = rng.choice(rng.choice((words, ODD)))
    return b"".join(tokens)


def _insert(data: bytes, others: list[bytes], words: list[bytes], rng: random.Random) -> bytes:
    tokens = _tokens(data)
    tokens.insert(rng.randint(0, len(tokens)), rng.choice(rng.choice((words, ODD))))
    return b"".join(tokens)


def _remove(data: bytes, others: list[bytes], words: list[bytes], rng: random.Random) -> bytes:
    tokens = _tokens(data)
    at = rng.randrange(len(tokens) + 1)
    del tokens[at : at + rng.choice((1, 1, 2, 5, 20))]
    return b"".join(tokens)


def _swap(data: bytes, others: list[bytes], words: list[bytes], rng: random.Random) -> bytes:
    tokens = _tokens(data)
    if len(tokens) > 1:
        i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        tokens[i], tokens[j] = tokens[j], tokens[i]
    return b"".join(tokens)


def _repeat(data: bytes, others: list[bytes], words: list[bytes], rng: random.Random) -> bytes:
    """Say a few tokens again and again: nesting, long lines, many statements."""
    tokens = _tokens(data)
    if not tokens:
        return rng.choice(ODD) * rng.choice((3, 300, 3000))
    at = rng.randrange(len(tokens))
    some = b"".join(tokens[at : at + rng.randint(1, 4)])
    return b"".join(tokens[:at]) + some * rng.choice((2, 3, 30, 300, 3000)) + b"".join(tokens[at:])


def _cut(data: bytes, others: list[bytes], words: list[bytes], rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


def _flip(data: bytes, others: list[bytes], words: list[bytes], rng: random.Random) -> bytes:
    if not data:
        return bytes([rng.randrange(256)])
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _splice(data: bytes, others: list[bytes], words: list[bytes], rng: random.Random) -> bytes:
    other = rng.choice(others)
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


def _lines(data: bytes, others: list[bytes], words: list[bytes], rng: random.Random) -> bytes:
    """Shuffle, double or drop lines."""
    lines = data.splitlines(keepends=True)
    if rng.random() < 0.5:
        rng.shuffle(lines)
    return b"".join(line * rng.choice((0, 1, 1, 2)) for line in lines)


_MUTATIONS = (_replace, _replace, _insert, _insert, _remove, _swap, _repeat, _cut, _flip, _splice, _lines)
