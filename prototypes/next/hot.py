import csv,sys
f,which,lo,hi=sys.argv[1],int(sys.argv[2]),int(sys.argv[3]),int(sys.argv[4])
rows=list(csv.reader(open(f)))
heads=[i for i,r in enumerate(rows) if r and r[0]=='Address']
h=heads[which]; end=heads[which+1]-1 if which+1<len(heads) else len(rows)
cols=rows[h]; body=rows[h+1:end]
ix={c:i for i,c in enumerate(cols)}
tot=sum(int(r[2] or 0) for r in body); tins=sum(int(r[5] or 0) for r in body)
print(len(body),'instr',tot,'samples',tins,'executed')
st=[c for c in cols if c.startswith('stall_') and 'not_issued' not in c.lower()]
agg={c:sum(int(r[ix[c]] or 0) for r in body) for c in st}
print({k:round(100*v/tot,1) for k,v in sorted(agg.items(),key=lambda x:-x[1])[:14]})
acc=0
for n,r in enumerate(body):
    s=int(r[2] or 0); e=int(r[5] or 0)
    acc+=s
    if lo<=n<hi:
        top=sorted(((int(r[ix[c]] or 0),c[6:]) for c in st),reverse=True)[:2]
        print(n,'%5.2f%%'%(100*s/tot),'cum%5.1f'%(100*acc/tot),'ex%6.2f%%'%(100*e/tins),r[1].strip()[:60].ljust(60),[t for t in top if t[0]>tot*0.002])
