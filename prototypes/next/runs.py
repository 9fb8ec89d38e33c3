"""us per call of run(n) in this tree: 100 K and 1 M uniform, weights; printed as a line each."""
import statistics as st, sys, time
import numpy as np
from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Record, Stimulus
from burstproof.network.synthetic.kinds import seeded_network
import hashlib
eng = []
for kind, n in (("uniform", 100_000), ("uniform", 1_000_000), ("delays", 100_000)):
    s = seeded_network(kind, n, 100, 0.01, 3)
    e = CudaEngine.from_spec(s.spec, EngineOptions(), None) if s.plain else CudaEngine.create(s.network(), EngineOptions())
    e.run(max(s.start()) + 5, {b: Stimulus(forced=i) for b, i in s.start().items()}); e.run(300, record=Record.NONE)
    eng.append((kind, n, e))
print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "quit": break
    out = []
    for kind, n, e in eng:
        for b in (1, 2, 5, 10, 30, 100, 127):
            for rec in (Record.NONE, Record.FIRED):
                for _ in range(5): e.run(b, record=rec)
                ts = []
                for _ in range(60):
                    t = time.perf_counter(); e.run(b, record=rec); ts.append(time.perf_counter() - t)
                out.append(f"{st.median(ts)*1e6:.1f}")
        s = e.state(); out.append(hashlib.sha256(np.ascontiguousarray(s.membrane_potentials).tobytes()).hexdigest()[:6])
    print(" ".join(out), flush=True)
