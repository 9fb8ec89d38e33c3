import csv,sys
f,which,lo,hi=sys.argv[1],int(sys.argv[2]),int(sys.argv[3]),int(sys.argv[4])
rows=list(csv.reader(open(f)))
heads=[i for i,r in enumerate(rows) if r and r[0]=='Address']
h=heads[which]; end=heads[which+1]-1 if which+1<len(heads) else len(rows)
body=rows[h+1:end]
for n,r in enumerate(body[lo:hi],lo):
    print(n,r[0][-5:],r[5].rjust(7),r[9].rjust(6),r[1].strip()[:74])
