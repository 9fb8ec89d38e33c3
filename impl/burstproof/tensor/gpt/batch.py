"""A batch of tokens for a GPT, checked on the host and uploaded at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from burstproof.errors import ArrayError
from burstproof.tensor.array.protocol import Array, Backend
from burstproof.tensor.gpt.config import GptConfig


@dataclass(frozen=True)
class Batch:
    """Tokens and targets where the model lives.

    Attributes
    ----------
    tokens : array, (sequences, length), int32
    targets : array, (tokens,), int32
    order : two arrays, (tokens,), int32
        Rows sorted by token, equal tokens in ascending order; the tokens in that order.
    counted : int
        Targets that are not negative.
    """

    tokens: Array
    targets: Array
    order: tuple[Array, Array]
    counted: int


def placed_batch(config: GptConfig, tokens: npt.ArrayLike, targets: npt.ArrayLike, place: Backend) -> Batch:
    """Tokens and targets that ``config`` takes, uploaded to ``place`` in one array.

    Parameters
    ----------
    config : GptConfig
    tokens, targets : array_like of int, (batch, length)
        Negative targets do not count.
    place : Backend

    Raises
    ------
    ArrayError
        Shapes that differ, sequences longer than the context, tokens outside the vocabulary, no target that counts.
    """
    given, wanted = np.asarray(tokens), np.asarray(targets)
    allowed = f"(batch, length up to {config.context}), integers, targets alike"
    if given.ndim != 2 or not given.size or given.shape[1] > config.context or wanted.shape != given.shape:
        raise ArrayError("tokens do not fit the model", where="Gpt", got=(given.shape, wanted.shape), allowed=allowed)
    if given.dtype.kind not in "iu" or wanted.dtype.kind not in "iu":
        raise ArrayError("tokens are integers", where="Gpt", got=(given.dtype, wanted.dtype), allowed=allowed)
    most = config.vocabulary - 1
    if given.min() < 0 or max(int(given.max()), int(wanted.max())) > most:
        raise ArrayError("a token is not in the vocabulary", where="Gpt", allowed=f"0 to {most}")
    counted = int((wanted >= 0).sum())
    if not counted:
        raise ArrayError("no target counts", where="Gpt", cure="Give at least one target that is not negative")
    flat = given.ravel().astype(np.int32)
    keys = flat.astype(np.uint16) if most < 1 << 16 else flat  # 16 bits are sorted by their digits, which is faster
    order = np.argsort(keys, kind="stable")
    packed = place.from_host(np.stack([flat, wanted.ravel().astype(np.int32), order.astype(np.int32), flat[order]]))
    return Batch(packed[0].reshape(given.shape), packed[1], (packed[2], packed[3]), counted)
