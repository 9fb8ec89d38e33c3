"""CuPy's NCCL binding, loaded with NVLink multicast switched off before the library reads its settings."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

MULTICAST_SETTING = "NCCL_NVLS_ENABLE"
"""NCCL's switch for NVLink multicast. It stays off: multicast can put a host's GPUs out of service for others."""


def nccl_library() -> Any:
    """CuPy's NCCL binding with the library loaded, or ``None``; the library may be a separate package.

    Sets ``NCCL_NVLS_ENABLE=0`` for this process, whatever it was before; NCCL reads it at its first use.
    """
    os.environ[MULTICAST_SETTING] = "0"
    return _loaded()


@lru_cache(maxsize=1)
def _loaded() -> Any:
    found = importlib.util.find_spec("nvidia.nccl") if importlib.util.find_spec("nvidia") is not None else None
    for folder in found.submodule_search_locations or () if found is not None else ():
        for file in Path(folder).glob("lib/libnccl.so*"):
            ctypes.CDLL(str(file), ctypes.RTLD_GLOBAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from cupy.cuda import nccl
        except ImportError:
            return None
    return nccl if getattr(nccl, "available", False) else None
