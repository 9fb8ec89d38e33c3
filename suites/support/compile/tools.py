"""Whether this environment can compile device code; most test environments cannot, and say so."""

from __future__ import annotations

import importlib.util
from functools import cache

import pytest

_LIBRARIES = ("nvvm", "nvrtc", "nvJitLink")


@cache
def missing_tools() -> tuple[str, ...]:
    """Packages and libraries of the CUDA toolkit that are not here."""
    packages = [name for name in ("numba_cuda", "cuda") if importlib.util.find_spec(name) is None]
    if packages:
        return tuple(packages)
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    absent = []
    for library in _LIBRARIES:
        try:
            load_nvidia_dynamic_lib(library)
        except DynamicLibNotFoundError:
            absent.append(library)
    return tuple(absent)


needs_tools = pytest.mark.skipif(
    bool(missing_tools()),
    reason=f"the compile tools are not installed ({', '.join(missing_tools())}): use the extra compile",
)
