import os, sys, time, subprocess, multiprocessing as mp
def spin(bar, q):
    bar.wait(); t=time.perf_counter(); n=0; x=1
    while time.perf_counter()-t<0.6:
        for _ in range(1000): x=x*3+1&0xffff
        n+=1
    q.put(n)
def engine(n, bar, q, cpu):
    if cpu is not None: os.sched_setaffinity(0,{cpu})
    from burstproof.engine.cpu.engine import CpuEngine
    from burstproof.engine.options import EngineOptions, CpuOptions
    from burstproof.engine.state import Record
    from suites.support.bench.rows import Row
    row=Row(n,0.01); e=CpuEngine.create(row.network(), EngineOptions(cpu=CpuOptions(1)))
    e.run(row.checked_bursts,row.start); e.run(20,record=Record.NONE)
    bar.wait(); us=[]
    t0=time.perf_counter()
    while time.perf_counter()-t0<1.2:
        t=time.perf_counter(); e.run(20,record=Record.NONE); us.append((time.perf_counter()-t)/20*1e3)
    q.put(sorted(us)[len(us)//2]); bar.wait()
def many(f, n, *a, cpus=None):
    bar=mp.Barrier(n); q=mp.Queue(); ps=[mp.Process(target=f,args=(*a,bar,q)+(((cpus[i] if cpus else None),) if f is engine else ())) for i in range(n)]
    [p.start() for p in ps]; got=[q.get() for _ in ps]; [p.join() for p in ps]; return got
def team(mask, threads, lengths=(20,200)):
    code=f"""
import os; os.sched_setaffinity(0,{mask!r})
import time
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import EngineOptions, CpuOptions
from burstproof.engine.state import Record
from suites.support.bench.rows import Row
row=Row(1_000_000,0.01); net=row.network(); out=[]
e=CpuEngine.create(net, EngineOptions(cpu=CpuOptions({threads}))); e.run(row.checked_bursts,row.start); e.run(40,record=Record.NONE)
for n in {lengths}:
    us=[]
    for _ in range(12 if n<100 else 4):
        t=time.perf_counter(); e.run(n,record=Record.NONE); us.append((time.perf_counter()-t)/n*1e3)
    us.sort(); out.append((n, round(us[0],3), round(us[len(us)//2],3)))
print('team', {threads}, 'mask', len({mask!r}), sorted({mask!r})[:4], out)
"""
    print(subprocess.run([sys.executable,"-c",code],capture_output=True,text=True).stdout.strip(), flush=True)
if __name__=="__main__":
    mp.set_start_method("spawn")
    print(subprocess.run("lscpu | egrep 'Thread|Core|Socket|NUMA|Model name|L2|L3|MHz'; cat /sys/devices/system/cpu/cpu0/topology/thread_siblings_list; cat /sys/kernel/mm/transparent_hugepage/enabled; uptime",shell=True,capture_output=True,text=True).stdout)
    C=os.cpu_count()
    for n in (1,8,16,C): 
        g=many(spin,n); print("spin",n,"per process",round(sum(g)/n),"min",min(g),flush=True)
    one=many(engine,1,1_000_000)[0]; print("engine 1 process 1M", round(one,3))
    for n in (8,16,C):
        g=many(engine,n,1_000_000//n); print("independent",n,"slowest",round(max(g),3),"median",round(sorted(g)[n//2],3),"speedup by slowest",round(one/max(g),2),flush=True)
    every=set(range(C))
    team(every,1,(20,)); team(every,8); team(set(range(0,16,2)),8); team(set(range(8)),8); team(set(range(0,C,2)),16); team(every,16); team(every,C)
