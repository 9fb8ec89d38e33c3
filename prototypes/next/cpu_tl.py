import sys,time,os
import numpy as np
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import EngineOptions, CpuOptions
from burstproof.engine.state import Record
from suites.support.bench.rows import KIND_ROWS, Row
n=int(sys.argv[1]); counts=[int(x) for x in sys.argv[2].split(',')]; kind=sys.argv[3] if len(sys.argv)>3 else 'uniform'
row=Row(n,0.01,checked_bursts=12,kind=kind); net=row.network()
for t in counts:
    e=CpuEngine.create(net, EngineOptions(cpu=CpuOptions(t))); e.run(max(row.start)+2,row.start); e.run(40,record=Record.NONE)
    team=next((v for v in vars(e).values() if type(v).__name__=='Team'),None)
    if team is not None:
        c=team._shared.counters; c[:,2:]=0
    us=[]
    for _ in range(20):
        a=time.perf_counter(); e.run(20,record=Record.NONE); us.append((time.perf_counter()-a)/20*1e3)
    us.sort()
    print(kind,n,'threads',t,{k:os.environ.get(k) for k in('BP_F','BP_PW','BP_A')},'ms min %.3f med %.3f max %.3f'%(us[0],us[10],us[-1]), '' if team is None else 'recall' if team._memory.recall is not None else 'queues', flush=True)
    if team is not None:
        m=c[:,2:8]/400/2.1e6
        print('   '+'; '.join('%s mean %.3f min %.3f max %.3f'%(name,col.mean(),col.min(),col.max()) for name,col in zip(('(queue barrier)','advance','barrier1','gather','queue','(collect)'),m.T)),flush=True)
    e.close()
