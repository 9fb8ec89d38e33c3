"""Compiles what stage 7's kinds will ask for: a process per engine; nothing but the kernels that make rows runs."""
import os, subprocess, sys, time
from concurrent.futures import ThreadPoolExecutor
from burstproof.config import MultiGpu
from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
from burstproof.engine.sharded.partition import make_partition
from suites.support.shards.kind_rows import KINDS, LARGE, SMALL, SMALL_KINDS, kind_row, share_of
G = int(os.environ.get("GPUS", "4"))
jobs = []
for neurons, kinds in (((LARGE, KINDS),) if not os.environ.get("ONLY_SMALL") else ()) + ((SMALL, (*KINDS, *SMALL_KINDS)),):
    for kind in kinds:
        for d in (4, 2):
            if d > G: continue
            jobs += [(kind_row(kind, neurons), d), (share_of(kind_row(kind, neurons), d), 1)]
jobs.sort(key=lambda j: -j[0].neurons)
if len(sys.argv) > 1:
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.options import CudaOptions, EngineOptions
    row, d = jobs[int(sys.argv[1])]
    choice = ShardingChoice(tuple(range(d)), MultiGpu().sharding_strategy) if d > 1 else None
    told = EngineOptions(cuda=CudaOptions(firing_rate=row.firing_rate))
    if row.generated:
        e = CudaEngine.from_spec(row.spec, told, choice)
    else:
        net = row.network()
        e = CudaEngine.create(net, told, *(() if choice is None else (make_partition(net, d, choice.strategy), choice)))
    e.close(); sys.exit(0)
def one(i):
    t = time.time()
    shift = str(i % G) if jobs[i][1] == 1 else ",".join(map(str, range(G)))
    try:
        p = subprocess.run([sys.executable, __file__, str(i)], capture_output=True, text=True, timeout=200, env=dict(os.environ, CUDA_VISIBLE_DEVICES=shift))
        rc, err = p.returncode, p.stderr[-200:] if p.returncode else ""
    except subprocess.TimeoutExpired: rc, err = "late", ""
    print(jobs[i][0].slug, jobs[i][1], rc, round(time.time() - t, 1), err.replace("\n", " "), flush=True)
t0 = time.time()
with ThreadPoolExecutor(int(os.environ.get("AT_ONCE", "14"))) as pool:
    list(pool.map(one, range(len(jobs))))
print("warm", round(time.time() - t0))
