import os,sys,time,zlib
import numpy as np
REG=os.environ.get("REG","")
from burstproof.engine.cuda.plan import variant as V, block_size as B
from burstproof.engine.cuda.plan.shard_variant import ShardVariant as S
from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.state import Record
from suites.support.bench.rows import KIND_ROWS, Row
base_shape=V.fused_shape; base_regs=S.registers; base_cols=B.FusedShape.for_columns
cur={"shape":None,"reg":None}
V.fused_shape=lambda asked,n: B.FusedShape(*cur["shape"]) if cur["shape"] else base_shape(asked,n)
B.FusedShape.for_columns=lambda self,c: self if cur["shape"] else base_cols(self,c)
S.registers=property(lambda s: cur["reg"] if cur["reg"] and s.queues is None else base_regs.fget(s))
rows={r.slug:r for r in KIND_ROWS}|{"uniform-1M":Row(1_000_000,0.01,generated=True),"uniform-500K":Row(500_000,0.01),"uniform-2M":Row(2_000_000,0.01,generated=True)}
shapes=[tuple(map(int,x.split('x'))) for x in sys.argv[2].split(',')]
for slug in sys.argv[1].split(','):
    row=rows[slug]; told=EngineOptions(cuda=CudaOptions(firing_rate=row.firing_rate))
    engines={}; crc={}
    for sh in [None]+shapes:
        cur["shape"]=None if sh is None else (sh[0],sh[1],bool(sh[2]) if len(sh)>2 else True); cur["reg"]=None if sh is None or len(sh)<4 else sh[3]
        try:
            net=None if row.generated else row.network()
            e=CudaEngine.from_spec(row.spec,told,None) if row.generated else CudaEngine.create(net,told)
            e.run(max(3,row.checked_bursts),row.start); e.run(60,record=Record.NONE)
            s=e.state(); crc[sh]=zlib.crc32(np.ascontiguousarray(s.membrane_potentials).tobytes())
            engines[sh]=e
        except Exception as x:
            print(slug,sh,'failed',repr(x)[:300],flush=True)
    us={k:[] for k in engines}
    for _ in range(6):
        for k,e in engines.items():
            e.run(64,record=Record.NONE)
            t=time.perf_counter(); e.run(2000,record=Record.NONE); us[k].append((time.perf_counter()-t)/2000*1e6)
    for k in engines: print(slug,k,'us',round(sorted(us[k])[2],2),'min',round(min(us[k]),2),'same' if crc[k]==crc[None] else 'DIFFERENT',flush=True)
    for e in engines.values(): e.close()
