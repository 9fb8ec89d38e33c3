"""What the GPU cases of stage 6 share: the card, its limits, and each row measured once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from burstproof.errors import OutOfMemoryError
from suites.support.bench.card_limits import Card, Limits, measure_limits
from suites.support.bench.cuda_bench import RowResult, measure_row, scopes_of
from suites.support.bench.floors import CardLimits
from suites.support.bench.rows import CUDA_ROWS, Row
from suites.support.bench.steady import telemetry_of

Bench = Callable[[Row], RowResult]


FIRST = ("test_cuda_features.py", "test_cuda_kinds.py", "test_closed_loop.py", "test_cuda_latency.py")
"""Modules with the tables of goals, in this order: a run that is cut short has the first of them."""

LARGE = 20_000_000
"""Rows of the table of kinds with so many neurons come after all of ``FIRST``."""


def _rank(item: pytest.Item) -> int:
    """Place of the case among those of this stage."""
    row = item.callspec.params.get("result") if hasattr(item, "callspec") else None
    if item.path.name not in FIRST:
        return len(FIRST) + 1
    return len(FIRST) if isinstance(row, Row) and row.neurons >= LARGE else FIRST.index(item.path.name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the tables of goals before the other cases of this stage, each in its turn."""
    places = [place for place, item in enumerate(items) if item.path.parent == Path(__file__).parent]
    ordered = sorted((items[place] for place in places), key=_rank)
    for place, item in zip(places, ordered, strict=True):
        items[place] = item


@pytest.fixture(scope="session")
def card() -> Iterator[Card]:
    """Device 0 with a stream of its own; telemetry finds it by its PCI address."""
    import cupy

    from burstproof.device.open import open_device

    runtime = open_device(0)
    yield Card(runtime, runtime.stream(), telemetry_of(cupy.cuda.Device(0).pci_bus_id))
    runtime.close()


@pytest.fixture(scope="session")
def limits(card: Card) -> Limits:
    """What the card allows, measured in this run."""
    return measure_limits(card, sorted({row.neurons for row in CUDA_ROWS}))


@pytest.fixture(scope="session")
def known_limits(card: Card, limits: Limits) -> CardLimits:
    """The limits in the units of the floors."""
    return limits.card(card.runtime)


@pytest.fixture(scope="session")
def bench(card: Card) -> Bench:
    """Measures a row once; a card that cannot hold it skips the case, one that stays throttled is an ERROR."""
    done: dict[Row, RowResult | OutOfMemoryError] = {}

    def result(row: Row) -> RowResult:
        if row not in done:
            try:
                done[row] = measure_row(row, card.runtime, card.watch, scopes_of(row))
            except OutOfMemoryError as error:
                done[row] = error
        found = done[row]
        if isinstance(found, OutOfMemoryError):
            pytest.skip(f"{row.name}: {found}")
        return found

    return result
