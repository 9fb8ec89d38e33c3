"""Mutations of small valid files: bytes that flip, move and vanish, and JSON trees with a branch that does not fit."""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

Mutation = Callable[[random.Random, bytes], bytes]

MOST_BYTES = 1 << 20
"""No mutation makes a file longer than this."""

_NUMBERS = (0, 1, 2, 7, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62, 2**63, 2**64 - 1)
_ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    *_NUMBERS,
    *(-number for number in _NUMBERS),
    10**400,
    0.5,
    -0.0,
    1e-320,
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "0",
    "-1",
    "1e999",
    "nan",
    "\0",
    "\x1b[2J",
    "\ud800",
    "../../etc/passwd",
    "é" * 300,
    [],
    {},
    [[]],
    [0, 0, 0],
    [-1],
    [None],
    {"": None},
    {"0": 0},
)
_HUGE = re.compile(r"\d+")


def flip_bits(rng: random.Random, data: bytes) -> bytes:
    """One to eight bits turned over."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8) if changed else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(rng: random.Random, data: bytes) -> bytes:
    """An end cut off."""
    return data[: rng.randrange(len(data) + 1)]


def remove(rng: random.Random, data: bytes) -> bytes:
    """A piece cut out."""
    begin, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:begin] + data[min(end, begin + 64) :]


def repeat(rng: random.Random, data: bytes) -> bytes:
    """A piece repeated once or many times, somewhere."""
    begin, at = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
    piece = data[begin : begin + rng.randint(1, 64)] * rng.choice((1, 2, 1000))
    return (data[:at] + piece + data[at:])[:MOST_BYTES]


def overwrite(rng: random.Random, data: bytes) -> bytes:
    """A number of 1, 2, 4 or 8 bytes that readers may trust, somewhere."""
    code = rng.choice("BHIQ")
    raw = struct.pack(f"<{code}", rng.choice(_NUMBERS) & (256 ** struct.calcsize(code) - 1))
    at = rng.randrange(len(data) + 1)
    return data[:at] + raw + data[at + len(raw) :]


def append(rng: random.Random, data: bytes) -> bytes:
    """Bytes behind the end."""
    return data + rng.randbytes(rng.randint(1, 100))


BYTES: tuple[Mutation, ...] = (flip_bits, cut, remove, repeat, overwrite, append)
"""Mutations of any file."""


def splice(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The beginning of one file and the end of another."""
    other = rng.choice(others)
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def any_bytes(rng: random.Random, data: bytes) -> bytes:
    """One to three mutations of bytes, one after the other."""
    for _ in range(rng.randint(1, 3)):
        data = rng.choice(BYTES)(rng, data)
    return data


def _branches(tree: Any) -> list[tuple[Any, Any]]:
    """Every container in a tree with each of its keys."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree] if isinstance(tree, dict | list) else []
    while waiting:
        holder = waiting.pop()
        values = holder.values() if type(holder) is dict else holder
        found += [(holder, key) for key in (holder if type(holder) is dict else range(len(holder)))]
        waiting += [value for value in values if type(value) in (dict, list)]
    return found


def change_tree(rng: random.Random, tree: Any) -> Any:
    """The tree with one to three branches replaced, removed, renamed, repeated, nested or exchanged."""
    for _ in range(rng.randint(1, 3)):
        places = _branches(tree)
        if not places:
            return rng.choice(_ODD)
        holder, key = rng.choice(places)
        _change(rng, holder, key, places)
    return tree


def _change(rng: random.Random, holder: Any, key: Any, places: list[tuple[Any, Any]]) -> None:
    how = rng.randrange(7)
    if how <= 2:
        holder[key] = rng.choice(_ODD)
    elif how == 3:
        del holder[key]
    elif how == 4 and isinstance(holder, dict):
        holder[rng.choice((f"{key}x", "", "\x1b", key.upper(), "0"))] = holder.pop(key)
    elif how == 5:
        for _ in range(rng.choice((1, 30, 3000))):
            holder[key] = [holder[key]]
    else:
        other, name = rng.choice(places)
        if isinstance(other[name], (int, float, str, bool, type(None))):
            holder[key] = other[name]


def write_tree(tree: Any) -> bytes:
    """A tree as JSON, however odd; one nested too deeply for the encoder as brackets."""
    try:
        return json.dumps(tree).encode("utf-8", "surrogatepass")
    except RecursionError:
        return b"[" * 5000
    except ValueError:  # a number of too many digits for Python to write
        return b'{"a":1' + b"0" * 5000 + b"}"


def change_json(rng: random.Random, data: bytes) -> bytes:
    """JSON with branches that do not fit, or with a number of thousands of digits."""
    if rng.random() < 0.1:
        return huge_number(rng, data)
    return write_tree(change_tree(rng, json.loads(data)))


def huge_number(rng: random.Random, data: bytes) -> bytes:
    """Text with one of its numbers made thousands of digits long."""
    text = data.decode("utf-8", "surrogateescape")
    found = list(_HUGE.finditer(text))
    if not found:
        return data
    place = rng.choice(found)
    return (text[: place.start()] + "9" * rng.choice((20, 400, 5000)) + text[place.end() :]).encode(
        "utf-8", "surrogateescape"
    )
