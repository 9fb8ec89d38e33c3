"""``simulator_check`` of the names given, once as it is and once with small networks burst by burst as large ones are.

``NUMBA_ENABLE_CUDASIM=1 python -W ignore prototypes/onem-words/check_simulator.py NAMES``
"""

import sys
from unittest import mock

from suites.support.parity.simulator_check import main

AS_LARGE = mock.patch("burstproof.engine.cuda.plan.block_size._SMALL", 0)

if __name__ == "__main__":
    as_it_is = main(sys.argv[1:])
    with AS_LARGE:
        sys.exit(max(as_it_is, main(sys.argv[1:])))
