"""Where the package keeps what it may compute again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from burstproof.user_cache import cache_folder
from suites.support.homeless import leave_home

pytestmark = [
    pytest.mark.requirement("BE-18"),
    pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="this system has its own folder for caches"),
]


def test_a_user_without_a_home_has_none_unless_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "burstproof"
    leave_home(monkeypatch)
    assert cache_folder() is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "named"))
    assert cache_folder() == tmp_path / "named" / "burstproof"
