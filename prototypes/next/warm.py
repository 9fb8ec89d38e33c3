"""Compiles what stage 6 will ask for: a process a row, so many at a time."""
import subprocess, sys, time
from concurrent.futures import ThreadPoolExecutor
from suites.support.bench.rows import CUDA_ROWS, OTHER_ROWS, KIND_ROWS
rows = [r for r in dict.fromkeys((*KIND_ROWS, *CUDA_ROWS, *OTHER_ROWS)) if r.neurons <= 20_000_000]
import os
if os.environ.get("ONLY"): rows = [r for r in rows if r.kind in ("uniform", "weights", "inhibition") and r.neurons <= 5_000_000]
if len(sys.argv) > 2:
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.options import CudaOptions, EngineOptions
    from burstproof.engine.state import Record
    row = rows[int(sys.argv[2])]
    told = EngineOptions(cuda=CudaOptions(firing_rate=row.firing_rate))
    engine = CudaEngine.from_spec(row.spec, told, None) if row.generated else CudaEngine.create(row.network(), told)
    engine.run(3, row.start); engine.step(); engine.run(1, record=Record.NONE); engine.run(60, record=Record.NONE); engine.run(20, record=Record.COUNTS); engine.run(20, record=Record.FIRED)
    if row.neurons <= 5_000_000: engine.restore(engine.state())
    engine.close()
    sys.exit(0)
def one(i):
    t = time.time()
    try: p = subprocess.run([sys.executable, __file__, "row", str(i)], capture_output=True, text=True, timeout=150); rc = p.returncode; err = p.stderr[-200:] if rc else ""
    except subprocess.TimeoutExpired: rc, err = "late", ""
    print(rows[i].slug, rc, round(time.time() - t, 1), err.replace("\n", " "), flush=True)
t0 = time.time()
large = [i for i, r in enumerate(rows) if r.neurons > 5_000_000]; small = [i for i, r in enumerate(rows) if r.neurons <= 5_000_000]
with ThreadPoolExecutor(12) as a, ThreadPoolExecutor(3) as b:
    list(a.map(one, small)) if not large else [f.result() for f in [a.submit(one, i) for i in small] + [b.submit(one, i) for i in large]]
print("warm", round(time.time() - t0))
