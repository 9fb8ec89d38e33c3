"""Compiled images on disk, keyed by everything that they depend on; safe with several processes at once.

Of several processes that lack an image one compiles it and the others wait, a minute at most; ranks and test workers
start so.
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
_FORMAT = 2
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
    start, entry, folder = time.perf_counter(), _entry(key), folder or _folder()
    if folder is None:
        cubin, symbols = compiled()
    else:
        cubin, symbols = _load(entry, folder) or _compiled_once(entry, compiled, folder)
    return Image(name, capability, cubin, time.perf_counter() - start, symbols)


def is_kept(key: Mapping[str, Any], folder: Path | None = None) -> bool:
    """Whether ``cached_image`` finds an image for ``key``, or is to keep none anyway."""
    folder = folder or _folder()
    return folder is None or _load(_entry(key), folder) is not None


def _entry(key: Mapping[str, Any]) -> bytes:
    """The digest under which the image of ``key`` is kept."""
    return hashlib.sha256(json.dumps({**key, "format": _FORMAT}, sort_keys=True).encode()).digest()


def _folder() -> Path | None:
    """Where images are kept; ``None`` for a user without a home folder."""
    own = cache_folder()
    return None if own is None else own / "images"


def _compiled_once(entry: bytes, compiled: Callable[[], Compiled], folder: Path) -> Compiled:
    """What another process compiles meanwhile, or what ``compiled`` makes."""
    with _locked(entry, folder):
        found = _load(entry, folder)
        if found is None:
            found = compiled()
            _keep(entry, *found, folder)
        return found


@contextmanager
def _locked(entry: bytes, folder: Path) -> Iterator[None]:
    """Hold the lock that ``entry`` shares with a few others; go on without one that cannot be had, or not in time."""
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
        fcntl.flock(lock, fcntl.LOCK_UN)  # a fork that another thread made has the file open, too
        os.close(lock)


def _load(entry: bytes, folder: Path) -> Compiled | None:
    """Cubin and lowered names kept under ``entry``; ``None`` if there is none, or it is damaged or another's."""
    try:
        kept = _store(folder).get(entry)
        header, _, cubin = bytes(kept or b"").partition(b"\n")
        described = json.loads(header)
        symbols = {str(name): str(symbol) for name, symbol in described["symbols"].items()}
        whole = described["entry"] == entry.hex() and described["sha256"] == hashlib.sha256(cubin).hexdigest()
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return (cubin, symbols) if whole and cubin.startswith(_ELF) else None


def _keep(entry: bytes, cubin: bytes, symbols: Mapping[str, str], folder: Path) -> None:
    """Keep an image; a folder that cannot be written keeps none, and the next process compiles again."""
    header = {"entry": entry.hex(), "sha256": hashlib.sha256(cubin).hexdigest(), "symbols": dict(symbols)}
    try:
        _store(folder)[entry] = json.dumps(header).encode() + b"\n" + cubin
    except OSError:
        return
