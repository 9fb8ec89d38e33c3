"""executed instruction estimate: print loops of burst kernel: total static in the consume loop, by kind"""
import sys,re
from dataclasses import replace
from burstproof.engine.cuda.plan.packed import pack_network
from burstproof.engine.cuda.plan.tiles import sized
from burstproof.engine.options import EngineOptions
from burstproof.network.synthetic.kinds import seeded_network
from burstproof.engine.cuda.kernels.catalogue import catalogue
from burstproof.compile.numba_cubin import compile_kernel
from burstproof.compile.resources import disassembled,resources_of
def parse(text):
    lab={};ins=[]
    for l in text.splitlines():
        m=re.match(r'^(\.L_x_\d+):',l)
        if m: lab[m.group(1)]=len(ins); continue
        m=re.match(r'^\s*/\*([0-9a-f]+)\*/\s+(.*?)\s*;',l)
        if m: ins.append(m.group(2))
    return lab,ins
for arg in sys.argv[1:]:
    kind,n=arg.split(':'); n=int(float(n)*1e6)
    p=pack_network(seeded_network(kind,10000,100,0.01,3).network(),EngineOptions())
    sizes=replace(p.sizes,neurons=n,static_entries=p.sizes.static_entries*(n//10000))
    v=replace(sized(p.variant,sizes),overlapped=True)
    for s in catalogue(v):
        if s.name!='burst': continue
        im=compile_kernel(s.name,s.function,s.signature,(9,0),s.registers); text=disassembled(im)
        open(f'/tmp/{kind}-{n}.sass','w').write(text)
        lab,ins=parse(text); r=resources_of(im)
        loops=[]
        for i,x in enumerate(ins):
            m=re.search(r'BRA.*`\((\.L_x_\d+)\)',x)
            if m and lab.get(m.group(1),1e9)<=i: loops.append((lab[m.group(1)],i))
        # the consume loop: has STG.E desc and VOTE, innermost largest
        best=[(a,b) for a,b in loops if any('VOTE' in y for y in ins[a:b]) and not any((c,d)!=(a,b) and a<=c and d<=b and any('VOTE' in y for y in ins[c:d]) for c,d in loops)]
        print(arg,'registers',r.registers,'local',r.local_bytes,'all',len(ins),'loops with votes',[(b-a+1) for a,b in best])
