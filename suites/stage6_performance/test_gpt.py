"""A GPT-2 training step on a GPU beside PyTorch's, and a small GPT trained on the package's text (TO-9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from burstproof.tensor.array.backend import backend
from burstproof.tensor.gpt.config import GptConfig
from burstproof.tensor.gpt.model import Gpt
from burstproof.tensor.gpt.training import held_out_loss, sample_corpus, train
from burstproof.tensor.ops.adamw import AdamW
from stages.measuring import Measure
from suites.support.bench.card_limits import Card
from suites.support.bench.ceilings import least_ms
from suites.support.bench.steady import Timed
from suites.support.bench.training_bench import HAS_TORCH, NO_TORCH, free_memory, memory_left, step_time

pytestmark = [pytest.mark.requirement("TO-9", "ST-6"), pytest.mark.gate("gpu")]

ROWS, LENGTH = 8, 1024
SIZES = GptConfig(vocabulary=50_304)
"""GPT-2 124 M with the padded vocabulary as its vocabulary, so that both sides compute the same loss."""

CONSTANTS = AdamW(rate=1e-3)
PARAMETERS = 124_475_904
WHERE = {"backend": "cuda", "gpus": 1, "parameters": PARAMETERS, "batch": ROWS, "length": LENGTH, "dtype": "bfloat16"}
MULTIPLIED = PARAMETERS - LENGTH * 768
"""Weights that each token is multiplied with: all but the positions; the output layer is that of the tokens."""

COMPARED_STEPS = 6
ALLOWED = 2e-3
"""Greatest relative difference of a loss: activations here are bfloat16 throughout, PyTorch keeps some in float32."""


@pytest.fixture(scope="module")
def batch() -> tuple[Any, Any]:
    tokens = np.random.default_rng(0).integers(0, 2000, (ROWS, LENGTH + 1))
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


@dataclass(frozen=True)
class Ours:
    """What the package's step took: first losses, times, memory taken from the driver, first weights."""

    losses: list[float]
    step: Timed
    gradients: Timed
    forward: Timed
    memory: int
    activations: int
    weights: dict[str, Any]


@pytest.fixture(scope="module")
def ours(card: Card, batch: tuple[Any, Any]) -> Ours:
    before = free_memory()
    model = Gpt(SIZES, backend("cupy", 0), "bfloat16", seed=0)
    weights = model.parameters.on_host()
    losses = [float(model.step(*batch, CONSTANTS)) for _ in range(COMPARED_STEPS)]
    step = step_time(card, lambda: model.step(*batch, CONSTANTS))
    memory = before - memory_left()
    gradients = step_time(card, lambda: model.gradients(*batch))
    forward = step_time(card, lambda: model.loss(*batch))
    return Ours(losses, step, gradients, forward, memory, model.activation_bytes, weights)


@pytest.fixture
def where(card: Card) -> dict[str, Any]:
    return {**WHERE, "device": card.runtime.name}


@pytest.mark.measures(
    "gpt2.step",
    "gpt2.forward",
    "gpt2.backward",
    "gpt2.throughput",
    "gpt2.memory",
    "gpt2.activations",
    scope="burstproof",
    device=...,
    **WHERE,
)
def test_step(ours: Ours, where: dict[str, Any], measure: Measure) -> None:
    """The loss of repeated steps on one batch falls from that of a uniform guess; memory holds the activations."""
    assert ours.memory > ours.activations
    assert ours.losses[0] == pytest.approx(np.log(SIZES.vocabulary), rel=0.03)
    assert ours.losses == sorted(ours.losses, reverse=True)
    here = {**where, "scope": "burstproof"}
    for name, timed, passes in (("gpt2.step", ours.step, 3), ("gpt2.forward", ours.forward, 1)):
        least = least_ms(where["device"], 2.0 * passes * MULTIPLIED * ROWS * LENGTH, "fp16_tensor_tflops")
        timed.put(measure, name, "ms", here | least)
    ours.gradients.put(measure, "gpt2.backward", "ms", here, "the forward pass included")
    ours.step.put(measure, "gpt2.throughput", "tokens/s", here, convert=lambda ms: 1e3 * ROWS * LENGTH / ms)
    note = "all that is taken from the driver, what the pool keeps for the next step included"
    measure("gpt2.memory", ours.memory / 1e9, "GB", conditions=here, note=note)
    measure("gpt2.activations", ours.activations / 1e9, "GB", conditions=here, note="kept for the backward pass")


