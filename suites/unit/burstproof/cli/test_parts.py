"""Parts of the command on their own: stimulation, statistics, raster cells, progress, tables (BE-18)."""

from __future__ import annotations

import io
import sys
import time
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burstproof.analysis.raster import MOST_COLUMNS, RasterGrid
from burstproof.analysis.raster_svg import raster_svg
from burstproof.analysis.statistics import ActivityCounter, activity_table
from burstproof.analysis.text import printable, table
from burstproof.cli import progress
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Recording
from burstproof.engine.stimulation import parse_stimulations, plan_of, stimulus_bounds
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable

pytestmark = pytest.mark.requirement("BE-18")


def network(areas: list[int], names: dict[int, str] | None = None, burst_count: int = 0) -> Network:
    """Neurons in the given areas, without synapses."""
    known = tuple(Area(index, f"id{index}", name) for index, name in (names or {}).items())
    table_of_neurons = NeuronTable.build(len(areas), cortical_areas=np.array(areas))
    return Network(table_of_neurons, SynapseTable.build([], []), known, burst_count)


def recording(first: int, fired: list[list[int]]) -> Recording:
    """A recording of what fired, burst by burst."""
    counts = np.array([len(ids) for ids in fired], np.int64)
    ids = np.array([i for burst in fired for i in burst], np.uint32)
    return Recording(np.arange(first, first + len(fired)), counts, counts, ids, np.zeros(len(ids), np.float32))


def test_a_plan_names_each_burst_and_adds_up_what_falls_on_it() -> None:
    found = plan_of(parse_stimulations(network([7] * 10), 20, ["1-7/3:0,2-3=1.5", "4:2=2"], ["4,20:9,9"]))
    assert sorted(found) == [1, 4, 7, 20]
    assert found[1].ids.tolist() == [0, 2, 3]
    assert found[1] is found[7]
    assert found[4].ids.tolist() == [0, 2, 3, 2]
    assert found[4].amounts.tolist() == [1.5, 1.5, 1.5, 2.0]
    assert found[4].forced.tolist() == found[20].forced.tolist() == [9]
    assert stimulus_bounds(found, EngineOptions()) == (255.0, True)


def test_an_area_is_named_by_id_or_name_and_bounds_grow_with_the_amounts() -> None:
    brain = network([3, 5, 3], {3: "left", 5: "ri:ght=1"})
    by_name = plan_of(parse_stimulations(brain, 2, ["2:@ri:ght=1=200", "2:@id5=100"]))
    assert by_name[2].ids.tolist() == [1, 1]
    assert stimulus_bounds(by_name, EngineOptions()) == (300.0, False)
    assert plan_of(parse_stimulations(brain, 2, [], ["1:@left"]))[1].forced.tolist() == [0, 2]


def test_statistics_count_neurons_firings_and_peaks() -> None:
    counter = ActivityCounter(network([1, 4, 4, 4], {4: "four"}))
    counter.add(recording(1, [[0, 1], [1, 2], []]))
    counter.add(recording(4, [[1]]))
    one, four = counter.areas()
    assert (one.index, one.name, one.neurons, one.firings, one.active, one.peak) == (1, "", 1, 1, 1, 1)
    assert (four.name, four.neurons, four.firings, four.active, four.peak) == ("four", 3, 4, 2, 2)
    assert four.rate == pytest.approx(4 / (3 * 4))
    assert counter.bursts == 4
    assert activity_table(counter.areas()).count("\n") == 3


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
    text = raster_svg(grid.raster(), "a < b & c")
    root = ElementTree.fromstring(text)
    assert root.findtext("{http://www.w3.org/2000/svg}title") == "a < b & c"
    assert "<b>&?[31m (1)" in [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_raster_of_full_activity_stays_small() -> None:
    generator = np.random.default_rng(7)
    brain = network([int(a) for a in generator.integers(7, 40, 3000)])
    grid = RasterGrid(brain, 900)
    grid.add(recording(1, [np.flatnonzero(generator.random(3000) < 0.02).tolist() for _ in range(900)]))
    assert len(raster_svg(grid.raster(), "busy")) < 4_000_000


def test_table_and_printable() -> None:
    assert table(("a", "b"), [("x", "10"), ("yy", "2")]) == "a    b\n--  --\nx   10\nyy   2"
    assert printable("a\nb\x1b" + "c" * 100, 10) == "a?b?ccc..."


class Terminal(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_bar_appears_for_slow_tasks_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SHOW_AFTER_S", 0.0)
    for shown, stream, expected in ((True, Terminal(), True), (False, Terminal(), False), (True, io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.task("growing [brain]", 3, shown=shown) as bar:
            bar.advance(1)
            bar.reach(2, 3)
            time.sleep(0.3)
        assert ("growing [brain]" in stream.getvalue()) is expected


def test_a_quick_task_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(progress, "SHOW_AFTER_S", 60.0)
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.task("quick", 3) as bar:
        bar.advance(3)
    assert stream.getvalue().strip() == ""
