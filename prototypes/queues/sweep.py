"""One kind of network with queues per owner under chosen constants: what it computes, as a digest, and its time.

``python prototypes/queues/sweep.py KIND MILLIONS WAY [NAME=NUMBER ...]``: ``WAY`` is ``queues``, ``none`` or ``own``
(what the plan chooses); names are constants of ``plan.queues`` and ``kernels.queues``. Lines of one network must have
one digest, whatever the way.
"""

import hashlib
import sys
import time

import numpy as np

import burstproof.engine.cuda.plan.queues as plan

CHECKED, TIMED = 24, 200
kind, millions, way = sys.argv[1], int(sys.argv[2]), sys.argv[3]
chosen = {name: int(number) for name, number in (word.split("=") for word in sys.argv[4:])}
for name, number in chosen.items():
    if hasattr(plan, name):  # before the kernels are imported, which take some of them over
        setattr(plan, name, number)
if way != "own":
    plan._pays = lambda variant, sizes: way == "queues"

import burstproof.engine.cuda.kernels.queues as kernels  # noqa: E402
from burstproof.engine.cuda.engine import CudaEngine  # noqa: E402
from burstproof.engine.options import EngineOptions  # noqa: E402
from burstproof.engine.state import Record  # noqa: E402
from suites.support.bench.rows import Row  # noqa: E402

for name, number in chosen.items():
    if hasattr(kernels, name):
        setattr(kernels, name, number)
row = Row(millions * 1_000_000, 0.01, generated=True, kind=kind)
with CudaEngine.from_spec(row.spec, EngineOptions()) as engine:
    recording = engine.run(CHECKED, row.start, Record.FIRED)
    digest, state = hashlib.sha256(recording.fired_ids.tobytes()), engine.state()
    for column in (state.membrane_potentials, state.refractory_countdowns, state.consecutive_fire_counts):
        digest.update(column.tobytes())
    engine.run(TIMED, record=Record.NONE)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        engine.run(TIMED, record=Record.NONE)
        times.append((time.perf_counter() - began) / TIMED * 1e6)
    print(f"{kind} {millions} M {way} {' '.join(sys.argv[4:])}: {np.median(times):.1f} us, {digest.hexdigest()[:12]}")
    print(f"    {engine.devices.choices}", flush=True)