@pytest.mark.skipif(not HAS_TORCH, reason=NO_TORCH)
@pytest.mark.measures("gpt2.step_of_pytorch", "gpt2.memory_of_pytorch", scope="PyTorch eager", device=..., **WHERE)
@pytest.mark.measures("gpt2.speedup", "gpt2.memory_ratio", against="pytorch", device=..., steps=COMPARED_STEPS, **WHERE)
@pytest.mark.measures("gpt2.loss_difference", against="pytorch", device=...)
def test_step_beside_pytorch(
    card: Card, ours: Ours, batch: tuple[Any, Any], where: dict[str, Any], measure: Measure
) -> None:
    """PyTorch eager, bfloat16 autocast, its own attention and fused AdamW: same losses, then time and memory."""
    import torch

    from suites.support.bench import torch_gpt

    free_memory()
    torch.cuda.reset_peak_memory_stats()
    model = torch_gpt.make_model(SIZES, ours.weights)
    optimiser = torch_gpt.make_optimiser(model, CONSTANTS)
    given = [torch.from_numpy(array).cuda() for array in batch]
    losses = [float(torch_gpt.train_step(model, optimiser, *given)) for _ in range(COMPARED_STEPS)]
    assert ours.losses == pytest.approx(losses, rel=ALLOWED)
    other = step_time(card, lambda: torch_gpt.train_step(model, optimiser, *given))
    peak = int(torch.cuda.max_memory_allocated())
    there = {**where, "scope": "PyTorch eager", "version": torch.__version__}
    other.put(measure, "gpt2.step_of_pytorch", "ms", there, "bfloat16 autocast, its own attention, fused AdamW")
    measure("gpt2.memory_of_pytorch", peak / 1e9, "GB", conditions=there, note="most that its allocator handed out")
    against = {**where, "against": "pytorch", "steps": COMPARED_STEPS}
    speedup = other.samples.estimate / ours.step.samples.estimate
    measure("gpt2.speedup", speedup, "x", conditions=against, note=f"PyTorch {torch.__version__}, eager")
    note = "all that ours takes from the driver over what PyTorch's allocator handed out at most"
    measure("gpt2.memory_ratio", ours.memory / peak, "x", conditions=against, note=note)
    worst = max(abs(own / theirs - 1.0) for own, theirs in zip(ours.losses, losses, strict=True))
    measure("gpt2.loss_difference", worst, "1", conditions=against)


@pytest.mark.measures("training.loss", "training.held_out_loss", backend="cuda", dtype="bfloat16")
def test_a_small_gpt_learns_the_text(measure: Measure) -> None:
    """From fresh weights to a loss far below that of single characters; the curve stands in the report."""
    corpus = sample_corpus()
    steps, rows, length = 300, 32, 64
    config = GptConfig(4, 4, 128, length, len(corpus.alphabet))
    model = Gpt(config, backend("cupy", 0), "bfloat16", seed=0)
    losses = list(train(model, corpus, AdamW(rate=2e-3), steps=steps, rows=rows, length=length))
    conditions = {"backend": "cuda", "text": corpus.name, "dtype": "bfloat16", "parameters": config.parameter_count}
    conditions["steps"] = steps
    measure("training.loss", losses[-1], "1", samples=losses, conditions=conditions, note="nats per character, by step")
    held_out = held_out_loss(model, corpus, length)
    measure(
        "training.held_out_loss", held_out, "1", conditions=conditions, note="the text's last tenth, not trained on"
    )
    assert losses[0] == pytest.approx(np.log(len(corpus.alphabet)), rel=0.1)
    assert losses[-1] < 1.8
    assert held_out < 3.2
