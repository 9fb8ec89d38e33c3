"""TREE-KERNEL kind:M -> /tmp/ctl-<tag>.txt: loops annotated with scoreboards"""
import sys,re,subprocess,tempfile,os,glob
NVDISASM=glob.glob(sys.prefix+"/lib/python3*/site-packages/nvidia/cu*/bin/nvdisasm")[0]
exec(open(__file__.rsplit("/",1)[0]+"/count.py").read().split("for arg in")[0])
tag,NAME,arg=sys.argv[1:4]
kind,n=arg.split(':'); n=int(float(n)*1e6)
p=pack_network(seeded_network(kind,10000,100,0.01,3).network(),EngineOptions())
sizes=replace(p.sizes,neurons=n,static_entries=p.sizes.static_entries*(n//10000)); sizes=replace(sizes,palette=510) if kind in('fractions','everything') else sizes
v=replace(sized(p.variant,sizes),overlapped=True)
for s in catalogue(v):
    if s.name!=NAME: continue
    im=compile_kernel(s.name,s.function,s.signature,(9,0),s.registers)
    data=getattr(im,'cubin',None) or getattr(im,'data',None)
    f=tempfile.NamedTemporaryFile(suffix='.cubin',delete=False); f.write(data); f.close()
    out=subprocess.run([NVDISASM,'-hex','-c',f.name],capture_output=True,text=True)
    print(out.stderr[:300])
    lines=out.stdout.splitlines(); i=0; k=0; res=[]
    while i<len(lines):
        l=lines[i]
        m=re.match(r'^(\.L_x_\d+):',l)
        if m: res.append('      '+m.group(1))
        m=re.match(r'^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s*/\* (0x[0-9a-f]+) \*/',l)
        if m:
            hi=int(re.search(r'/\* (0x[0-9a-f]+) \*/',lines[i+1]).group(1),16)
            c=(hi>>41)&0x1fffff
            st,y,wr,rd,wt=c&15,(c>>4)&1,(c>>5)&7,(c>>8)&7,(c>>11)&63
            w=''.join(str(b) for b in range(6) if wt>>b&1)
            res.append(f"{k:5d} [{w:>6s}|w{wr if wr<7 else '-'} r{rd if rd<7 else '-'} {st:2d}] {m.group(2)}")
            k+=1; i+=1
        i+=1
    open(f'/tmp/ctl-{tag}.txt','w').write('\n'.join(res))
