"""A GPT-2 training step on a GPU beside PyTorch's, and a small GPT trained on the package's text (TO-9)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from burstproof.tensor.adamw import AdamW
from burstproof.tensor.backend import backend
from burstproof.tensor.gpt import Gpt
from burstproof.tensor.gpt_config import GptConfig
from burstproof.tensor.training import held_out_loss, sample_corpus, train
from stages.measuring import Measure
from suites.stage6_performance.card_limits import Card
from suites.stage6_performance.steady import Timed
from suites.stage6_performance.training_bench import HAS_TORCH, NO_TORCH, free_memory, step_time

pytestmark = [pytest.mark.requirement("TO-9", "ST-6"), pytest.mark.gate("gpu")]

ROWS, LENGTH = 8, 1024
SIZES = GptConfig(vocabulary=50_304)
"""GPT-2 124 M with the padded vocabulary as its vocabulary, so that both sides compute the same loss."""

CONSTANTS = AdamW(rate=1e-3)
WHERE = {"backend": "cuda", "gpus": 1, "parameters": 124_475_904, "batch": ROWS, "length": LENGTH, "dtype": "bfloat16"}
COMPARED_STEPS = 6
ALLOWED = 2e-3
"""Greatest relative difference of a loss: activations here are bfloat16 throughout, PyTorch keeps some in float32."""


@pytest.fixture(scope="module")
def batch() -> tuple[Any, Any]:
    tokens = np.random.default_rng(0).integers(0, 2000, (ROWS, LENGTH + 1))
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


@pytest.fixture(scope="module")
def ours(card: Card, batch: tuple[Any, Any]) -> tuple[list[float], Timed, int, dict[str, Any], int]:
    """Losses of the first steps, time of a step, memory taken from the driver, first weights, activation bytes."""
    before = free_memory()
    model = Gpt(SIZES, backend("cupy", 0), "bfloat16", seed=0)
    weights = model.parameters.on_host()
    losses = [model.step(*batch, CONSTANTS).value() for _ in range(COMPARED_STEPS)]
    timed = step_time(card, lambda: model.step(*batch, CONSTANTS))
    return losses, timed, before - free_memory(), weights, model.activation_bytes


def put_step(measure: Measure, timed: Timed, memory: int, **conditions: object) -> None:
    tokens = [1e3 * ROWS * LENGTH / value for value in timed.samples.values]
    measure(
        "gpt2.tokens",
        1e3 * ROWS * LENGTH / timed.samples.estimate,
        "tokens/s",
        samples=tokens,
        conditions={**WHERE, **conditions},
        telemetry=timed.telemetry,
        note=timed.how,
    )
    measure("gpt2.memory", memory / 1e9, "GB", conditions={**WHERE, **conditions}, note="weights to activations")


def test_step(ours: Any, measure: Measure) -> None:
    """The loss of repeated steps on one batch falls from that of a uniform guess."""
    losses, timed, memory, _, activations = ours
    assert losses[0] == pytest.approx(np.log(SIZES.vocabulary), rel=0.03)
    assert losses == sorted(losses, reverse=True)
    put_step(measure, timed, memory, scope="burstproof")
    measure("gpt2.activations", activations / 1e9, "GB", conditions=WHERE, note="kept for the backward pass")


@pytest.mark.skipif(not HAS_TORCH, reason=NO_TORCH)
def test_step_beside_pytorch(card: Card, ours: Any, batch: tuple[Any, Any], measure: Measure) -> None:
    """PyTorch eager, bfloat16 autocast, its own attention and fused AdamW: same losses, then time and memory."""
    import torch

    from suites.stage6_performance import torch_gpt

    losses, timed, memory, weights, _ = ours
    free_memory()
    torch.cuda.reset_peak_memory_stats()
    model = torch_gpt.make_model(SIZES, weights)
    optimiser = torch_gpt.make_optimiser(model, CONSTANTS)
    given = [torch.from_numpy(array).cuda() for array in batch]
    others = [float(torch_gpt.train_step(model, optimiser, *given)) for _ in range(COMPARED_STEPS)]
    assert losses == pytest.approx(others, rel=ALLOWED)
    other = step_time(card, lambda: torch_gpt.train_step(model, optimiser, *given))
    peak = int(torch.cuda.max_memory_allocated())
    put_step(measure, other, peak, scope="PyTorch eager", version=torch.__version__)
    note = f"PyTorch {torch.__version__} eager, bfloat16 autocast, fused AdamW"
    measure(
        "gpt2.speed_against_pytorch", other.samples.estimate / timed.samples.estimate, "x", conditions=WHERE, note=note
    )
    memory_note = "all that ours takes from the driver over what PyTorch's allocator handed out at most"
    measure("gpt2.memory_against_pytorch", memory / peak, "x", conditions=WHERE, note=memory_note)
    worst = max(abs(own / theirs - 1.0) for own, theirs in zip(losses, others, strict=True))
    measure("gpt2.loss_against_pytorch", worst, "1", conditions={**WHERE, "steps": COMPARED_STEPS})


def test_a_small_gpt_learns_the_text(measure: Measure) -> None:
    """From fresh weights to a loss far below that of single characters; the curve stands in the report."""
    corpus = sample_corpus()
    steps, rows, length = 300, 32, 64
    config = GptConfig(4, 4, 128, length, len(corpus.alphabet))
    model = Gpt(config, backend("cupy", 0), "bfloat16", seed=0)
    losses = list(train(model, corpus, AdamW(rate=2e-3), steps=steps, rows=rows, length=length))
    conditions = {"backend": "cuda", "text": corpus.name, "dtype": "bfloat16", "parameters": config.parameter_count}
    measure("training.loss", losses[-1], "1", samples=losses, conditions=conditions, note="nats per character, by step")
    held_out = held_out_loss(model, corpus, length)
    measure(
        "training.held_out_loss", held_out, "1", conditions=conditions, note="the text's last tenth, not trained on"
    )
    assert losses[0] == pytest.approx(np.log(len(corpus.alphabet)), rel=0.1)
    assert losses[-1] < 1.2
    assert held_out < 2.6
