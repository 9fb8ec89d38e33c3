"""Rasters: no firing is lost between a recording and the picture, whatever the size and the names."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burstproof.analysis.raster import MOST_COLUMNS, RasterGrid
from burstproof.analysis.raster_svg import raster_svg
from suites.support.networks.activity import network, recording

pytestmark = pytest.mark.requirement("BE-18")


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_firing_is_lost_between_record_and_raster(data: st.DataObject) -> None:
    areas = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=400))
    bursts = data.draw(st.integers(1, 3 * MOST_COLUMNS))
    brain = network(areas, burst_count=data.draw(st.integers(0, 1000)))
    grid = RasterGrid(brain, bursts)
    seed = data.draw(st.integers(0, 2**32 - 1))
    generator = np.random.default_rng(seed)
    rows = [np.flatnonzero(generator.random(len(areas)) < 0.1).tolist() for _ in range(bursts)]
    grid.add(recording(brain.burst_count + 1, rows))
    raster = grid.raster()
    assert int(raster.fired.sum()) == sum(len(row) for row in rows)
    assert raster.filled.shape == (sum(band.rows for band in raster.bands), min(bursts, MOST_COLUMNS))
    assert raster.filled.min() >= 0.0
    assert raster.filled.max() <= 1.0
    assert int(raster.bursts_per_column.sum()) == bursts
    assert sum(band.neurons for band in raster.bands) == len(areas)


def test_neurons_that_the_run_added_are_not_drawn() -> None:
    grid = RasterGrid(network([2, 9, 9]), 2)
    grid.add(recording(1, [[0, 3, 50_000_000], [50_000_001]]))
    assert grid.raster().fired.tolist() == [1, 0]


def test_a_cell_is_drawn_where_and_when_a_neuron_fired() -> None:
    grid = RasterGrid(network([2, 9, 9]), 4)
    grid.add(recording(1, [[], [1], [1], [0, 2]]))
    raster = grid.raster()
    assert raster.filled.tolist() == [[0, 0, 0, 1], [0, 1, 1, 0], [0, 0, 0, 1]]
    root = ElementTree.fromstring(raster_svg(raster, "title"))
    drawn = [path.get("d", "") for path in root.iter("{http://www.w3.org/2000/svg}path")]
    assert [path.count("M") for path in drawn] == [3, 1]


def test_a_raster_of_silence_and_of_markup_is_still_a_picture() -> None:
    grid = RasterGrid(network([2], {2: "<b>&\x1b[31m"}), 3)
    grid.add(recording(1, [[], [], []]))
    text = raster_svg(grid.raster(), "a < b & c\udcff\0")
    root = ElementTree.fromstring(text.encode())
    assert root.findtext("{http://www.w3.org/2000/svg}title") == "a < b & c??"
    assert "<b>&?[31m (1)" in [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_picture_says_how_much_a_cell_holds() -> None:
    """Of 3000 neurons in rows of 13 and 1300 bursts in columns of 3 both are said; of a cell for each, neither."""
    for size, bursts, said in ((3000, 1300, ["13 in a row", "burst (3 in a column)"]), (20, 4, ["burst"])):
        root = ElementTree.fromstring(raster_svg(RasterGrid(network([7] * size), bursts).raster(), "title"))
        texts = [str(e.text) for e in root.iter("{http://www.w3.org/2000/svg}text")]
        assert [text for text in texts if text.endswith("in a row") or text.startswith("burst")] == said


def test_a_raster_of_full_activity_stays_small() -> None:
    generator = np.random.default_rng(7)
    brain = network([int(a) for a in generator.integers(7, 40, 3000)])
    grid = RasterGrid(brain, 900)
    grid.add(recording(1, [np.flatnonzero(generator.random(3000) < 0.02).tolist() for _ in range(900)]))
    assert len(raster_svg(grid.raster(), "busy")) < 4_000_000
