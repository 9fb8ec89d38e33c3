"""GPT-2's gradients by finite differences, on every backend and precision, and beside PyTorch (TO-9)."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from burstproof.errors import ArrayError, OutOfMemoryError
from burstproof.tensor.array.backend import backend
from burstproof.tensor.gpt.config import GPT2_124M, GptConfig
from burstproof.tensor.gpt.model import Gpt
from burstproof.tensor.ops.adamw import AdamW

pytestmark = pytest.mark.requirement("TO-9")

TINY = GptConfig(layers=2, heads=2, width=64, context=40, vocabulary=90)
PRECISIONS = {
    "numpy float32": 1e-5,
    "numpy bfloat16": 5e-2,
    "cupy float64": 1e-10,
    "cupy float32": 1e-5,
    "cupy bfloat16": 5e-2,
}
"""Greatest relative error of a parameter's gradient: bfloat16 rounds every activation (2^-8) some twenty times."""

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")


def batch(config: GptConfig, rows: int = 3, length: int = 33) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    tokens = random.integers(0, config.vocabulary, (rows, length + 1))
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def names(config: GptConfig) -> list[str]:
    return [shape.name for shape in (*config.matrices(), *config.vectors())]


@pytest.fixture(scope="module")
def reference() -> tuple[Gpt, float]:
    """The float64 model on the CPU after one backward pass, and its loss."""
    model = Gpt(TINY, backend("numpy"), "float64", seed=1)
    return model, float(model.gradients(*batch(TINY)))


def test_gpt2_has_124_million_parameters() -> None:
    assert GPT2_124M.parameter_count == 124_439_808
    assert GPT2_124M.padded_vocabulary == 50_304
    assert GPT2_124M.head == 64


def test_gradients_are_finite_differences() -> None:
    """Three values of every parameter, moved by 1e-5, with weights large enough that every path matters."""
    config = GptConfig(layers=2, heads=2, width=16, context=8, vocabulary=11)
    model = Gpt(config, backend("numpy"), "float64", seed=1)
    random, held = np.random.default_rng(3), model.parameters
    held.weights += 0.1 * random.standard_normal(held.weights.size)
    tokens, targets = batch(config, 2, 8)
    targets[0, 2] = -1
    model.gradients(tokens, targets)
    gradients, start, step = held.gradients.copy(), 0, 1e-5
    for shape in (*config.matrices(), *config.vectors()):
        for place in start + random.choice(shape.size, 3, replace=False):
            kept, losses = held.weights[place], []
            for moved in (kept + step, kept - step):
                held.weights[place] = moved
                losses.append(float(model.gradients(tokens, targets)))
            held.weights[place] = kept
            slope = (losses[0] - losses[1]) / (2 * step)
            assert gradients[place] == pytest.approx(slope, rel=1e-5, abs=1e-9), shape.name
        start += shape.size


@pytest.mark.measures("accuracy.relative_error", dtype=..., tf32=False, operation="GPT-2 gradients")
@pytest.mark.parametrize(
    "what",
    [pytest.param(name, marks=[pytest.mark.gate("gpu")] if name.startswith("cupy") else []) for name in PRECISIONS],
)
def test_gradients_against_float64(reference, what, measure) -> None:
    place, precision = what.split()
    model = Gpt(TINY, backend(place), precision, seed=1)
    loss = float(model.gradients(*batch(TINY)))
    assert loss == pytest.approx(reference[1], rel=max(PRECISIONS[what] / 20, 1e-12))
    worst = 0.0
    for name in names(TINY):
        expected = reference[0].parameters.gradient(name)
        found = backend(place).to_host(model.parameters.gradient(name))
        worst = max(worst, float(np.linalg.norm(found - expected) / np.linalg.norm(expected)))
    where = {"operation": "GPT-2 gradients", "dtype": precision, "tf32": False, "backend": place}
    measure("accuracy.relative_error", worst, "1", conditions=where)
    assert worst < PRECISIONS[what]
    assert model.activation_bytes > 0


@pytest.mark.parametrize("place", ["numpy", pytest.param("cupy", marks=pytest.mark.gate("gpu"))])
def test_steps_lower_the_loss_and_repeat(place) -> None:
    """One batch eight times: every loss is below the one before, and a second run has the same bits."""
    runs = []
    for _ in range(2):
        model = Gpt(TINY, backend(place), "bfloat16", seed=1)
        runs.append([float(model.step(*batch(TINY), AdamW(rate=1e-3))) for _ in range(8)])
    assert runs[0] == runs[1]
    assert runs[0] == sorted(runs[0], reverse=True)
    assert runs[0][0] == pytest.approx(np.log(90), abs=0.1)


