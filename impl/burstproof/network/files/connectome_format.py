"""The ``.connectome`` container, version 3: frame, checksum, compression, and a reader of its plain payload."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.errors import ConnectomeError

MAGIC = b"FEAGI"
CONTAINER_VERSION = 3
COMPRESSED_FLAG = 1
LZ4_LARGEST_INPUT = 0x7E000000
"""Largest payload in bytes that fits one LZ4 block; a larger one is stored uncompressed."""

_HEAD = struct.Struct("<5sIBQI")
_CHECKSUM = struct.Struct("<Q")
MANIFEST_OFFSET = _HEAD.size
"""Byte at which the manifest begins. The checksum covers the payload alone, which repeats the manifest in a tag."""

_LZ4_LARGEST_RATIO = 255
_CURE_COPY = "Copy the file again from its origin, or save it again with the engine"


@dataclass(frozen=True)
class Container:
    """What the frame holds: the ``manifest`` JSON text, the uncompressed ``payload``, and whether it was LZ4."""

    manifest: str
    payload: bytes
    compressed: bool


def damaged(problem: str, where: str, got: object = None, allowed: str | None = None) -> ConnectomeError:
    """The error for a file that cannot be trusted."""
    return ConnectomeError(problem, where=where, got=got, allowed=allowed, cure=_CURE_COPY)


@lru_cache(maxsize=1)
def _fnv1a64() -> Callable[[npt.NDArray[np.uint8]], int]:
    import numba

    basis, prime = np.uint64(14695981039346656037), np.uint64(1099511628211)

    def digest(data: npt.NDArray[np.uint8]) -> Any:
        value = basis
        for byte in data:
            value = np.uint64((value ^ np.uint64(byte)) * prime)
        return value

    compiled: Callable[[npt.NDArray[np.uint8]], int] = numba.njit(nogil=True)(digest)
    return compiled


def fnv1a64(data: bytes) -> int:
    """FNV-1a checksum of ``data``, 64 bit."""
    return int(_fnv1a64()(np.frombuffer(data, np.uint8)))


def check_manifest(text: str, name: str) -> dict[str, Any]:
    """The manifest as a mapping.

    Raises
    ------
    ConnectomeError
        Not a JSON object.
    """
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(f"the manifest is not JSON: {error}", f"{name}: manifest", text) from error
    if not isinstance(manifest, dict):
        raise damaged("the manifest is not a JSON object", f"{name}: manifest", text)
    return manifest


def _decompress(stored: bytes, size: int, name: str) -> bytes:
    import lz4.block

    limit = min(_LZ4_LARGEST_RATIO * len(stored), LZ4_LARGEST_INPUT)
    if size > limit:
        raise damaged(
            "uncompressed payload size is more than an LZ4 block of this length can hold",
            f"{name}: byte 10 (uncompressed size)",
            size,
            f"at most {limit}",
        )
    try:
        payload: bytes = lz4.block.decompress(stored, uncompressed_size=size)
    except (lz4.block.LZ4BlockError, ValueError) as error:
        raise damaged(f"the LZ4 block cannot be decompressed to {size} bytes: {error}", f"{name}: payload") from error
    if len(payload) != size:
        raise damaged(
            "the LZ4 block has another length than the head says",
            f"{name}: byte 10 (uncompressed size)",
            size,
            str(len(payload)),
        )
    return payload


def _check_head(data: bytes, name: str) -> tuple[int, int, int]:
    """Flags, uncompressed size and manifest length, after checking magic, version and lengths."""
    if len(data) < len(MAGIC) or data[: len(MAGIC)] != MAGIC:
        raise ConnectomeError(
            "not a .connectome file: wrong magic",
            where=f"{name}: byte 0",
            got=data[: len(MAGIC)],
            allowed=repr(MAGIC),
            cure="Give a file that the engine saved as .connectome",
        )
    if len(data) < _HEAD.size:
        raise damaged("file ends inside its head", f"{name}: byte {len(data)}")
    _, version, flags, size, length = _HEAD.unpack_from(data)
    if version != CONTAINER_VERSION:
        raise ConnectomeError(
            "unknown container version",
            where=f"{name}: byte 5",
            got=version,
            allowed=str(CONTAINER_VERSION),
            cure="Save it again with an engine that writes container version 3",
        )
    if flags & ~COMPRESSED_FLAG:
        raise damaged("unknown flags", f"{name}: byte 9", flags, "0 or 1")
    if length > len(data) - _HEAD.size - _CHECKSUM.size:
        raise damaged(
            "the manifest reaches past the end of the file",
            f"{name}: byte 18 (manifest length)",
            length,
            f"at most {max(0, len(data) - _HEAD.size - _CHECKSUM.size)}",
        )
    return flags, size, length


def unpack_container(data: bytes, name: str) -> Container:
    """The frame around a payload, checked and opened; ``name`` is the file's name in errors.

    Allocates at most 255 bytes per stored byte: the largest ratio that LZ4 can reach.

    Raises
    ------
    ConnectomeError
        Wrong magic, version, flags, length or checksum, manifest or LZ4 block that cannot be read.
    """
    flags, size, length = _check_head(data, name)
    try:
        manifest = data[_HEAD.size : _HEAD.size + length].decode("utf-8")
    except UnicodeDecodeError as error:
        raise damaged("the manifest is not UTF-8", f"{name}: byte {_HEAD.size + error.start}") from error
    start = _HEAD.size + length
    stated = _CHECKSUM.unpack_from(data, start)[0]
    stored = data[start + _CHECKSUM.size :]
    actual = fnv1a64(stored)
    if stated != actual:
        raise damaged(
            "the payload does not have the stated FNV-1a checksum: the file is damaged or cut short",
            f"{name}: byte {start}",
            f"{stated:016x}",
            f"{actual:016x}",
        )
    check_manifest(manifest, name)
    compressed = bool(flags & COMPRESSED_FLAG)
    if compressed:
        return Container(manifest, _decompress(stored, size, name), True)
    if size != 0:
        raise damaged(
            "an uncompressed payload must state the size 0", f"{name}: byte 10 (uncompressed size)", size, "0"
        )
    return Container(manifest, stored, False)


def pack_container(container: Container) -> tuple[bytes, bytes]:
    """Head and stored payload of ``container``, to be written one after the other."""
    stored, flags, size = container.payload, 0, 0
    if container.compressed and len(container.payload) <= LZ4_LARGEST_INPUT:
        import lz4.block

        stored = lz4.block.compress(container.payload, store_size=False)
        flags, size = COMPRESSED_FLAG, len(container.payload)
    manifest = container.manifest.encode("utf-8")
    head = _HEAD.pack(MAGIC, CONTAINER_VERSION, flags, size, len(manifest))
    return head + manifest + _CHECKSUM.pack(fnv1a64(stored)), stored


class PayloadReader:
    """Takes fields from a payload in order; every error names file, field and payload byte.

    Nothing is allocated before the bytes it needs are known to be there.
    """

    def __init__(self, payload: bytes, name: str) -> None:
        self.payload = payload
        self.name = name
        self.position = 0

    @property
    def remaining(self) -> int:
        """Bytes not taken yet."""
        return len(self.payload) - self.position

    def error(self, problem: str, field: str, got: object = None, allowed: str | None = None) -> ConnectomeError:
        """An error about ``field`` at the present payload byte."""
        return damaged(problem, f"{self.name}: {field} (payload byte {self.position})", got, allowed)

    def take(self, field: str, length: int) -> bytes:
        """The next ``length`` bytes."""
        if length > self.remaining:
            raise self.error("reaches past the end of the payload", field, length, f"at most {self.remaining} bytes")
        taken = self.payload[self.position : self.position + length]
        self.position += length
        return taken

    def number(self, field: str, code: str) -> Any:
        """The next number; ``code`` is its letter for ``struct`` (``I`` u32, ``Q`` u64, ``f`` f32)."""
        return struct.unpack("<" + code, self.take(field, struct.calcsize("<" + code)))[0]

    def count(self, field: str, item_bytes: int) -> int:
        """The count in front of a vector or map whose items take at least ``item_bytes`` each."""
        value = int(self.number(field, "Q"))
        if value > self.remaining // item_bytes:
            self.position -= 8
            raise self.error("count exceeds the file", field, value, f"at most {(self.remaining - 8) // item_bytes}")
        return value

    def vector(self, field: str, dtype: type[np.generic], expected: int | None) -> npt.NDArray[Any]:
        """The next vector, (n,) of ``dtype``; n must be ``expected`` unless that is ``None``."""
        stored = np.dtype(np.uint8 if dtype is np.bool_ else dtype).newbyteorder("<")
        count = self.count(field, stored.itemsize)
        if expected is not None and count != expected:
            raise self.error("vector has another length than the others of its table", field, count, str(expected))
        values = np.frombuffer(self.take(field, count * stored.itemsize), stored)
        if dtype is not np.bool_:
            return values
        if count and int(values.max()) > 1:
            row = int(np.argmax(values > 1))
            raise self.error("not a truth value", f"{field}[{row}]", int(values[row]), "0 or 1")
        return values.view(np.bool_)

    def text(self, field: str) -> str:
        """The next string."""
        raw = self.take(field, self.count(field, 1))
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            self.position -= len(raw) - error.start
            raise self.error("text is not UTF-8", field, raw[error.start : error.start + 8]) from error

    def rest(self) -> bytes:
        """Everything that is left."""
        return self.take("tail", self.remaining)
