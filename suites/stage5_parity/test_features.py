"""Features of a genome (FEATURES.md): recordings, cases worked out by hand, and going on from any burst."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.replay import replay, trace_options
from burstproof.engine.sharded.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from burstproof.engine.state import NO_STIMULUS
from burstproof.engine.trace import Trace, read_trace, trace_of_run, write_trace
from burstproof.errors import NetworkError
from burstproof.network.model import Network
from suites.support.parity import backends
from suites.support.parity.builder import Case, run_case
from suites.support.parity.cases import CASES, FEATURE_CASES
from suites.support.parity.feature_faults import FEATURE_FAULTS
from suites.support.parity.recordings import FEATURE_NAMES, recording
from suites.support.plans import every, thinned

pytestmark = pytest.mark.requirement("BE-4", "ST-5")


def _common_kernel(place: int, case: Case) -> bool:
    """Whether the CPU engine has a kernel for the case that others need, too."""
    return not (case.network.features.clamp_potentials and case.network.features.modulators)


def refused(backend: backends.Backend, network: Network, options: EngineOptions) -> bool:
    """Whether ``backend`` does not run the network; then it has to say so, by the names of what it does not model."""
    missing = backend.refuses(network)
    if missing:
        with pytest.raises(NetworkError) as error:
            backend.create(network, options)
        assert all(name in str(error.value) for name in missing)
    return bool(missing)


@pytest.mark.not_proof
def test_all_recordings_of_features_are_here() -> None:
    kinds = [name.removeprefix("features/").split("_")[0] for name in FEATURE_NAMES]
    assert len(kinds) == 39
    assert len(set(kinds)) == 21


@pytest.mark.measures(
    "parity.bursts_agreeing",
    "parity.worst_difference",
    only_if="the backend models the features",
    backend=...,
    trace=...,
    profile=...,
)
@pytest.mark.parametrize("name", FEATURE_NAMES)
@pytest.mark.parametrize("backend", backends.FEATURED)
def test_recording_of_features_agrees(backend: backends.Backend, name: str, measure) -> None:
    """Every recorded field of every burst; a backend that does not model the network says what it lacks."""
    trace = recording(name)
    if refused(backend, trace.network, trace_options(trace)):
        return
    result = replay(trace, backend.create)
    conditions = {"backend": backend.name, "trace": name.split("/")[1], "profile": result.profile}
    measure("parity.bursts_agreeing", result.state_agree / result.bursts, "1", conditions=conditions)
    measure("parity.worst_difference", result.worst_difference, "1", conditions=conditions)
    assert result.agrees, f"{result.state_agree} of {result.bursts} bursts agree; first: {result.first}"


@pytest.mark.not_proof
def test_names_of_feature_cases_are_unique() -> None:
    names = [case.name for case in (*CASES, *FEATURE_CASES)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("backend", backends.FEATURED)
@pytest.mark.parametrize(
    "case", thinned(FEATURE_CASES, "a kernel of its own for the CPU", keep=_common_kernel), ids=lambda case: case.name
)
def test_feature_case(backend: backends.Backend, case: Case) -> None:
    """A network written down synapse by synapse does what FEATURES.md says, or is refused by name."""
    if refused(backend, case.network, case.options):
        return
    problems = run_case(case, backend.create)
    assert not problems, "; ".join(problems)


@pytest.mark.not_proof
@pytest.mark.parametrize(
    "fault", thinned(FEATURE_FAULTS, "a fault of many", keep=every(4)), ids=lambda fault: fault.__name__
)
def test_every_fault_of_a_feature_is_caught(fault: type[ReferenceEngine]) -> None:
    assert any(run_case(case, fault.create) for case in FEATURE_CASES), fault.__doc__


@pytest.mark.not_proof
def test_every_section_has_faults() -> None:
    sections = {int((fault.__doc__ or "0")[0]) for fault in FEATURE_FAULTS}
    assert sections == set(range(1, 9))


def _changed(name: str, key: str) -> Trace:
    """A recording with one value of the array ``key`` changed, in its last row."""
    trace = recording(name)
    column = trace.recorded[key].copy()
    column.reshape(-1)[-1] += 1 if column.dtype.kind != "u" or column.dtype.itemsize > 1 else 255
    return replace(trace, recorded={**trace.recorded, key: column})


_RECORDED = [
    *(("stim_11", f"t_{column}", column) for column in ("thresholds", "leak_coefficients")),
    ("neuro_11", "t_excitabilities", "excitabilities"),
    ("degen_11", "t_postsynaptic_potentials", "postsynaptic_potentials"),
    *(("mem6_12", f"mem_{column}", "memor") for column in ("id", "pattern_hash", "lifespan", "is_ltm")),
    *(("mem6_12", f"mem_{column}", "memor") for column in ("activation_count", "creation_burst", "area")),
    ("mem6_12", "mem_last_activation_burst", "memor"),
    *(("mem6_12", f"newn_{column}", "twin") for column in ("index", "area", "membrane_potential")),
    *(("assoc_11", f"dyn_{column}", "synapse") for column in ("source", "target", "weight", "psp", "type")),
    ("assoc_11", "dyn_eligibility", "synapse"),
]


@pytest.mark.not_proof
@pytest.mark.parametrize(("name", "key", "quantity"), _RECORDED)
def test_every_recorded_field_is_compared(name: str, key: str, quantity: str) -> None:
    first = replay(_changed(f"features/{name}", key), backends.REFERENCE.create).first
    assert first is not None
    assert quantity in first.quantity, first


@pytest.mark.not_proof
@pytest.mark.parametrize(
    ("name", "prefix"), [("mem6_12", "mem_"), ("mem6_12", "newn_"), ("assoc_11", "dyn_"), ("stim_11", "t_")]
)
def test_what_a_recording_leaves_out_never_changed(name: str, prefix: str) -> None:
    trace = recording(f"features/{name}")
    kept = {key: column for key, column in trace.recorded.items() if not key.startswith(prefix)}
    assert not replay(replace(trace, recorded=kept), backends.REFERENCE.create).agrees


@pytest.mark.parametrize("name", thinned(FEATURE_NAMES, "a recording of features of many", keep=every(4)))
@pytest.mark.parametrize("backend", backends.FEATURED)
def test_a_run_goes_on_from_any_burst(backend: backends.Backend, name: str, tmp_path) -> None:
    """Restored from the reference's state after each burst, now and then from a file, the next one is equal."""
    trace = recording(name)
    if refused(backend, trace.network, trace_options(trace)):
        return
    options = trace_options(trace)
    specification = backends.REFERENCE.create(trace.network, options)
    path = tmp_path / "run.bpstate"
    with backend.create(trace.network, options) as engine:
        for number in trace.bursts.tolist():
            state = held = specification.state()
            if number % 10 == 0:
                save_checkpoint(path, Checkpoint(state, {}))
                held = load_checkpoint(path).state
                assert state.differences(held) == ()
            engine.restore(held)
            assert engine.state().differences(state) == ()
            stimulus = trace.plan.get(number, NO_STIMULUS)
            expected, got = specification.step(stimulus), engine.step(stimulus)
            assert np.array_equal(expected.fired_ids, got.fired_ids)
            assert engine.state().differences(specification.state()) == ()


@pytest.mark.not_proof
@pytest.mark.parametrize("name", ["mem6_12", "mem5_15", "assoc_12", "stim_11"])
def test_a_record_of_a_run_agrees_in_its_features(name: str, tmp_path) -> None:
    """Written, read and replayed; a changed value of the end is found."""
    trace = recording(f"features/{name}")
    options = trace_options(trace)
    engine = backends.REFERENCE.create(trace.network, options)
    run = engine.run(len(trace.bursts), trace.plan)
    write_trace(tmp_path / name, trace_of_run(trace.network, options, run, trace.plan, engine.state()))
    record = read_trace(tmp_path / name)
    assert replay(record, backends.REFERENCE.create).agrees
    changed = record.end["features.thresholds"].copy()
    changed[0] += 1
    wrong = replay(replace(record, end={**record.end, "features.thresholds": changed}), backends.REFERENCE.create)
    assert wrong.first is not None
    assert wrong.first.quantity == "features.thresholds"
