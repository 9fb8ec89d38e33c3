import re,sys
L=open(sys.argv[1]).read().splitlines()
lab={};ins=[]
for l in L:
    m=re.match(r'^\s+(\.L_x_\d+)$',l)
    if m: lab[m.group(1)]=len(ins); continue
    m=re.match(r'^\s*(\d+) \[(.{6})\|(.{5}) ?\s*(\d+)\] (.*)',l)
    if m: ins.append(m.group(5))
loops=[]
for i,x in enumerate(ins):
    m=re.search(r'BRA.*`\((\.L_x_\d+)\)',x)
    if m and lab.get(m.group(1),1e9)<=i: loops.append((lab[m.group(1)],i))
for a,b in sorted(set(loops)):
    kinds={k:sum(k in y for y in ins[a:b+1]) for k in('LDG','STG','LDS','STS','ATOMS','RED','ATOMG','BAR','SHFL','VOTE','IMAD','FFMA','LDL','STL')}
    print(a,b,b-a+1,{k:v for k,v in kinds.items() if v})
