"""early waits: for each global load, first wait on its scoreboard and first use of its register (linear scan)"""
import re,sys
L=[]
for l in open(sys.argv[1]):
    m=re.match(r'^\s*(\d+) \[ *([0-5]*)\|w(.) r(.) +(\d+)\] (.*)$',l.rstrip())
    if m: L.append((int(m[1]),set(m[2]),m[3],m[4],m[6]))
    else: L.append((None,l.strip()))
ins=[x for x in L if x[0] is not None]
def dest(t):
    m=re.match(r'^(@!?U?P\d+ )?(\S+) (R\d+)',t); return m[3] if m else None
W={'LDG.E.128':4,'LDG.E.64':2}
for i,x in enumerate(ins):
    t=x[4]
    op=re.sub(r'^@!?U?P\d+ ','',t).split(' ')[0]
    if not op.startswith('LDG'): continue
    d=dest(t); sb=x[2]
    n=4 if '.128' in op else 2 if '.64' in op else 1
    regs={f"R{int(d[1:])+k}" for k in range(n)}
    fw=fu=None
    for j in range(i+1,min(i+600,len(ins))):
        if fw is None and sb in ins[j][1]: fw=j
        if fu is None:
            body=ins[j][4]
            parts=re.findall(r'R\d+',body)
            dd=dest(body)
            src=parts[1:] if dd and not re.match(r'^(@!?U?P\d+ )?(ST|RED|ATOM)',body) else parts
            if any(r in regs for r in src): fu=j
        if fw is not None and fu is not None: break
    if fw is None: continue
    flag=''
    if fu is None or fu-fw>8: flag='EARLY'
    elif fw-i<8: flag='SOON'
    print(f"{x[0]:5d} {op:18s} {d:4s} sb{sb} first wait +{fw-i} ({ins[fw][4][:50]})  first use {'+'+str(fu-i) if fu is not None else '-'} ({ins[fu][4][:40] if fu is not None else ''}) {flag}")
