"""The cases that a sitting begins with: those whose names hold a text that was asked for (``--first``)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest


def turn_of(case: str, first: Sequence[str]) -> int:
    """Turn of a case: number of the first text that its name holds, or how many there are."""
    return next((turn for turn, text in enumerate(first) if text in case), len(first))


class AskedFirst:
    """Plugin that puts these cases first; ``grouping`` does, where cases run side by side."""

    def __init__(self, first: Sequence[str]) -> None:
        self._first = first

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sort the cases by their turn; each keeps its place among those of the same turn."""
        items.sort(key=lambda item: turn_of(item.nodeid, self._first))
