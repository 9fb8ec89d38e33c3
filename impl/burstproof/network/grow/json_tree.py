"""From the bytes of a genome file to a JSON tree that is safe to walk."""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from burstproof.errors import GenomeError
from burstproof.network.grow.fields import Field

MAX_FILE_BYTES = 16 << 20
"""Largest genome that is read, packed or not; the shipped ones have less than 0.1 MB."""

MAX_EXPANSION = 256
"""Largest ratio of unpacked to packed size of a ``.json.gz``; recorded genomes reach 40."""

MAX_DEPTH = 64
"""Deepest nesting of objects and lists; known genomes stay below 10."""

_EXPANSION_FLOOR = 1 << 16


def load_tree(path: Path) -> tuple[Field, str]:
    """Read ``path`` and return its top-level value and the SHA-256 of the file.

    Parameters
    ----------
    path : Path
        A ``.json`` or ``.json.gz`` file; packed data is recognised by its first two bytes.

    Raises
    ------
    GenomeError
        The file cannot be read, is too large, or is not strict JSON: UTF-8, no repeated keys, finite numbers,
        nesting up to ``MAX_DEPTH``.
    """
    return parse_tree(_read(path), readable_path(path))


def parse_tree(data: bytes, name: str) -> tuple[Field, str]:
    """The same from the bytes of a file; ``name`` stands for it in messages."""
    digest = hashlib.sha256(data).hexdigest()
    if data[:2] == b"\x1f\x8b":
        data = _unpack(data, name)
    root = Field(name, "", _parse(data, name))
    _check_tree(root)
    return root, digest


def readable_path(path: Path) -> str:
    """The path as messages show it: on one line and printable, however long."""
    text = str(path)
    return text if text.isprintable() else ascii(text)[1:-1]


def _read(path: Path) -> bytes:
    """The bytes of a regular file of bounded size."""
    try:
        if not path.is_file():
            problem = "the genome is not a regular file" if path.exists() else "the genome does not exist"
            raise GenomeError(problem, where=readable_path(path), cure="Name a .json or .json.gz file")
        with path.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise GenomeError(
            "the genome cannot be read", where=readable_path(path), got=str(error), cure="Check path and permissions"
        ) from error
    if len(data) > MAX_FILE_BYTES:
        raise GenomeError(
            "the genome file is too large",
            where=readable_path(path),
            allowed=f"up to {MAX_FILE_BYTES} bytes",
            cure="Check that this is a genome and not another file",
        )
    return data


def _unpack(data: bytes, name: str) -> bytes:
    """Unpack gzip data, at most ``MAX_EXPANSION`` times its own size."""
    limit = min(MAX_FILE_BYTES, max(_EXPANSION_FLOOR, MAX_EXPANSION * len(data)))
    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(data, limit + 1)
    except zlib.error as error:
        raise GenomeError(
            "damaged gzip data", where=name, got=str(error), cure="Fetch or pack the file again"
        ) from error
    if len(text) > limit:
        raise GenomeError(
            "the packed genome unpacks to far more than its size",
            where=name,
            got=f"more than {limit} bytes",
            allowed=f"{limit} bytes",
            cure="Unpack it yourself if it can be trusted, and pass the .json",
        )
    if not unpacker.eof or unpacker.unused_data:
        problem = "bytes after the end of the gzip data" if unpacker.eof else "gzip data cut short"
        raise GenomeError(problem, where=name, cure="Fetch or pack the file again")
    return text


def _parse(data: bytes, name: str) -> Any:
    """Parse strict JSON text."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        merged = dict(pairs)
        if len(merged) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            repeated = counts.most_common(1)[0][0]
            raise GenomeError(
                "an object has the same key twice", where=name, got=repeated, cure="Remove one of the two"
            )
        return merged

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=unique)
    except UnicodeDecodeError as error:
        raise GenomeError(
            f"not UTF-8 text at byte {error.start}",
            where=name,
            got=data[error.start : error.end],
            cure="Save the file as UTF-8",
        ) from error
    except json.JSONDecodeError as error:
        raise GenomeError(
            f"not valid JSON: {error.msg}",
            where=f"{name}: line {error.lineno} column {error.colno}",
            got=error.doc[error.pos : error.pos + 20] or "end of file",
            cure="Correct the text there, or fetch the file again if it was cut short",
        ) from error
    except RecursionError as error:
        raise _too_deep(name) from error
    except ValueError as error:
        raise GenomeError(
            "a number has too many digits", where=name, got=str(error), cure="Write a smaller number"
        ) from error


def _too_deep(where: str) -> GenomeError:
    return GenomeError(
        "objects or lists are nested too deeply",
        where=where,
        allowed=f"{MAX_DEPTH} levels",
        cure="Check that this is a genome and not another file",
    )


def _check_tree(root: Field) -> None:
    """Refuse what strict JSON does not have, non-finite numbers and broken Unicode, and absurd nesting."""
    keys: list[str | int] = []
    levels = [_entries(root.value)]
    while levels:
        for key, value in levels[-1]:
            keys.append(key)
            if isinstance(key, str):
                _check_text(key, root, keys)
            if isinstance(value, dict | list):
                levels.append(_entries(value))
                break
            if isinstance(value, str):
                _check_text(value, root, keys)
            elif isinstance(value, float) and not math.isfinite(value):
                raise _at(root, keys).error(
                    "the number is not finite", allowed="finite numbers", cure="Write a finite number"
                )
            keys.pop()
        else:
            levels.pop()
            del keys[-1:]
        if len(levels) > MAX_DEPTH:
            raise _too_deep(_at(root, keys[:3]).where)


def _entries(container: object) -> Iterator[tuple[str | int, Any]]:
    """Keys or positions of a container with the values there; nothing for a scalar."""
    if isinstance(container, dict):
        return iter(container.items())
    return iter(enumerate(container if isinstance(container, list) else ()))


def _at(root: Field, keys: list[str | int]) -> Field:
    """The value that a list of keys leads to."""
    node = root
    for key in keys:
        node = node.item(key)
    return node


def _check_text(text: str, root: Field, keys: list[str | int]) -> None:
    """Refuse text that cannot be written as UTF-8."""
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise GenomeError(
            "text with half of a surrogate pair",
            where=_at(root, keys).where,
            got=text,
            cure="Write the character itself or both halves",
        ) from error
