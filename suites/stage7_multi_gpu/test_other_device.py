"""Work on a device that is not the current one of the process."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.reference import ReferenceEngine
from burstproof.network.model import Network
from burstproof.tensor.array.backend import backend
from burstproof.tensor.array.protocol import Array, Backend
from burstproof.tensor.attention.operation import attention, attention_backward, standard_attention
from burstproof.tensor.gpt.config import GptConfig
from burstproof.tensor.gpt.model import Gpt
from burstproof.tensor.lattices import golden
from burstproof.tensor.ops.adamw import AdamW
from burstproof.tensor.ops.linalg import matmul
from suites.support.parity.mixed import MIXES, Mix, mixed_network, mixed_options, mixed_plan

pytestmark = [pytest.mark.requirement("ST-7"), pytest.mark.gate("multi_gpu")]

BURSTS = 12
KINDS = ("integers, all excitatory", "plastic, window 1", "mp-driven")


def _on(device: int, network: Network, options: EngineOptions) -> Engine:
    from burstproof.engine.cuda.engine import CudaEngine

    return CudaEngine.create(network, replace(options, cuda=CudaOptions(device_id=device)))


@pytest.mark.requirement("BE-4", "BE-6")
@pytest.mark.parametrize("mix", [mix for mix in MIXES if mix.name in KINDS], ids=lambda mix: mix.name)
def test_engines_on_two_devices_step_in_turns(mix: Mix) -> None:
    """Bursts one at a time on either device, between them all of the other's state: each is the reference's."""
    network, options = mixed_network(mix), mixed_options(mix)
    plan = mixed_plan(mix, network)
    reference = ReferenceEngine.create(network, options)
    engines = [_on(device, network, options) for device in (0, 1)]
    for _ in range(BURSTS):
        expected = reference.run(1, plan)
        for engine in engines:
            found = engine.run(1, plan)
            assert found.fired_ids.tobytes() == expected.fired_ids.tobytes()
            assert list(reference.state().differences(engine.state())) == []
    for engine in engines:
        engine.close()


@pytest.fixture
def other() -> Backend:
    """Device 1, while device 0 is current."""
    import cupy

    cupy.cuda.Device(0).use()
    return backend("cupy", 1)


def _lie_there(place: Backend, *arrays: Array) -> bool:
    return all(array.device.id == place.device for array in arrays)


@pytest.mark.requirement("TO-1", "TO-5")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_attention_stays_on_the_device_of_its_arrays(other: Backend, dtype: type[np.floating]) -> None:
    random = np.random.default_rng(3)
    host = [random.standard_normal((1, 2, 48, 32)).astype(dtype) for _ in range(4)]
    q, k, v, gradient = (other.from_host(array) for array in host)
    attended = attention(q, k, v, causal=True)
    gradients = attention_backward(gradient, q, k, v, attended, causal=True)
    expected = attention(*host[:3], causal=True)
    assert _lie_there(other, attended.out, attended.lse, *gradients)
    assert _lie_there(other, standard_attention(q, k, v).out)
    np.testing.assert_allclose(other.to_host(attended.out), expected.out, rtol=1e-4, atol=1e-5)


@pytest.mark.requirement("TO-1", "TO-10")
def test_integers_are_bounded_where_they_lie(other: Backend) -> None:
    """The bound that keeps a recurrence in 64 bits is computed on the device of its arrays."""
    found = golden.recurrence(other.zeros(1000, np.int64), other.ones(1000, np.int64), 90)
    assert _lie_there(other, found)
    assert np.all(other.to_host(found) == 2880067194370816120)


@pytest.mark.requirement("TO-1", "TO-4")
def test_an_empty_product_is_zero_there(other: Backend) -> None:
    product = matmul(other.ones((2, 0)), other.ones((0, 4)))
    assert _lie_there(other, product)
    assert other.to_host(product).tolist() == [[0.0] * 4] * 2


@pytest.mark.requirement("TO-1", "TO-9")
def test_training_is_that_of_the_current_device(other: Backend) -> None:
    """Losses of a few steps on device 1, while device 0 is current, are those of device 0 to the bit."""
    config = GptConfig(layers=2, heads=2, width=64, context=32, vocabulary=96)
    random = np.random.default_rng(5)
    tokens = random.integers(0, 96, (2, 33))
    losses = []
    for place in (backend("cupy", 0), other):
        model = Gpt(config, place, "bfloat16", seed=1)
        losses.append([float(model.step(tokens[:, :-1], tokens[:, 1:], AdamW(rate=1e-3))) for _ in range(4)])
    assert losses[0] == losses[1]
