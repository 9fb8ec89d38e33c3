"""Compiled kernels on disk, so that the next process starts in milliseconds.

numba's own disk cache never hits for functions that call functions made at run time, as all kernels do. A kernel is
determined by its key, the sources of this package and the versions and processor that compile it: the file is named by
a digest of all these, so a file that is found is right. It lies where numba would put it (``NUMBA_CACHE_DIR``, else
beside the sources, else in the user's cache folder); where none of them can be written, every process compiles.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import tempfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, _Cache
from numba.core.serialize import dumps

_SOURCES = ("burstproof.engine", "burstproof.engine.cpu", "burstproof.network", "burstproof.network.synthetic")
_PREFIX = "burstproof-kernel"


def _sources_digest() -> str:
    """Digest of all that kernels are written in and compiled by."""
    digest = hashlib.sha256()
    for package in _SOURCES:
        for file in sorted(resources.files(package).iterdir(), key=lambda file: file.name):
            if file.name.endswith(".py"):
                digest.update(file.name.encode() + file.read_bytes())
    versions = numba.__version__, llvmlite.__version__, np.__version__, platform.python_version(), config.OPT
    digest.update(repr(versions).encode())
    return digest.hexdigest()[:16]


SOURCES_DIGEST = _sources_digest()
"""Taken on import, so that it belongs to the sources that this process runs."""


class DiskCache(_Cache):  # type: ignore[misc]
    """What a numba dispatcher asks for a function compiled earlier; one file per function, key and signature."""

    def __init__(self, function: Callable[..., Any], key: object) -> None:
        self._work = CompileResultCacheImpl(function)
        self._folder = Path(self._work.locator.get_cache_path())
        self._name = f"{function.__qualname__} {key!r}"

    @property
    def cache_path(self) -> str:
        """Folder of the files."""
        return str(self._folder)

    def enable(self) -> None:
        """Nothing to do: the cache is always on."""

    def disable(self) -> None:
        """Nothing to do: the cache is always on."""

    def flush(self) -> None:
        """Remove every kernel of these sources."""
        for path in self._folder.glob(f"{_PREFIX}-{SOURCES_DIGEST}-*"):
            path.unlink(missing_ok=True)

    def _path(self, signature: Any, codegen: Any) -> Path:
        what = hashlib.sha256(repr((self._name, str(signature), codegen.magic_tuple())).encode()).hexdigest()
        return self._folder / f"{_PREFIX}-{SOURCES_DIGEST}-{what[:32]}"

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The function compiled for ``signature``, or ``None``."""
        target.refresh()
        try:
            data = pickle.loads(self._path(signature, target.codegen()).read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            return None
        return self._work.rebuild(target, data)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep ``compiled``; kernels of other sources go. A folder that cannot be written is left alone."""
        if not self._work.check_cachable(compiled):
            return
        path, data = self._path(signature, compiled.codegen), dumps(self._work.reduce(compiled))
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=".kernel-", dir=self._folder)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
            for old in self._folder.glob(f"{_PREFIX}-*"):
                if SOURCES_DIGEST not in old.name:
                    old.unlink(missing_ok=True)
        except OSError:
            return


def keep_on_disk(dispatcher: Any, key: object) -> None:
    """Let ``dispatcher`` load and save what it compiles for ``key``, if there is a folder for it."""
    try:
        dispatcher._cache = DiskCache(dispatcher.py_func, key)
    except RuntimeError:
        return
