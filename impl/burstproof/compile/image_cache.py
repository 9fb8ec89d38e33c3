"""Compiled images on disk, keyed by everything that they depend on; safe with several processes at once.

Of several processes that lack an image one compiles it and the others wait; ranks and test workers start so.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burstproof.compile.numba_cubin import Capability, Image
from burstproof.user_cache import cache_folder

if TYPE_CHECKING:
    from cuda.core.utils import FileStreamProgramCache

Compiled = tuple[bytes, Mapping[str, str]]
"""A cubin, and the name in it of each template instance."""

_LARGEST_BYTES = 1 << 30
_FORMAT = 1
_ELF = b"\x7fELF"
_MOST_COMPILING_S = 60.0
"""For so long another process that compiles the same image is waited for: longer than that takes anywhere."""
_LOOK_AGAIN_S = 0.02


@lru_cache(maxsize=4)
def _store(folder: Path) -> FileStreamProgramCache:
    """cuda.core's file cache: entries appear whole or not at all, the least recently read go first."""
    from cuda.core.utils import FileStreamProgramCache

    return FileStreamProgramCache(folder, max_size_bytes=_LARGEST_BYTES)


def cached_image(
    name: str,
    capability: Capability,
    key: Mapping[str, Any],
    compiled: Callable[[], Compiled],
    folder: Path | None = None,
) -> Image:
    """The image kept for ``key``, else that which ``compiled`` makes, kept for the next time.

    Parameters
    ----------
    name : str
        Name of the image in errors and reports.
    capability : (int, int)
    key : mapping
        Everything that the image depends on, as JSON can write it.
    compiled : callable
        Makes the cubin and its symbols.
    folder : Path, optional
        By default ``images`` in the package's folder of the user's cache.
    """
    start = time.perf_counter()
    document = json.dumps({**key, "format": _FORMAT}, sort_keys=True)
    entry = hashlib.sha256(document.encode()).digest()
    folder = folder or cache_folder() / "images"
    found = _load(entry, folder)
    if found is None:
        with _claimed(entry, folder):
            found = _load(entry, folder)
            if found is None:
                found = compiled()
                _keep(entry, *found, folder)
    return Image(name, capability, found[0], time.perf_counter() - start, found[1])


@contextmanager
def _claimed(entry: bytes, folder: Path) -> Iterator[None]:
    """Hold the lock of ``entry``, which goes with the process, too; go on without where there are no locks."""
    try:
        import fcntl

        locks = folder.with_name(f"{folder.name}-locks")
        locks.mkdir(parents=True, exist_ok=True)
        lock = os.open(locks / f"{entry[0]:02x}", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except (ImportError, OSError):
        yield
        return
    deadline = time.monotonic() + _MOST_COMPILING_S
    try:
        while time.monotonic() < deadline:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(_LOOK_AGAIN_S)
        yield
    finally:
        os.close(lock)


def _load(entry: bytes, folder: Path) -> Compiled | None:
    """Cubin and lowered names kept under ``entry``; ``None`` if there is none or it is damaged."""
    try:
        kept = _store(folder).get(entry)
        header, _, cubin = bytes(kept or b"").partition(b"\n")
        described = json.loads(header)
    except (OSError, ValueError):
        return None
    whole = cubin.startswith(_ELF) and hashlib.sha256(cubin).hexdigest() == described.get("sha256")
    return (cubin, dict(described["symbols"])) if whole else None


def _keep(entry: bytes, cubin: bytes, symbols: Mapping[str, str], folder: Path) -> None:
    """Keep an image; a folder that cannot be written keeps none, and the next process compiles again."""
    header = {"sha256": hashlib.sha256(cubin).hexdigest(), "symbols": dict(symbols)}
    try:
        _store(folder)[entry] = json.dumps(header).encode() + b"\n" + cubin
    except OSError:
        return
