import time,sys,cProfile,pstats
from burstproof.engine.cluster.mpi import MpiExchange
from suites.support.shards import rank_timing as R
from suites.support.shards.cpu_shards import sharded
from burstproof.engine.options import EngineOptions
from burstproof.network.synthetic.build import synthesize, initial_stimulus
from burstproof.engine.state import Stimulus
n=int(sys.argv[1])
ex=MpiExchange(60.0)
spec=R._spec(n)
e=sharded("round_robin",ex.ranks,ex)(synthesize(spec),EngineOptions())
e.run(20,{1:Stimulus(forced=initial_stimulus(spec))})
for _ in range(3):
    t=time.perf_counter(); e.run(200); dt=(time.perf_counter()-t)/200*1e6
    if ex.rank==0: print('us/burst',dt)
p=cProfile.Profile(); p.enable(); e.run(400); p.disable()
if ex.rank==0: pstats.Stats(p).sort_stats('tottime').print_stats(16)
ex.close()
