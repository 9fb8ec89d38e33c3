"""A small checkout and a machine without a GPU, for the cases of the runner."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from stages import gating, pytest_command
from suites.support.small_plan import ROOT, Checkout, no_gpu, small_checkout


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """Make a checkout whose stages hold the given sources, in order."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "impl"), str(ROOT)]))
    monkeypatch.setattr(pytest_command, "PLUGINS", ("benchmark",))
    monkeypatch.setattr(gating, "machine_gates", no_gpu)
    return partial(small_checkout, tmp_path / "checkout")
