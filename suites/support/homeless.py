"""A user without a home folder, as a container started under a number has it."""

from __future__ import annotations

import pytest


def leave_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process be of such a user."""
    pwd = pytest.importorskip("pwd", reason="this system keeps homes elsewhere")

    def unknown(_: int) -> None:
        raise KeyError("no such user")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
