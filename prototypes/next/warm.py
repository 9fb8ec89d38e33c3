import subprocess, sys, time
from concurrent.futures import ThreadPoolExecutor
WANTED = sys.argv[1].split(",")
if len(sys.argv) > 2:
    from suites.support.bench.rows import KIND_ROWS, CUDA_ROWS, Row
    from suites.support.bench.cuda_bench import GENERAL
    from burstproof.engine.cpu.engine import CpuEngine
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.options import CudaOptions, EngineOptions
    from burstproof.engine.state import Record
    rows = {r.slug: r for r in KIND_ROWS} | {"uniform-100K": Row(100_000, 0.01), "uniform-1M": Row(1_000_000, 0.01)}
    row = rows[sys.argv[2]]
    told = EngineOptions(cuda=CudaOptions(firing_rate=row.firing_rate))
    network = None if row.generated else row.network()
    engine = CudaEngine.from_spec(row.spec, told, None) if row.generated else CudaEngine.create(network, told)
    engine.run(3, row.start); engine.step(); engine.run(60, record=Record.NONE); engine.run(20, record=Record.COUNTS); engine.run(20, record=Record.FIRED)
    engine.close()
    if network is not None:
        c = CpuEngine.create(network, GENERAL); c.run(3, row.start); c.close()
    sys.exit(0)
def one(s):
    t = time.time()
    try: p = subprocess.run([sys.executable, __file__, "x", s], capture_output=True, text=True, timeout=100); rc = p.returncode, p.stderr[-200:] if p.returncode else ""
    except subprocess.TimeoutExpired: rc = "late"
    print("warm", s, rc, round(time.time() - t, 1), flush=True)
with ThreadPoolExecutor(10) as a: list(a.map(one, WANTED))
