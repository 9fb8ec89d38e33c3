import json, os, subprocess, sys, time
def child():
    import zlib, numpy as np
    from dataclasses import replace
    from burstproof.config import MultiGpu
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
    from burstproof.engine.options import CudaOptions, EngineOptions
    from burstproof.engine.state import Record, Stimulus
    from burstproof.network.synthetic.build import initial_stimulus
    from suites.support.shards.kind_rows import kind_row
    from suites.support.bench.rows import Row
    engine=None
    for line in sys.stdin:
        cmd,*rest=line.split()
        if cmd=="make":
            case=rest[0]; kind,n,dev=case.split(':')[:3]; extra=case.split(':')[3:]
            if engine is not None: engine.close()
            row=kind_row(kind,int(n)); spec=row.spec; start=row.start
            for x in extra:
                if x=='vary': spec=replace(spec,connectivity='fixed_in_degree')
                elif x.startswith('delays'): spec=replace(spec,delays=(1,int(x[6:])))
                elif x.startswith('rate'): row=replace(row,firing_rate=float(x[4:])); spec=row.spec; start=row.start
                elif x.startswith('fan'): row=replace(row,synapses_per_neuron=int(x[3:])); spec=row.spec; start=row.start
            told=EngineOptions(cuda=CudaOptions(firing_rate=row.firing_rate))
            choice=ShardingChoice(tuple(range(int(dev))),MultiGpu().sharding_strategy) if int(dev)>1 else None
            import burstproof.engine.cuda.plan.sizing as SZ
            if not hasattr(SZ,'_o'): SZ._o=(SZ._with_rows,SZ._with_calendar)
            SZ._with_rows,SZ._with_calendar=SZ._o
            if 'norl' in extra: SZ._with_rows=lambda v,z: replace(SZ._o[0](v,z),row_length=0)
            if 'nocal' in extra: SZ._with_calendar=lambda v,z,roomy: None
            t=time.perf_counter()
            engine=CudaEngine.from_spec(spec,told,choice) if spec.connectivity!='fixed_in_degree' else CudaEngine.create(__import__('burstproof.network.synthetic.build',fromlist=['x']).synthesize(spec),told)
            engine.run(max(3,max(start)),start); engine.run(64,record=Record.NONE); c=engine.run(64,record=Record.COUNTS)
            print(json.dumps([round(time.perf_counter()-t,1),round(float(np.mean(c.fired_counts))/int(n),5),str(getattr(engine,'launch',''))[-160:]]),flush=True)
        elif cmd=="time":
            engine.run(64,record=Record.NONE); us=[]
            k=int(rest[0])
            for _ in range(6):
                t=time.perf_counter(); engine.run(k,record=Record.NONE); us.append((time.perf_counter()-t)/k*1e6)
            print(json.dumps(sorted(us)[2]),flush=True)
        elif cmd=="state":
            s=engine.state(); print(json.dumps([int(s.burst_count),zlib.crc32(np.ascontiguousarray(s.membrane_potentials).tobytes())]),flush=True)
def main():
    sides={}
    for name,path in [s.split("=",1) for s in sys.argv[2].split(",")]:
        path,*sets=path.split("@")
        env=dict(os.environ,PYTHONPATH=f"{path}/impl:{path}:"+os.environ.get("PYTHONPATH",""),NUMBA_CACHE_DIR=f"/tmp/nc{name}",XDG_CACHE_HOME=f"/tmp/xc{name}")
        sides[name]=subprocess.Popen([sys.executable,os.path.abspath(__file__),"child"],stdin=subprocess.PIPE,stdout=subprocess.PIPE,text=True,env=env,cwd=path) if not env.update(x.split("=") for x in sets) else None
    def ask(n,t): sides[n].stdin.write(t+"\n"); sides[n].stdin.flush()
    def hear(n):
        while True:
            l=sides[n].stdout.readline()
            if not l: raise SystemExit(f"{n} died")
            try: return json.loads(l)
            except ValueError: print(n,l,end="")
    for case in sys.argv[1].split(","):
        for n in sides: ask(n,f"make {case}")
        for n in sides: print(case,n,hear(n),flush=True)
        got={n:[] for n in sides}; k=300 if int(case.split(':')[1])>5e6 else 1500
        for _ in range(2):
            for n in sides: ask(n,f"time {k}"); got[n].append(round(hear(n),2))
        st={}
        for n in sides: ask(n,"state"); st[n]=hear(n)
        print(case,got,"SAME" if len({json.dumps(v) for v in st.values()})==1 else st,flush=True)
    for n in sides: sides[n].stdin.close()
child() if sys.argv[1]=="child" else main()
