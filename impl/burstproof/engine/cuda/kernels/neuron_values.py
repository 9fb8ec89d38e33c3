"""Parameters of a neuron: columns, numbers where all neurons share one value, or places in the neuron's record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Ids
from burstproof.engine.cuda.plan.columns import PARAMETERS
from burstproof.engine.cuda.plan.variant import Variant


def make_value(variant: Variant, name: str) -> Callable[..., Any]:
    """``value(parameter, neuron)``: parameter ``name`` of a neuron; one that is the same for all is a number."""

    def common(parameter: np.generic, neuron: np.uint32) -> Any:
        return parameter

    def own(parameter: npt.NDArray[Any], neuron: np.uint32) -> Any:
        return parameter[neuron]

    if name in variant.record.places:
        return _make_recorded(variant, name)
    return cuda.jit(device=True)(common if name in variant.uniform else own)  # type: ignore[no-any-return]


def _make_recorded(variant: Variant, name: str) -> Callable[..., Any]:
    """``value(records, neuron)`` of a parameter that lies in records."""
    place, words = variant.record.places[name], np.uint64(variant.record.words)
    word, shift, mask = np.uint64(place.word), np.uint32(place.shift), np.uint32((1 << place.bits) - 1)

    def real(records: Ids, neuron: np.uint32) -> Any:
        return records[np.uint64(np.uint64(neuron) * words + word)].view(np.float32)

    def number(records: Ids, neuron: np.uint32) -> Any:
        return np.int32(np.uint32(records[np.uint64(np.uint64(neuron) * words + word)] >> shift) & mask)

    return cuda.jit(device=True)(real if PARAMETERS[name].kind == "f" else number)  # type: ignore[no-any-return]
