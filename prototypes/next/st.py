import csv,sys
f,kern,a,b=sys.argv[1],sys.argv[2],int(sys.argv[3]),int(sys.argv[4])
cur=None;hdr=None;rows=[]
for line in csv.reader(open(f)):
    if not line: continue
    if line[0]=="Kernel Name": cur=line[1]; hdr=None; continue
    if line[0]=="Address": hdr=line; continue
    if hdr and kern in cur: rows.append(dict(zip(hdr,line)))
S="Warp Stall Sampling (All Samples)"
st={}
for r in rows[a:b]:
    for h in hdr:
        if h.startswith("stall_") and r[h] and "not_issued" not in h.lower(): st[h]=st.get(h,0)+int(float(r[h]))
tot=sum(st.values())
print({h[6:]:round(100*v/tot,1) for h,v in sorted(st.items(),key=lambda x:-x[1])[:12]})
if len(sys.argv)>5:
    for i in range(a,b):
        r=rows[i]
        if int(r[S])>int(sys.argv[5]): print(i,r[S],r["Instructions Executed"],r["Source"],r.get("L1 Conflicts Shared N-Way"))
