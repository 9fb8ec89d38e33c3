"""Runs the real by_warp / by_block / sort_parts / take_queue code, one Python thread a GPU thread."""
import threading, random, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
sys.setswitchinterval(1e-4)
TL=threading.local()
LOCK=threading.Lock()
class Dim: pass
class Atomic:
    @staticmethod
    def add(a,i,v):
        with LOCK:
            o=a[i]; a[i]=type(o)((int(o)+int(v)) & ((1<<(o.itemsize*8))-1)) if o.dtype.kind=="u" else o+v
            return o
class Block:
    def __init__(s,n):
        s.n=n; s.bar=threading.Barrier(n); s.slots=[0]*n; s.wb=[threading.Barrier(32) for _ in range(n//32)]; s.shared={}
class Fake:
    atomic=Atomic
    def jit(self,device=True): return lambda f:f
    @property
    def threadIdx(self): d=Dim(); d.x=TL.t; return d
    @property
    def blockDim(self): d=Dim(); d.x=TL.b.n; return d
    @property
    def blockIdx(self): d=Dim(); d.x=0; return d
    @property
    def gridDim(self): d=Dim(); d.x=1; return d
    def syncthreads(self): TL.b.bar.wait(30)
    def syncthreads_or(self,v):
        b=TL.b; b.slots[TL.t]=int(v); b.bar.wait(30); r=any(b.slots); b.bar.wait(30); return int(r)
    def syncwarp(self): TL.b.wb[TL.t//32].wait(30)
    def shfl_sync(self,m,v,src):
        b=TL.b; w=TL.t//32; b.slots[TL.t]=v; b.wb[w].wait(30); r=b.slots[w*32+int(src)]; b.wb[w].wait(30); return r
    def shfl_up_sync(self,m,v,d):
        b=TL.b; w=TL.t//32; b.slots[TL.t]=v; b.wb[w].wait(30); l=TL.t%32; r=b.slots[TL.t-int(d)] if l>=d else v; b.wb[w].wait(30); return r
    class local:
        @staticmethod
        def array(n,t): return np.full(n,123,np.dtype(t))   # poison
    class shared:
        @staticmethod
        def array(n,t):
            with LOCK:
                k=TL.k; TL.k+=1
                return TL.b.shared.setdefault((k,n),np.zeros(n,np.dtype(t)))
def launch(n,f):
    b=Block(n); errs=[]
    def go(t):
        TL.t=t; TL.b=b; TL.k=0
        try: f(t)
        except BaseException as e:
            import traceback; errs.append(traceback.format_exc()); b.bar.abort(); [w.abort() for w in b.wb]
    ts=[threading.Thread(target=go,args=(t,)) for t in range(n)]
    [t.start() for t in ts]; [t.join() for t in ts]
    if errs: print(errs[0]); raise SystemExit(1)
fake=Fake()
import burstproof.engine.cuda.kernels.places as P
P.SIMULATED=True; P.cuda=fake
import burstproof.engine.cuda.kernels.queues as Q, burstproof.engine.cuda.kernels.cells as Ce, burstproof.engine.cuda.kernels.owners as O, burstproof.engine.cuda.kernels.entries as E, burstproof.engine.cuda.kernels.rows as R
for m in (Q,Ce,O,E,R): m.cuda=fake
from comp import base, q, replace, Word, FusedShape
from types import SimpleNamespace as NS
class G(np.ndarray):
    pass
def guarded(a): return a
def run(seed):
    r=random.Random(seed); rng=np.random.default_rng(seed)
    wide=r.random()<.4; threads=r.choice([32,64,96]); owners=r.choice([1,2,3,5,37,64,70]); span=r.choice([1,8,50])
    room=r.choice([1,3,15,27,31,33,57,63,65,97,183,385,401,1023]); 
    recalled=r.choice([1,7]); part=r.choice([6,50]); rl=0
    words=r.random()<.3 and not wide
    v=replace(base, recalled=recalled, offset_bits=r.choice([32,64]), contribution_bits=16 if not wide else 64, accumulator_bits=64 if wide else 32, word=Word(64 if wide else 32), delays=recalled>1, target_bits=20 if words else 0)
    v=replace(v,queues=replace(base.queues,owners=owners,span=span,low_bits=20 if wide else 0,wide=wide,part=part,bin_room=room))
    qs=v.queues
    per=Q._per_thread(v,qs)
    nparts=r.choice([1,2,7,40]); nparts=min(nparts,Q.parts_at_once(v,qs,threads))
    lens=rng.integers(0,r.choice([2,12,120]),nparts)
    whole=r.random()<.3
    if whole: nparts=1; lens=lens[:1]
    if r.random()<.3:  # total an exact multiple of the window
        W=threads*per; tot=W*r.choice([1,2,3])
        lens=np.zeros(nparts,int); lens[-1]=tot if nparts==1 else 0
        if nparts>1:
            cut=np.sort(rng.integers(0,tot+1,nparts-1)); lens=np.diff(np.concatenate([[0],cut,[tot]]))
    total=int(lens.sum())
    if total==0: return None
    N=owners*span - r.choice([0,0,span//2]); N=max(N,1)
    gap=5; firsts=[];cols=[]; pos=3
    rowsz=sum(lens)+ (len(lens)+1)*gap+10
    hot=r.random()<.4
    targets=rng.integers(0,N,rowsz) if not hot else np.minimum(rng.geometric(.05,rowsz)-1,N-1)
    contr=rng.integers(-3000,3000,rowsz)
    ends=np.cumsum(lens).astype(np.uint32); off=v.offset
    exp=[]; fl=[]
    for i,l in enumerate(lens):
        fl.append((pos-(int(ends[i])-int(l))) % (1<<v.offset_bits)); exp+= [(int(targets[j]),int(contr[j])) for j in range(pos,pos+int(l))]; pos+=int(l)+gap
    firsts=np.array(fl,dtype=off)
    if words:
        tg=((contr.astype(np.int64)<<20)|targets).astype(np.int64)
        contr=rng.integers(-2000,2000,rowsz); tg=((contr.astype(np.int64)<<20)|targets).astype(np.int32)
        exp=[]; pos=3
        for l in lens:
            exp+=[(int(targets[j]),int(contr[j])) for j in range(pos,pos+int(l))]; pos+=int(l)+gap
        T=tg; K=np.zeros(1,np.int16)
    else:
        T=targets.astype(np.uint32); K=contr.astype(v.read_contribution)
    qroom=r.choice([1,5,40,4000])
    start=np.zeros(owners*32,np.uint32)
    queue=NS(queue_lengths=start, queue_spills=np.zeros(owners,np.uint32), queue_entries=np.full(owners*qroom,0xDEAD,v.queued), queue_room=np.uint32(qroom), palette=None)
    near=r.random()<.1
    fcl=NS(sums=np.zeros(owners*span,v.word.added), cells=None)
    fcl.cells=fcl.sums
    counts=np.zeros(owners,np.uint32); bins=np.full(owners*room,7,v.queued)
    sp=Q.make_sort_parts(v,qs,threads,whole=whole); eb=Q.make_empty_bins(v,qs,threads)
    assert eb.__name__=="by_warp"
    amounts=np.zeros(max(1,nparts),v.accumulator)
    def k(t):
        sp(np.uint32(total),np.uint32(nparts),firsts,ends,amounts,counts,bins,T,K,fcl,queue)
        fake.syncthreads()
        eb(np.uint32(1),counts,bins,queue,fcl)
    launch(threads,k)
    want=np.zeros(owners*span,np.int64)
    for t,a in exp: want[t]+=a
    assert counts.sum()==0
    assert int(queue.queue_lengths.astype(np.int64).sum())==len(exp),(queue.queue_lengths.sum(),len(exp))
    # take queues
    need=O._make_take_entries
    own_all=np.zeros(owners*span,np.int64)
    tq=O.make_take_queue(v,qs,threads); em=O.make_empty(v,qs,threads); wi=O.make_word_in(v,qs)[2]
    spills=int((queue.queue_spills>0).sum())
    for ow in range(owners):
        own=np.full(span*(2 if wide else 1),99,np.int32)
        def kk(t):
            em(own); 
            tq(np.uint32(ow),own,np.uint32(N),queue,fcl)
        launch(threads,kk)
        for l in range(span): own_all[ow*span+l]=int(wi(own,np.uint32(l)))
    assert (own_all==want).all(), (own_all-want)
    assert not fcl.sums.any() and not queue.queue_lengths.any() and not queue.queue_spills.any()
    return (wide,threads,owners,room,per,total,qroom,spills,whole)
if __name__=="__main__":
    import time; t0=time.time(); n=0; seen=[]
    s=int(sys.argv[1])
    while time.time()-t0<float(sys.argv[2]):
        try: x=run(s)
        except AssertionError as e: print("FAIL seed",s,repr(e)[:300]); break
        if x: seen.append(x); n+=1
        s+=1
    print(n,"cases; rooms",sorted({x[3] for x in seen}),"per",sorted({x[4] for x in seen}),"spilled",sum(x[7]>0 for x in seen),"whole",sum(x[8] for x in seen))
