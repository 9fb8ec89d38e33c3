"""The option ``--first``: cases whose names contain a given text run before all others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest


def turn_of(case: str, first: Sequence[str]) -> int:
    """Rank of a case: the index of the first text that its name contains, or the number of texts."""
    return next((turn for turn, text in enumerate(first) if text in case), len(first))


class AskedFirst:
    """Plugin that sorts the cases of one process. With several processes, :mod:`stages.grouping` sorts the units."""

    def __init__(self, first: Sequence[str]) -> None:
        self._first = first

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sort the cases by rank; cases of one rank keep their order."""
        items.sort(key=lambda item: turn_of(item.nodeid, self._first))
