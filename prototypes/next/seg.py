import csv,sys
f,kern=sys.argv[1],sys.argv[2]
cur=None;hdr=None;rows=[]
for line in csv.reader(open(f)):
    if not line: continue
    if line[0]=="Kernel Name": cur=line[1]; hdr=None; continue
    if line[0]=="Address": hdr=line; continue
    if hdr and kern in cur: rows.append(dict(zip(hdr,line)))
S=next(k for k in rows[0] if k in("# Samples","Warp Stall Sampling (All Samples)")) if rows else ""
tot=sum(int(r[S] or 0) for r in rows); ex=sum(int(r["Instructions Executed"] or 0) for r in rows)
print(kern,"rows",len(rows),"samples",tot,"inst",ex)
seg=[];a=0
def flush(b):
    global a
    part=rows[a:b+1]
    s=sum(int(r[S] or 0) for r in part); e=sum(int(r["Instructions Executed"] or 0) for r in part)
    if s*200>tot or e*200>ex:
        ops={}
        for r in part:
            op=r["Source"].split()[0]
            if op.startswith('@'): op=r["Source"].split()[1]
            o=op.split('.')[0]
            if o in('LDG','STG','LDS','STS','ATOMS','ATOMG','RED','BAR','SHFL','WARPSYNC','BSYNC'): ops[o]=ops.get(o,0)+int(r["Instructions Executed"])
        print(f"{a:5d}-{b:5d} samples {100*s/tot:5.1f}%  inst {100*e/ex:5.1f}%  per-inst {s/max(e,1)*ex/tot:5.2f}  {ops}")
    a=b+1
for i,r in enumerate(rows):
    if 'BAR.' in r["Source"] : flush(i)
flush(len(rows)-1)
