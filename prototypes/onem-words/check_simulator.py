"""``simulator_check`` of the names given in three ways: as it is, as large networks are run, and with columns apart.

``NUMBA_ENABLE_CUDASIM=1 python -W ignore prototypes/onem-words/check_simulator.py NAMES``
"""

import sys
from contextlib import ExitStack
from unittest import mock

from suites.support.parity.simulator_check import main

AS_LARGE = {"block_size._SMALL": 0}
APART = {"tiles.fits_beside": lambda *_: False, "tiles.indexed_beside": lambda *_: False}

if __name__ == "__main__":
    worst = 0
    for changed in ({}, AS_LARGE, APART):
        with ExitStack() as stack:
            for name, value in changed.items():
                stack.enter_context(mock.patch(f"burstproof.engine.cuda.plan.{name}", value))
            worst = max(worst, main(sys.argv[1:]))
    sys.exit(worst)
