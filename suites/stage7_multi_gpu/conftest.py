"""The order of the stage's cases: what is timed comes before what keeps the host's cores busy with compiling."""

from __future__ import annotations

from pathlib import Path

import pytest

_TIMED = ("test_kind_scaling.py", "test_links.py", "test_peers.py", "test_cuda_scaling.py", "test_tensor_multi_gpu.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the timed files of this folder before its others."""
    here = Path(__file__).parent
    places = [place for place, item in enumerate(items) if item.path.parent == here]
    ordered = sorted((items[place] for place in places), key=lambda item: item.path.name not in _TIMED)
    for place, item in zip(places, ordered, strict=True):
        items[place] = item
