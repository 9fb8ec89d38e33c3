"""``burstproof train``: train a small GPT on the characters of a text and show how the loss falls."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from typing import Any

from burstproof.cli.progress import task
from burstproof.errors import BackendUnavailableError, ExitCode
from burstproof.tensor.array.backend import backend
from burstproof.tensor.array.protocol import Backend
from burstproof.tensor.gpt.config import GptConfig
from burstproof.tensor.gpt.model import Gpt
from burstproof.tensor.gpt.training import Corpus, held_out_loss, read_corpus, sample_corpus, train
from burstproof.tensor.ops.adamw import AdamW

BACKENDS = {"auto": None, "cpu": "numpy", "cuda": "cupy"}
"""Where it trains, as the command line names it, and the tensor backend."""

_SHOWN = 20


def train_text(options: argparse.Namespace) -> ExitCode:
    """Train and print the losses.

    Raises
    ------
    InputError
        The text cannot be read or is too short.
    ArrayError
        Sizes that do not fit.
    BackendUnavailableError
        No such device.
    """
    corpus = sample_corpus() if options.text is None else read_corpus(options.text)
    corpus.check(options.length)
    place = _place(options)
    precision = options.precision or ("float32" if place.device is None else "bfloat16")
    config = GptConfig(options.layers, options.heads, options.width, options.length, len(corpus.alphabet))
    model = Gpt(config, place, precision, options.seed)
    losses, seconds = _losses(model, corpus, options)
    document = {
        "text": corpus.name,
        "characters": len(corpus.tokens),
        "alphabet": len(corpus.alphabet),
        "parameters": config.parameter_count,
        "backend": "cpu" if place.device is None else f"cuda {place.device}",
        "precision": precision,
        "activation_bytes": model.activation_bytes,
        "losses": losses,
        "held_out_loss": held_out_loss(model, corpus, options.length),
        "seconds": seconds,
        "tokens_per_second": options.steps * options.batch * options.length / seconds,
    }
    print(json.dumps(document, indent=1) if options.json else in_words(document))
    return ExitCode.PASS


def _place(options: argparse.Namespace) -> Backend:
    try:
        return backend(BACKENDS[options.backend], options.device)
    except BackendUnavailableError as error:
        raise BackendUnavailableError(
            error.problem,
            where="--backend",
            got=error.got,
            allowed=error.allowed,
            cure="Use --backend cpu, or see burstproof info for what keeps CUDA from starting",
        ) from error


def _losses(model: Gpt, corpus: Corpus, options: argparse.Namespace) -> tuple[list[float], float]:
    start = time.perf_counter()
    steps = train(
        model,
        corpus,
        AdamW(rate=options.rate),
        steps=options.steps,
        rows=options.batch,
        length=options.length,
        seed=options.seed,
    )
    losses: list[float] = []
    try:
        with task("training", options.steps, shown=not options.json) as bar:
            for loss in steps:
                losses.append(loss)
                bar.advance(1)
    except KeyboardInterrupt:
        if losses and not options.json:
            print(*_curve(losses), f"{len(losses)} of {options.steps} steps were done", sep="\n")
        raise
    return losses, time.perf_counter() - start


def in_words(document: dict[str, Any]) -> str:
    """A run as text: what was trained, losses as bars, and the speed."""
    lines = [
        f"{document['parameters']} parameters on {document['text']} ({document['characters']} characters, "
        f"{document['alphabet']} different) on {document['backend']}, {document['precision']}",
        *_curve(document["losses"]),
        f"held out: {document['held_out_loss']:.3f}; {document['seconds']:.1f} s, "
        f"{document['tokens_per_second']:.0f} characters/s, activations {document['activation_bytes'] / 1e6:.1f} MB",
    ]
    return "\n".join(lines)


def _curve(losses: Sequence[float]) -> list[str]:
    every = max(1, len(losses) // _SHOWN)
    marked = sorted({*range(0, len(losses), every), len(losses) - 1})
    bars = (f"{step + 1:5d}  {losses[step]:6.3f}  {'#' * round(15 * losses[step])}" for step in marked)
    return ["step   loss (nats per character)", *bars]