@pytest.mark.gate("gpu")
def test_out_of_memory_gives_everything_back() -> None:
    """With little memory left a step is refused by the package; with the memory free again the same model steps.

    It is the pool that has little left, not the device, which other cases use at the same time.
    """
    import gc

    import cupy

    place = backend("cupy")
    config = GptConfig(layers=12, heads=4, width=256, context=1024, vocabulary=512)
    model = Gpt(config, place, "bfloat16")
    tokens, targets = batch(config, 8, 1024)
    expected = float(model.gradients(tokens, targets))  # kernels and cuBLAS are loaded while there is room
    with place.use():  # the pool speaks of the current device
        pool = cupy.get_default_memory_pool()
        pool.free_all_blocks()
        used = pool.used_bytes()
        pool.set_limit(size=used + (400 << 20))
        try:
            with pytest.raises(OutOfMemoryError):
                model.gradients(tokens, targets)
        finally:
            pool.set_limit(size=0)
        gc.collect()
        assert pool.used_bytes() <= used
        assert float(model.gradients(tokens, targets)) == expected


@pytest.mark.measures("gpt.loss_against_pytorch", dtype=["float32", "bfloat16"])
@pytest.mark.gate("gpu")
@needs_torch
def test_losses_and_gradients_are_pytorchs(measure) -> None:
    """Same weights, same batches, float32 and bfloat16 autocast: losses of five steps, and the first gradients."""
    import torch

    from suites.support.bench import torch_gpt

    config = GptConfig(layers=3, heads=4, width=256, context=128, vocabulary=512)
    tokens, targets = batch(config, 4, 128)
    on_device = [torch.from_numpy(array).cuda() for array in (tokens, targets)]
    for precision, allowed in (("float32", 2e-5), ("bfloat16", 5e-3)):
        model = Gpt(config, backend("cupy"), precision, seed=2)
        other = torch_gpt.make_model(config, model.parameters.on_host())
        constants = AdamW(rate=1e-3)
        optimiser = torch_gpt.make_optimiser(other, constants)
        step = torch_gpt.train_step if precision == "bfloat16" else torch_gpt.train_step_float32
        model.gradients(tokens, targets)
        expected = torch_gpt.first_gradients(other, *on_device, precision == "bfloat16")
        for name, gradient in expected.items():
            found = backend("cupy").to_host(model.parameters.gradient(name))
            off = float(np.linalg.norm(found - gradient) / np.linalg.norm(gradient))
            assert off < (1e-4 if precision == "float32" else 5e-2), name
        for _ in range(5):
            ours = float(model.step(tokens, targets, constants))
            theirs = float(step(other, optimiser, *on_device))
            assert ours == pytest.approx(theirs, rel=allowed)
        measure("gpt.loss_against_pytorch", abs(ours / theirs - 1.0), "1", conditions={"dtype": precision, "steps": 5})


def _refusals():
    model = Gpt(TINY, backend("numpy"), "float32")
    tokens, targets = batch(TINY)
    yield lambda: model.gradients(tokens, targets[:, 1:])
    yield lambda: model.gradients(tokens[0], targets[0])
    yield lambda: model.gradients(*batch(TINY, 1, 41))
    yield lambda: model.gradients(tokens + 60, targets)
    yield lambda: model.gradients(tokens, 0 * targets - 1)
    yield lambda: model.gradients(tokens.astype(float), targets)
    yield lambda: Gpt(TINY, backend("numpy"), "float8")
    yield lambda: GptConfig(heads=5)
    yield lambda: GptConfig(layers=0)


def test_float16_is_refused_with_the_cure() -> None:
    """There is no loss scaling, without which its gradients would silently become 0."""
    with pytest.raises(ArrayError, match="bfloat16, as small") as caught:
        Gpt(TINY, backend("numpy"), "float16")
    assert (caught.value.got, caught.value.allowed) == ("float16", "bfloat16, float32, float64")


def test_refusals() -> None:
    for call in _refusals():
        with pytest.raises(ArrayError) as caught:
            call()
        assert caught.value.where
