"""Every backend against the recorded traces of the real engine."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from burstproof.burst.replay import replay
from burstproof.burst.trace import Trace, read_trace
from suites.stage5_parity import backends

TRACES = Path(__file__).parents[1] / "data" / "golden" / "traces"
NAMES = sorted(path.stem for path in TRACES.glob("*.npz"))

pytestmark = pytest.mark.requirement("BE-4", "ST-5")


@cache
def recording(name: str) -> Trace:
    """The trace called ``name``, read once."""
    return read_trace(TRACES / name)


def test_all_seven_recordings_are_here() -> None:
    assert NAMES == ["big_fcl12k", "common", "delays_frac", "essential_stim", "lif_mix", "stdp_w1", "stdp_w3"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("backend", backends.ALL)
def test_recording_agrees(backend: backends.Backend, name: str, measure) -> None:
    """A recorded trace of the real engine, burst by burst."""
    result = replay(recording(name), backend.create)
    conditions = {"backend": backend.name, "trace": name, "profile": result.profile}
    measure("parity.bursts_agreeing", result.state_agree / result.bursts, "1", conditions=conditions)
    measure("parity.worst_difference", result.worst_difference, "1", conditions=conditions)
    assert result.agrees, f"{result.state_agree} of {result.bursts} bursts agree; first: {result.first}"


def test_batch_path_needs_emulation() -> None:
    """Without emulation of the batch path the recording made on it disagrees: the check can fail."""
    assert not replay(recording("big_fcl12k"), backends.REFERENCE.create, emulate=False).agrees
