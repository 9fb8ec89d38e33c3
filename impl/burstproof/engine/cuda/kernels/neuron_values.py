"""Parameters of a neuron: columns, or numbers where all neurons share one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.plan.variant import Variant


def make_value(variant: Variant, name: str) -> Callable[..., Any]:
    """``value(parameter, neuron)``: parameter ``name`` of a neuron; one that is the same for all is a number."""

    def common(parameter: np.generic, neuron: np.uint32) -> Any:
        return parameter

    def own(parameter: npt.NDArray[Any], neuron: np.uint32) -> Any:
        return parameter[neuron]

    return cuda.jit(device=True)(common if name in variant.uniform else own)  # type: ignore[no-any-return]
