import sys, time
from dataclasses import replace
from burstproof.compile.numba_cubin import compile_kernel
from burstproof.compile.resources import resources_of, instructions_of
from burstproof.engine.cuda.kernels.catalogue import catalogue
from burstproof.engine.cuda.plan.variant import OwnerQueues
from burstproof.engine.cuda.plan.block_size import FusedShape
from burstproof.engine.cuda.plan.word import Word
from suites.support.compile.variants import chosen_variants
V=chosen_variants()
base=V["queues per owner"]; pal=V["queues per owner, places, buckets"]
def q(v, **k):
    qk={n:k.pop(n) for n in list(k) if n in OwnerQueues.__dataclass_fields__}
    return replace(v, queues=replace(v.queues, **qk), **k)
def variants():
    w32=Word(32)
    out={}
    out["wide7"]=base
    out["pal7"]=pal
    # realistic: (owners, span)
    n=q(base, wide=False, low_bits=0, owners=132, span=20480, bin_room=363, part=50, recalled=1, delays=False, accumulator_bits=32, contribution_bits=16, word=replace(w32), fused=FusedShape(1024,2))
    out["narrow1_363"]=n
    out["narrow1_363_fixedlen"]=replace(n,row_length=50)
    out["narrow1_words"]=replace(n,target_bits=22)
    out["narrow1_words_rows"]=replace(n,target_bits=22,row_length=50)
    out["narrow1_31"]=q(n,bin_room=57,owners=832)
    out["narrow1_1023"]=q(n,bin_room=1023,owners=40)
    out["narrow1_o64"]=replace(n,offset_bits=64)
    out["narrow1_uniform"]=replace(n,uniform_rows=True)
    out["wide1"]=q(base, recalled=1, delays=False, owners=132, span=20480, bin_room=181, part=50, fused=FusedShape(1024,2))
    out["wide1_short"]=q(base, recalled=1, delays=False, owners=832, span=20480, bin_room=27, part=6, fused=FusedShape(1024,2))
    out["wide1_o64"]=replace(out["wide1"],offset_bits=64)
    out["narrow7_buckets"]=q(n,recalled=7,delays=True,rows_put_off=58,part=6)
    out["wide7_buckets"]=q(base,rows_put_off=58,owners=132,bin_room=181)
    out["wide7_o64"]=q(base,offset_bits=64,owners=132,bin_room=181)
    return out
if __name__=="__main__":
    caps=[tuple(map(int,c.split("."))) for c in sys.argv[1].split(",")]
    names=sys.argv[2].split(",") if len(sys.argv)>2 and sys.argv[2] else list(variants())
    kern=sys.argv[3].split(",") if len(sys.argv)>3 else ["enqueue","burst"]
    for nme in names:
        v=variants()[nme]
        for c in caps:
            vv=replace(v,overlapped=c>=(9,0))
            try: specs=catalogue(vv)
            except Exception as e: print(nme,c,"ERR",repr(e)[:200]); continue
            for s in specs:
                if s.name not in kern: continue
                t=time.time()
                try:
                    im=compile_kernel(s.name,s.function,s.signature,c,s.registers)
                    r=resources_of(im); i=instructions_of(im)
                    print(nme,c,s.name,"regs",r.registers,"stack",r.stack_bytes,"local",r.local_bytes,"cap",s.registers0,flush=True)
                except Exception as e:
                    print(nme,c,s.name,"ERR",repr(e)[:400],flush=True)
