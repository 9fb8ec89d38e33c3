import sys,time,collections
import torch
from torch.profiler import profile, ProfilerActivity
from burstproof.config import MultiGpu
from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.state import Record
from suites.support.shards.kind_rows import kind_row, share_of
for kind in sys.argv[1].split(','):
    for devices in (1,2):
        row=kind_row(kind,20_000_000); row=share_of(row,2) if devices==1 else row
        choice=ShardingChoice(tuple(range(devices)),MultiGpu().sharding_strategy) if devices>1 else None
        e=CudaEngine.from_spec(row.spec,EngineOptions(cuda=CudaOptions(firing_rate=row.firing_rate)),choice)
        e.run(max(3,row.checked_bursts),row.start); e.run(60,record=Record.NONE)
        us=[]
        for _ in range(5):
            t=time.perf_counter(); e.run(300,record=Record.NONE); us.append((time.perf_counter()-t)/300*1e6)
        print(kind,devices,'us a burst',[round(u,1) for u in us],e.launch if hasattr(e,'launch') else '',flush=True)
        with profile(activities=[ProfilerActivity.CUDA]) as p:
            e.run(128,record=Record.NONE)
        ev=[x for x in p.events() if x.device_type==torch.autograd.DeviceType.CUDA]
        d=collections.defaultdict(list)
        for x in ev: d[(x.device_index,x.name[:60])].append((x.time_range.start,x.time_range.end))
        for k,v in sorted(d.items()):
            dur=sorted(b-a for a,b in v); print('   ',k,len(v),'med %.1f min %.1f max %.1f'%(dur[len(dur)//2],dur[0],dur[-1]),flush=True)
        byd=collections.defaultdict(list)
        for x in ev: byd[x.device_index].append((x.time_range.start,x.time_range.end,x.name[:30]))
        for k,v in byd.items():
            v.sort(); mid=len(v)//2
            print('   dev',k,[(round(a-v[mid][0],1),round(b-v[mid][0],1),n[-18:]) for a,b,n in v[mid:mid+7]],flush=True)
        e.close()
