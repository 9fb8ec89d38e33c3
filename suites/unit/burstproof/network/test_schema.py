"""The one list of columns: tables follow it, files may lack columns, and what does not fit is refused."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burstproof.engine.layout import parameters_of
from burstproof.engine.protocol import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.replay import replay
from burstproof.engine.rules import Features
from burstproof.engine.sharded import checkpoint
from burstproof.engine.sharded.checkpoint import load_checkpoint
from burstproof.engine.trace import read_trace
from burstproof.errors import NetworkError, NetworkFileError, TraceError
from burstproof.network.files import bpnet as storage
from burstproof.network.files.bpnet import load_network, save_network
from burstproof.network.model import Network, NeuronTable, SynapseTable
from burstproof.network.schema import NEURON_FIELDS, NEURONS, SYNAPSE_FIELDS, SYNAPSES, Parameters

DATA = Path(__file__).parents[3] / "data"
ROUND_ONE = DATA / "round_one"
"""Files that the code of commit 90a7b49 wrote: trace stdp_w1 as a network, a checkpoint and a record of it."""

pytestmark = pytest.mark.requirement("BE-2", "BE-22")


@pytest.mark.parametrize(("table", "schema"), [(NeuronTable, NEURONS), (SynapseTable, SYNAPSES)])
def test_tables_have_the_columns_of_the_schema(table: type, schema: tuple[Any, ...]) -> None:
    assert [field.name for field in dataclasses.fields(table)] == [column.name for column in schema]


def test_absent_columns_take_the_defaults() -> None:
    neurons, synapses = NeuronTable.build(2), SynapseTable.build([0], [1])
    for table, schema in ((neurons, NEURONS), (synapses, SYNAPSES)):
        for column in schema:
            values = getattr(table, column.name)
            assert values.dtype == np.dtype(column.dtype)
            if column.default is not None:
                assert (values == column.default).all()


@pytest.mark.parametrize(
    ("columns", "where", "got"),
    [
        ({"refractory_periods": [1, 70000]}, r"neurons\.refractory_periods\[1\]", "70000"),
        ({"refractory_periods": -1}, r"neurons\.refractory_periods", "-1"),
        ({"snooze_periods": [np.nan, 1]}, r"neurons\.snooze_periods\[0\]", "nan"),
        ({"thresholds": [1.0, 1e39]}, r"neurons\.thresholds\[1\]", "1e\\+39"),
        ({"coordinates": [[0, 0, 0], [0, -1, 0]]}, r"neurons\.coordinates\[1\]", "-1"),
        ({"valid_mask": [1, 2]}, r"neurons\.valid_mask\[1\]", "2"),
        ({"thresholds": ["a", "b"]}, r"neurons\.thresholds\[0\]", "a"),
        ({"consecutive_fire_limits": [0.5, 1]}, r"neurons\.consecutive_fire_limits\[0\]", "0.5"),
    ],
)
def test_values_that_do_not_fit_a_neuron(columns: dict[str, Any], where: str, got: str) -> None:
    with pytest.raises(NetworkError, match=f"{where}: a value that does not fit .*got '?{got}"):
        NeuronTable.build(2, **columns)


@pytest.mark.parametrize(("column", "value"), [("delay_bursts", 300), ("source_neurons", -1), ("source_neurons", 0.7)])
def test_values_that_do_not_fit_a_synapse(column: str, value: float) -> None:
    columns: dict[str, Any] = {"source_neurons": [0, 0], "target_neurons": [0, 0], column: [0, value]}
    with pytest.raises(NetworkError, match=rf"synapses\.{column}\[1\].*got {value}"):
        SynapseTable.build(**columns)


def test_errors_of_tables_say_what_to_do() -> None:
    with pytest.raises(NetworkError, match=r"unknown column .*\. Did you mean thresholds\?"):
        NeuronTable.build(3, treshold=1.0)
    with pytest.raises(NetworkError, match="one for each; count= must be their number"):
        NeuronTable.build(3, thresholds=[1.0, 2.0])
    areas = {"a": range(2), "b": [1, 2]}
    with pytest.raises(NetworkError, match=r"areas overlap .*Leave neuron 1 out of 'b' or out of 'a'"):
        Network.from_arrays(
            neurons={"thresholds": [1.0] * 3}, synapses={"source_neurons": [0], "target_neurons": [1]}, areas=areas
        )


def test_whole_numbers_of_another_type_fit() -> None:
    table = NeuronTable.build(2, refractory_periods=[2.0, 3.0], valid_mask=[1, 0], thresholds=[1, 2])
    assert table.refractory_periods.tolist() == [2, 3]
    assert table.valid_mask.tolist() == [True, False]
    assert table.thresholds.tolist() == [1.0, 2.0]


def _columns_without(monkeypatch: pytest.MonkeyPatch, absent: str, unknown: dict[str, Any]) -> None:
    """Let files be written as by code whose schema lacks a column, or has one more."""

    def other(neurons: int, synapses: int, plastic: tuple[int, ...]) -> dict[str, Any]:
        found = {name: spec for name, spec in expected(neurons, synapses, plastic).items() if name != absent}
        return {**found, **unknown}

    expected = storage.expected_columns
    monkeypatch.setattr(storage, "expected_columns", other)


def test_a_network_file_without_a_column_takes_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = load_network(ROUND_ONE / "stdp.bpnet")
    with monkeypatch.context() as patched:
        _columns_without(patched, "neurons.snooze_periods", {})
        save_network(tmp_path / "n.bpnet", network)
    found = load_network(tmp_path / "n.bpnet")
    assert (found.neurons.snooze_periods == 0).all()
    assert np.array_equal(found.neurons.thresholds, network.neurons.thresholds)


def test_a_network_file_with_an_unknown_column_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = load_network(ROUND_ONE / "stdp.bpnet")
    with monkeypatch.context() as patched:
        _columns_without(patched, "", {})
        expected = storage.expected_columns
        patched.setattr(
            storage, "expected_columns", lambda n, s, p: {**expected(n, s, p), "neurons.mood": ("<f4", (n,))}
        )
        object.__setattr__(network.neurons, "mood", np.zeros(network.neuron_count, np.float32))
        save_network(tmp_path / "n.bpnet", network)
    with pytest.raises(NetworkFileError, match=r"neurons\.mood"):
        load_network(tmp_path / "n.bpnet")


def test_a_trace_may_lack_columns_and_have_no_unknown_ones(tmp_path: Path) -> None:
    recorded = DATA / "golden" / "traces" / "stdp_w1"
    shutil.copy(recorded.with_suffix(".json"), tmp_path / "t.json")
    with np.load(recorded.with_suffix(".npz")) as stored:
        arrays = dict(stored)
    del arrays["n_snooze_periods"], arrays["s_edge_flags"]
    np.savez(tmp_path / "t.npz", **arrays)
    assert (read_trace(tmp_path / "t").network.neurons.snooze_periods == 0).all()
    np.savez(tmp_path / "t.npz", n_mood=arrays["n_thresholds"], **arrays)
    with pytest.raises(TraceError, match="mood"):
        read_trace(tmp_path / "t")


def test_files_of_round_one_load() -> None:
    """The network is the recorded one; the checkpoint, without a scale, can be gone on from; the record is read."""
    recorded = read_trace(DATA / "golden" / "traces" / "stdp_w1").network
    network = load_network(ROUND_ONE / "stdp.bpnet")
    for table, fields in (("neurons", NEURON_FIELDS), ("synapses", SYNAPSE_FIELDS)):
        for name in fields:
            assert np.array_equal(getattr(getattr(network, table), name), getattr(getattr(recorded, table), name))
    assert network.fixed_point is None
    engine = ReferenceEngine.create(network)
    state = load_checkpoint(ROUND_ONE / "stdp.checkpoint").state
    assert state.fixed_point is None
    engine.restore(state)
    assert engine.step().number == state.burst_count + 1
    result = replay(read_trace(ROUND_ONE / "stdp_run"), ReferenceEngine.create)
    assert result.fired_agree == result.bursts == 20


def test_parameters_are_columns_and_features() -> None:
    """Each parameter of the rule is a column or made from one, and kernels know whether a network uses it."""
    arrays = parameters_of(NeuronTable.build(3, leak_coefficients=0.25))
    assert set(Parameters._fields) - set(NEURON_FIELDS) == {"decays"}
    assert {column.shape for column in arrays} == {(3,)}
    assert arrays.decays.tolist() == [0.75] * 3
    features = {field.name for field in dataclasses.fields(Features)}
    assert set(Parameters._fields) - features == {"thresholds", "mp_charge_accumulation"}


def test_a_later_column_at_its_default_leaves_a_runs_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """So checkpoints of before go on fitting their networks; a value that differs from the default counts."""
    network = load_network(ROUND_ONE / "stdp.bpnet")
    fixed_point = ReferenceEngine.create(network).fixed_point
    later = [dataclasses.replace(c, since=2) if c.name == "neuron_types" else c for c in NEURONS]

    def identity(schema: list[Any], value: int) -> object:
        neurons = dataclasses.replace(network.neurons, neuron_types=np.full(network.neuron_count, value, np.int32))
        monkeypatch.setattr(checkpoint, "NEURONS", schema)
        return checkpoint.run_identity(network.replace(neurons=neurons), EngineOptions(), fixed_point)["network"]

    without = [column for column in NEURONS if column.name != "neuron_types"]
    assert identity(later, 0) == identity(without, 0)
    assert identity(later, 1) != identity(later, 0)
