"""The only module that imports ``numba.cuda``; all others import ``cuda`` from here.

Importing this module imports numba-cuda. So import it inside the function that needs it, or at the top of a module that
is itself imported late. Kernel modules need ``cuda`` as a module global, because the CUDA simulator replaces it there.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import numpy as np

from burstproof.errors import BackendUnavailableError


def _restore_row_stack() -> None:
    """Restore ``np.row_stack``, which numpy 2.5 removed and numba-cuda 0.30 needs to compile."""
    if not hasattr(np, "row_stack"):
        vars(np)["row_stack"] = np.vstack


def _import_cuda() -> Any:
    if importlib.util.find_spec("numba_cuda") is None:
        raise BackendUnavailableError(
            "the package numba-cuda is not installed",
            where="backend cuda",
            allowed="numba-cuda 0.30.4",
            cure="In the folder of the clone: pip install '.[cuda12]' or '.[cuda13]', whichever the driver supports",
        )
    _restore_row_stack()
    from numba import cuda

    if "numba_cuda" not in str(cuda.__file__):
        raise BackendUnavailableError(
            "numba.cuda is the old copy inside numba, not numba-cuda",
            where="backend cuda",
            got=os.path.basename(os.path.dirname(str(cuda.__file__))),
            cure="Reinstall numba-cuda, so that its import redirector is active",
        )
    from numba.cuda.core import config

    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # grids of one thread are intended
    return cuda


cuda: Any = _import_cuda()


def _is_simulated() -> bool:
    from numba.core import config

    return bool(config.ENABLE_CUDASIM)


SIMULATED: bool = _is_simulated()
"""Whether the CUDA simulator replaces a device; set by ``NUMBA_ENABLE_CUDASIM`` at import."""
