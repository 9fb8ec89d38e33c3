t0=$(date +%s)
while [ ! -f /tmp/run.done ] && [ $(( $(date +%s) - t0 )) -lt $1 ]; do sleep 3; done
cp /tmp/run.log $OUT/
if [ -n "$2" ] || [ -f /tmp/run.done ]; then tar cz --exclude=compiled -C /tmp/t/new runs/plan 2>/dev/null | split -b 15000000 - /tmp/run.; mv /tmp/run.a? $OUT/; fi
grep -v "^ *$" /tmp/run.log | tail -c 1500; ls /tmp/t/new/runs/plan/stages
python3 - <<'P'
import json,glob,collections
for f in sorted(glob.glob('/tmp/t/new/runs/plan/stages/*/results.jsonl')):
    n=collections.Counter(); bad=[]
    for l in open(f):
        try: d=json.loads(l)
        except ValueError: continue
        if 'case' not in d: continue
        n[d['outcome']]+=1
        if d['outcome'] not in('passed','skipped'): bad.append((d['case'].split('/')[-1],d['reason'][:160]))
    print(f.split('/')[-2],dict(n)); [print('   ',*b) for b in bad[:8]]
P
