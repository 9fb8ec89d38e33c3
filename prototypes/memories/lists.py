"""Fired lists of the two networks of stage 6 with memories, for `host_loop.py`: ``lists.py FOLDER``."""

import sys
import time

import numpy as np

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.state import Record
from burstproof.network.features import FIRST_MEMORY_ID
from suites.support.bench.feature_networks import with_memories
from suites.support.bench.rows import Row

BURSTS = 2400
row = Row(100_000, 0.01)
network = row.network()
for associative in (False, True):
    begun = time.time()
    one = with_memories(network, 1000, associative)
    with CpuEngine.create(one, EngineOptions(cpu=CpuOptions(threads=1))) as engine:
        done = engine.run(BURSTS, row.start, Record.FIRED)
    keep = done.fired_ids < FIRST_MEMORY_ID
    bursts = np.repeat(np.arange(BURSTS), done.fired_counts)
    np.savez(
        f"{sys.argv[1]}/lists{int(associative)}.npz",
        ids=done.fired_ids[keep],
        potentials=done.fired_potentials[keep],
        counts=np.bincount(bursts[keep], minlength=BURSTS),
    )
    print(associative, done.fired_counts.mean(), np.bincount(bursts[keep]).mean(), time.time() - begun)
