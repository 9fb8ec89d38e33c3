"""Run under ``mpiexec -n 2``: rank 0 polls for work that never ends, since rank 1 does not come.

``python -m suites.support.shards.lost_rank_check TIMEOUT_S``
"""

from __future__ import annotations

import sys
import time

from burstproof.engine.cluster.mpi import MpiExchange
from burstproof.engine.cluster.rank_nccl import poll

_LONG_S = 600.0


def main(timeout_s: float) -> None:
    """Wait as a rank waits for NCCL, until the watch ends the run."""
    exchange = MpiExchange(timeout_s)
    exchange.total(0)
    if exchange.rank == 1:
        time.sleep(_LONG_S)
    with exchange.waiting("the exchange of what fired"):
        poll(lambda: False, lambda: None)


if __name__ == "__main__":
    main(float(sys.argv[1]))
