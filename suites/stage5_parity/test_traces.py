"""Every backend against the recorded traces of the real engine."""

from __future__ import annotations

import pytest

from burstproof.engine.replay import replay
from suites.support.parity import backends
from suites.support.parity.recordings import NAMES, RANDOM_NAMES, recording
from suites.support.plans import every, thinned

pytestmark = pytest.mark.requirement("BE-4", "ST-5")


@pytest.mark.not_proof
def test_all_recordings_are_here() -> None:
    names = ("big_fcl12k", "common", "delays_frac", "essential_stim", "lif_mix", "stdp_w1", "stdp_w3")
    assert tuple(f"traces/{name}" for name in names) == NAMES
    kinds = [name.removeprefix("random/").split("_")[0] for name in RANDOM_NAMES]
    assert {kind: kinds.count(kind) for kind in kinds} == {"bg": 1, "fn": 9, "fz": 14, "sp": 9, "st": 7}


@pytest.mark.measures("parity.bursts_agreeing", "parity.worst_difference", backend=..., trace=..., profile=...)
@pytest.mark.parametrize("name", [*NAMES, *thinned(RANDOM_NAMES, "a random recording of many", keep=every(8))])
@pytest.mark.parametrize("backend", backends.ALL)
def test_recording_agrees(backend: backends.Backend, name: str, measure) -> None:
    """A recorded trace of the real engine, burst by burst: fired lists and the whole recorded state."""
    result = replay(recording(name), backend.create)
    conditions = {"backend": backend.name, "trace": name.split("/")[1], "profile": result.profile}
    measure("parity.bursts_agreeing", result.state_agree / result.bursts, "1", conditions=conditions)
    measure("parity.worst_difference", result.worst_difference, "1", conditions=conditions)
    assert result.agrees, f"{result.state_agree} of {result.bursts} bursts agree; first: {result.first}"


@pytest.mark.not_proof
@pytest.mark.parametrize("name", ["traces/big_fcl12k", "random/bg_001"])
def test_batch_path_needs_emulation(name: str) -> None:
    """Without emulation of the batch path a recording made on it disagrees: the check can fail."""
    assert not replay(recording(name), backends.REFERENCE.create, emulate=False).agrees
