t0=$(date +%s)
while [ ! -f /tmp/run.done ] && [ $(( $(date +%s) - t0 )) -lt $1 ]; do sleep 2; done
cp /tmp/run.log /tmp/cpu.log /tmp/warm.log $OUT/ 2>/dev/null; cat /tmp/go.log
[ -f /tmp/run.done ] && tar cz --exclude=compiled -C /tmp/t/new runs/plan 2>/dev/null | split -b 15000000 - $OUT/run.
echo "at $(( $(date +%s) - $(cat /tmp/began) ))"; cat /tmp/cpu.log; tail -c 600 /tmp/run.log; grep -vc " 0 " /tmp/warm.log
python3 - <<'P'
import json,glob,collections
for f in sorted(glob.glob('/tmp/t/new/runs/plan/stages/*/results.jsonl')):
    n=collections.Counter()
    for l in open(f):
        try: d=json.loads(l)
        except ValueError: continue
        if 'case' not in d: continue
        n[d['outcome']]+=1
        if d['outcome'] not in('passed','skipped'): print(d['case'].split('/')[-1], d['reason'][:300])
        if 'stage5' not in f:
            o=[(m['name'].split('.')[-1][:18],round(m['value'],2)) for m in d['measurements'] if m['name'] in('burst.scaled','burst.against_uniform','burst.memories','burst.thread_speedup','burst.latency','kernel.launch_overhead','burst.loop_p50','burst.loop_p999') or 'against' in m['name'] or 'ahead' in m['name'] or 'scaling' in m['name'] or 'loop' in m['name']]
            if o and d['outcome']=='passed': print(round(d['duration_s']),d['case'].split('::')[-1][:36],*o[:8])
    print(f.split('/')[-2],dict(n))
P
