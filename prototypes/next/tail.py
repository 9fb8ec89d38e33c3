import os,sys,time,resource,gc
import numpy as np
from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.options import EngineOptions
from suites.support.bench.rows import Row
from suites.support.bench.loop_bench import stimuli_for
from suites.support.bench.timers import waits
row=Row(int(sys.argv[1]),0.01); net=row.network(); clock=time.perf_counter_ns
def usage():
    u=resource.getrusage(resource.RUSAGE_THREAD); return np.array([u.ru_nvcsw,u.ru_nivcsw,u.ru_minflt])
def show(name,a,b,c,ab,us):
    tot=a+b+c; top=np.argsort(tot)[-len(tot)//1000:]
    print(name,'p50 %.1f p99 %.1f p99.9 %.1f max %.1f'%tuple(np.percentile(tot,[50,99,99.9,100])/1e3),'| parts p50 post %.1f wait %.1f rest %.1f'%tuple(np.median(x)/1e3 for x in (a,b,c)),'| p99.9 each %.1f %.1f %.1f'%tuple(np.percentile(x,99.9)/1e3 for x in (a,b,c)),'| top 0.1%%: mean excess post %.1f wait %.1f rest %.1f'%tuple((x[top].mean()-np.median(x))/1e3 for x in (a,b,c)),'| faults,switches',us,flush=True)
    t=np.sort(ab[top])/1e6; d=np.diff(t)
    print('     gaps between worst, ms: p10 %.2f p50 %.2f p90 %.2f; by thousand calls: %s'%(*np.percentile(d,[10,50,90]),np.histogram(top,10,(0,len(tot)))[0].tolist()),flush=True)
for stim in (16,1000):
    st=stimuli_for(row.neurons,stim); pairs=[(s.ids,s.amounts) for s in st]
    with CudaEngine.create(net,EngineOptions()) as e:
        e.run(1,row.start)
        for mode in ('plain','parts','pinned','nogc'):
            if mode=='pinned': old=os.sched_getaffinity(0); os.sched_setaffinity(0,{max(old)-1})
            if mode=='nogc': os.sched_setaffinity(0,old); gc.disable()
            N=60000; a=np.zeros(N);b=np.zeros(N);c=np.zeros(N);ab=np.zeros(N)
            with e.closed_loop() as loop:
                for i in range(200): loop.step(*pairs[i%64])
                u=usage()
                if mode!='parts':
                    for i in range(N):
                        x=pairs[i%64]; t0=clock(); f=loop.step(*x); t=clock(); a[i]=t-t0; ab[i]=t0
                else:
                    k=loop._kernel; calls=loop._calls
                    for i in range(N):
                        ids,am=pairs[i%64]; t0=clock()
                        number=loop._number(loop._done+1)
                        p=calls.post(loop._addresses,ids,am,ids[:0],number); f=np.empty(loop._likely,np.uint32); t1=clock()
                        found=calls.wait(k.answers,k.replies,number,k.chunks,f); t2=clock()
                        f=loop._fired(k,found,f); t3=clock()
                        a[i]=t1-t0;b[i]=t2-t1;c[i]=t3-t2;ab[i]=t0
                u=usage()-u
            gc.enable()
            show(f'{row.neurons} stim {stim} {mode}',a,b,c,ab,u)
        w=waits(12.9,60000); print('waits of 12.9 p99.9',np.percentile(w,99.9),'p99',np.percentile(w,99),flush=True)
