"""A progress callback that raises: the run ends with what it raised, and the engine stands at the end of a burst."""

from __future__ import annotations

from dataclasses import replace

import pytest

from burstproof.engine.options import CudaOptions, EngineOptions, WgpuOptions
from burstproof.engine.protocol import Engine
from burstproof.errors import InputError, NetworkError
from burstproof.network.model import Network
from suites.support.parity import backends
from suites.support.parity.interrupted import BATCH, interruption_differs
from suites.support.parity.mixed import MIXES, mixed_network, mixed_options

pytestmark = pytest.mark.requirement("BE-4", "BE-17", "ST-5")

MIX = replace(next(mix for mix in MIXES if mix.name == "integers"), bursts=6 * BATCH)
CHOSEN = ("reference", "cpu, 1 thread", "cpu, 2 threads", "cpu, 2 shards", "cuda, graphs, block 256", "wgpu")


def _in_short_batches(backend: backends.Backend) -> backends.Backend:
    cuda, wgpu = CudaOptions(batch_length=BATCH), WgpuOptions(batch_length=BATCH)
    return replace(backend, cuda=backend.cuda and cuda, wgpu=backend.wgpu and wgpu)


@pytest.mark.parametrize("backend", [case for case in backends.ALL if case.id in CHOSEN])
def test_an_interrupted_run_goes_on(backend: backends.Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state after what raised is that of the burst count, and the next run ends as one that was never stopped."""
    monkeypatch.setattr("burstproof.engine.cpu.engine._LONGEST_BATCH", BATCH)

    def create(network: Network, options: EngineOptions) -> Engine:
        return _in_short_batches(backend).create(network, options)

    assert interruption_differs(MIX, create) == []


@pytest.mark.parametrize("backend", [case for case in backends.ALL if case.id in CHOSEN])
def test_no_run_has_fewer_than_0_bursts(backend: backends.Backend) -> None:
    """A number below 0 is refused alike everywhere; 0 is a run that leaves the engine where it is."""
    engine = backend.create(mixed_network(MIX), mixed_options(MIX))
    before = engine.burst_count
    try:
        with pytest.raises(InputError, match=r"run: a number of bursts below 0 \(got -1; allowed: 0 or more\)"):
            engine.run(-1)
        assert (len(engine.run(0).bursts), engine.burst_count) == (0, before)
    finally:
        engine.close()


@pytest.mark.parametrize("backend", backends.ALL)
def test_a_state_of_another_network_is_refused(backend: backends.Backend) -> None:
    """By its sizes, and the engine goes on from where it stood."""
    small, large = (mixed_network(replace(MIXES[0], neurons=neurons)) for neurons in (20, 21))
    options = mixed_options(MIXES[0])
    with backend.create(small, options) as engine, backend.create(large, options) as other:
        before = engine.state()
        with pytest.raises(NetworkError, match=r"state\.\w+: the state of another network \(got \(.*21.*\); allowed"):
            engine.restore(other.state())
        assert engine.state().differences(before) == ()
