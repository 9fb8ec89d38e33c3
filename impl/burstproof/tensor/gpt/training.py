"""Training a small GPT on the characters of a text, from the first weight to the last step, on either backend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt

from burstproof.errors import InputError
from burstproof.regular_file import check_regular
from burstproof.tensor.gpt.model import Gpt
from burstproof.tensor.ops.adamw import AdamW

HELD_OUT = 0.1
"""Part of a text, at its end, that is not trained on."""

Batch = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Corpus:
    """A text as tokens: one per character, numbered in the order of their code points.

    Attributes
    ----------
    name : str
    text : str
    """

    name: str
    text: str

    @cached_property
    def alphabet(self) -> str:
        """The different characters; a character's place is its token."""
        return "".join(sorted(set(self.text)))

    @cached_property
    def tokens(self) -> npt.NDArray[np.int64]:
        """The whole text, (characters,)."""
        places = {character: token for token, character in enumerate(self.alphabet)}
        return np.array([places[character] for character in self.text], np.int64)

    def batch(self, random: np.random.Generator, rows: int, length: int) -> Batch:
        """Random passages of the training part and, for each character, the one that follows; (rows, length) each."""
        return self._passages(random.integers(0, self._trained - length, rows), length)

    def held_out(self, length: int) -> Batch:
        """The end of the text in passages side by side, (passages, length) each."""
        starts = np.arange(self._trained, len(self.tokens) - length, length)
        return self._passages(starts, length)

    def check(self, length: int) -> None:
        """Refuse a text that is too short for passages of ``length``.

        Raises
        ------
        InputError
            The training part or the held-out part holds no passage, or there is only one character.
        """
        least = int((length + 2) / HELD_OUT) + 1
        if len(self.tokens) >= least and len(self.alphabet) < 2:
            raise InputError(
                "the text has nothing to learn in it",
                where=self.name,
                got=f"{len(self.tokens)} times the character {self.alphabet[0]!r}",
                allowed="at least two different characters",
                cure="Give another text",
            )
        if len(self.tokens) < least:
            raise InputError(
                "the text is too short to train on",
                where=self.name,
                got=f"{len(self.tokens)} characters, {len(self.alphabet)} different ones",
                allowed=f"at least {least} characters for passages of {length}",
                cure="Give a longer text or a smaller --length",
            )

    @property
    def _trained(self) -> int:
        return int(len(self.tokens) * (1.0 - HELD_OUT))

    def _passages(self, starts: npt.NDArray[np.int64], length: int) -> Batch:
        places = starts[:, None] + np.arange(length)
        return self.tokens[places], self.tokens[places + 1]


def sample_corpus() -> Corpus:
    """The short story that comes with the package, written for it."""
    text = files("burstproof.tensor.gpt").joinpath("sample_text.txt").read_text(encoding="utf-8")
    return Corpus("sample_text.txt", text)


def read_corpus(path: Path) -> Corpus:
    """A text file, UTF-8.

    Raises
    ------
    InputError
        It cannot be read or is not text.
    """
    try:
        check_regular(path)
        return Corpus(path.name, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"the text cannot be read: {why}", where=str(path), cure="Give a UTF-8 text file") from error


def train(
    model: Gpt, corpus: Corpus, optimiser: AdamW, *, steps: int, rows: int, length: int, seed: int = 0
) -> Iterator[float]:
    """Train ``model`` on random passages; the loss of each step, in nats per character, before its update.

    Parameters
    ----------
    model : Gpt
        Its vocabulary holds the corpus's alphabet, its context the passages.
    corpus : Corpus
    optimiser : AdamW
        The rate grows over the first tenth of the steps and falls to a tenth of its value at the end, as a cosine.
    steps, rows, length : int
        Steps; passages per step; characters per passage.
    seed : int
        Of the choice of passages.

    Raises
    ------
    InputError
        The text is too short.
    ArrayError
        The model does not hold the alphabet or the passages.
    """
    corpus.check(length)
    random = np.random.default_rng(seed)
    for number in range(steps):
        yield float(model.step(*corpus.batch(random, rows, length), _scheduled(optimiser, number, steps)))


def held_out_loss(model: Gpt, corpus: Corpus, length: int) -> float:
    """Mean loss on the part that was not trained on, nats per character."""
    return float(model.loss(*corpus.held_out(length)))


def _scheduled(optimiser: AdamW, number: int, steps: int) -> AdamW:
    """The optimiser of step ``number``: linear warm-up, then a cosine (Loshchilov and Hutter 2017) to a tenth."""
    warm = max(1, steps // 10)
    if number < warm:
        return replace(optimiser, rate=optimiser.rate * (number + 1) / warm)
    progress = (number - warm) / max(1, steps - warm)
    return replace(optimiser, rate=optimiser.rate * (0.55 + 0.45 * float(np.cos(np.pi * progress))))
