import csv,sys
k,kern,top=sys.argv[1],sys.argv[2],int(sys.argv[3])
cur=None;hdr=None;rows=[]
for line in csv.reader(open(f"s-{k}.csv")):
    if not line: continue
    if line[0]=="Kernel Name": cur=line[1]; hdr=None; continue
    if line[0]=="Address": hdr=line; continue
    if hdr and kern in cur: rows.append(dict(zip(hdr,line)))
tot=sum(int(r["# Samples"] or 0) for r in rows)
ex=sum(int(r["Instructions Executed"] or 0) for r in rows)
print(k,kern,"samples",tot,"inst",ex, "per SM",ex/132)
st={}
for r in rows:
    for h in hdr:
        if h.startswith("stall_") and r[h] and "not_issued" not in h: st[h]=st.get(h,0)+int(float(r[h]))
print({h:round(100*v/tot,1) for h,v in sorted(st.items(),key=lambda x:-x[1])[:12]})
idx=sorted(range(len(rows)),key=lambda i:-int(rows[i]["# Samples"] or 0))[:top]
for i in sorted(idx):
    r=rows[i]
    s=sorted(((h,int(float(r[h]))) for h in hdr if h.startswith("stall_") and "not_issued" not in h and r[h]),key=lambda x:-x[1])[:3]
    print(i,r["# Samples"],f'{100*int(r["# Samples"])/tot:.1f}%',r["Instructions Executed"],r["Source"][:60],[(a[6:],b) for a,b in s if b])
