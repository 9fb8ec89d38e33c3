"""A progress callback that raises: the run ends with what it raised, and the engine stands at the end of a burst."""

from __future__ import annotations

from dataclasses import replace

import pytest

from burstproof.burst.engine import CudaOptions, Engine, EngineOptions, WgpuOptions
from burstproof.network.model import Network
from suites.stage5_parity import backends
from suites.stage5_parity.interrupted import TRAIN, interruption_differs
from suites.stage5_parity.mixed import MIXES

pytestmark = pytest.mark.requirement("BE-4", "BE-17", "ST-5")

MIX = replace(next(mix for mix in MIXES if mix.name == "integers"), bursts=6 * TRAIN)
CHOSEN = ("reference", "cpu, 1 thread", "cpu, 2 threads", "cpu, 2 shards", "cuda, graphs, block 256", "wgpu")


def _in_short_trains(backend: backends.Backend) -> backends.Backend:
    cuda, wgpu = CudaOptions(train_length=TRAIN), WgpuOptions(train_length=TRAIN)
    return replace(backend, cuda=backend.cuda and cuda, wgpu=backend.wgpu and wgpu)


@pytest.mark.parametrize("backend", [case for case in backends.ALL if case.id in CHOSEN])
def test_an_interrupted_run_goes_on(backend: backends.Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state after what raised is that of the burst count, and the next run ends as one that was never stopped."""
    monkeypatch.setattr("burstproof.burst.cpu._LONGEST_TRAIN", TRAIN)

    def create(network: Network, options: EngineOptions) -> Engine:
        return _in_short_trains(backend).create(network, options)

    assert interruption_differs(MIX, create) == []
