"""The autotuner's choice on a GPU gives the default's results; how long bursts take with each launch (BE-12)."""

from __future__ import annotations

from pathlib import Path

import pytest

from burstproof.engine.cuda.tuning.cache import kept
from burstproof.engine.cuda.tuning.tuner import Launch, notes_launch
from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.network.synthetic.build import synthesize
from stages.measuring import Measure
from suites.support.bench.rows import Row
from suites.support.parity.simulator_check import recordings_differ

pytestmark = pytest.mark.requirement("BE-12")

ROWS = (Row(50_000, 0.01), Row(250_000, 0.01), Row(2_000_000, 0.01, synapses_per_neuron=30))
"""A network of each size class of the notes."""

CLASSES = {50_000: "below 100 K", 250_000: "100 K to 1 M", 2_000_000: "above 1 M"}


@pytest.mark.thorough("measures for seconds")
@pytest.mark.gate("gpu")
@pytest.mark.measures("tuning.default_us", "tuning.notes_us", "tuning.tuned_us", backend="cuda", device=...)
@pytest.mark.measures("tuning.against_notes", backend="cuda", device=..., size_class=...)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_tuning_on_this_device(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: Measure) -> None:
    """The tuned engine gives the default's results; how long bursts take by default, by the notes and tuned."""
    from burstproof.engine.cuda.engine import CudaEngine

    monkeypatch.setattr("burstproof.engine.cuda.tuning.tuner.cache_folder", lambda: tmp_path)
    network = synthesize(row.spec)
    default = CudaEngine.create(network)
    tuned = CudaEngine.create(network, EngineOptions(cuda=CudaOptions(autotune=True)))
    try:
        assert recordings_differ(default.run(50, row.start), tuned.run(50, row.start)) == []
        assert tuned.state().differences(default.state()) == ()
    finally:
        default.close()
        tuned.close()
    (found,) = kept(tmp_path)
    chosen = Launch.of(tuned.options.cuda)
    assert Launch(**found["launch"]) == chosen
    conditions = {"backend": "cuda", "device": found["key"]["device"], **row.conditions}
    launches = {"default": Launch.of(default.options.cuda), "notes": notes_launch(row.neurons), "tuned": chosen}
    for name, launch in launches.items():
        choice = {"block": launch.block_size, "train": launch.batch_length, "streams": launch.stream_count}
        note = "median by the autotuner; 0 is the engine's own choice"
        measure(f"tuning.{name}_us", found[f"{name}_us"], "us", conditions=conditions | choice, note=note)
    gain = found["notes_us"] / found["tuned_us"]
    note = f"the notes' class takes {found['notes_us']:.2f} us a burst, the tuner's choice {found['tuned_us']:.2f}"
    classed = conditions | {"size_class": CLASSES[row.neurons]}
    measure("tuning.against_notes", gain, "x", conditions=classed, note=note)
