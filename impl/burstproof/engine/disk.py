"""Compiled kernels on disk, so that the next process starts in milliseconds.

numba's own disk cache never hits for functions that call functions made at run time, as all kernels do. A kernel is
determined by its key, the sources of this package, the versions of its compilers and the processor: its file name is a
digest of these. Each installation has a folder of its own in ``NUMBA_CACHE_DIR``, else in the user's cache folder.
Files contain pickled code, so only files sealed by this user are decoded (``sealed.py``); all others are compiled
again. If several processes lack a kernel, as ranks and test workers do at their start, one compiles it and the others
wait. If no folder can be written, or the user has no home folder, every process compiles.
"""

from __future__ import annotations

import hashlib
import pickle
import platform
from importlib import resources
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np
from numba.core import config
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from burstproof.engine.sealed import SealedFolder
from burstproof.user_cache import cache_folder

_SOURCES = (
    "burstproof.engine",
    "burstproof.engine.cpu",
    "burstproof.engine.features",
    "burstproof.network",
    "burstproof.network.synthetic",
)
_PREFIX = "burstproof-kernel"
MOST_COMPILING_S = 60.0
"""Longest wait for another process that compiles the same kernel; compiling takes less on any machine."""


def _sources_digest() -> str:
    """Digest of the kernels' sources and of their compilers' versions."""
    digest = hashlib.sha256()
    for package in _SOURCES:
        for file in sorted(resources.files(package).iterdir(), key=lambda file: file.name):
            if file.name.endswith(".py"):
                digest.update(file.name.encode() + file.read_bytes())
    versions = numba.__version__, llvmlite.__version__, np.__version__, platform.python_version(), config.OPT
    digest.update(repr(versions).encode())
    return digest.hexdigest()[:16]


SOURCES_DIGEST = _sources_digest()
"""Computed on import, so that it matches the sources that this process runs."""


def _folder() -> SealedFolder | None:
    """The folder of this installation; ``None`` without a cache. Installations must not remove each other's kernels."""
    own = cache_folder()
    if own is None:
        return None
    here = hashlib.sha256(str(Path(__file__).resolve().parent).encode()).hexdigest()[:16]
    return SealedFolder(Path(config.CACHE_DIR or own) / f"{_PREFIX}s-{here}", own / "kernel-key")


class DiskCache(_Cache):  # type: ignore[misc]
    """The cache of a numba dispatcher: one file per function, key and signature."""

    def __init__(self, function: Any, key: object, folder: SealedFolder) -> None:
        self._folder = folder
        self._name = f"{function.__qualname__} {key!r}"
        self._claims: dict[str, int | None] = {}

    @property
    def cache_path(self) -> str:
        """Folder of the files."""
        return str(self._folder.path)

    def enable(self) -> None:
        """Nothing to do: the cache is always on."""

    def disable(self) -> None:
        """Nothing to do: the cache is always on."""

    def flush(self) -> None:
        """Remove every kernel of these sources."""
        for name in self._folder.names():
            if name.startswith(f"{_PREFIX}-{SOURCES_DIGEST}-"):
                self._folder.remove(name)

    def _file(self, signature: Any, codegen: Any) -> str:
        what = hashlib.sha256(repr((self._name, str(signature), codegen.magic_tuple())).encode()).hexdigest()
        return f"{_PREFIX}-{SOURCES_DIGEST}-{what[:32]}"

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The function compiled for ``signature``, or ``None``; waits for a process that is compiling it."""
        target.refresh()
        file = self._file(signature, target.codegen())
        content = self._folder.read(file)
        if content is None:
            self._release(file)
            self._claims[file] = self._folder.claim(file, MOST_COMPILING_S)
            content = self._folder.read(file)
            if content is not None:
                self._release(file)
        return None if content is None else CompileResult._rebuild(target, *pickle.loads(content))

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Store ``compiled``, and remove kernels of other sources; ignores a folder that cannot be written."""
        file = self._file(signature, compiled.codegen)
        try:
            if not (compiled.lifted or compiled.library.has_dynamic_globals):
                self._save(file, compiled)
        finally:
            self._release(file)

    def _save(self, file: str, compiled: Any) -> None:
        kept = self._folder.write(file, dumps(compiled._reduce()))
        for name in self._folder.names() if kept else ():
            if SOURCES_DIGEST not in name:
                self._folder.remove(name)

    def _release(self, file: str) -> None:
        claimed = self._claims.pop(file, None)
        if claimed is not None:
            self._folder.release(file, claimed)


def keep_on_disk(dispatcher: Any, key: object) -> None:
    """Let ``dispatcher`` load and save what it compiles for ``key``, if this user has a cache."""
    folder = _folder()
    if folder is not None:
        dispatcher._cache = DiskCache(dispatcher.py_func, key, folder)
