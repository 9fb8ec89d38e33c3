t0=$(date +%s); since() { echo $(( $(date +%s) - t0 )); }
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t && tar xzf .gpu/old.tgz -C /tmp; cp -r .gpu /tmp/w
cd /tmp/t/new && git checkout -q --detach K && git status --short | head -3; git log --oneline | head -1; nvidia-smi -L; nproc; echo "ready $(since)"
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
ROWS=power-law-100K,microcircuit-77K,parameters-100K,fractions-100K,inhibition-100K,weights-100K,uniform-100K,power-law-1M,fractions-1M,everything-1M,uniform-1M,delays-1M,parameters-1M
(timeout 70 python3 /tmp/w/warm.py $ROWS > /tmp/warm.log 2>&1) &
timeout 95 python3 -m stages run stage5 stage6 --thorough --workers 11 --run runs/plan --only stage5 --time-limit 48 --first test_device --first test_a_loop_equals --first 'test_streaming' --first test_ten_thousand_cases_on_cuda --first 'test_kind_on_gpus' --first test_mix > /tmp/run.log 2>&1
echo "stage5 rc $? at $(since)"; wait; cat /tmp/warm.log
timeout 110 python3 -m stages run --resume runs/plan --only stage6 --time-limit $((${1:-150} - $(since))) --first test_what_the_card --first 'test_kind[power-law-100K' --first 'test_kind[microcircuit' --first 'test_kind[parameters-100K' --first 'test_kind[fractions-100K' --first 'test_kind[inhibition-100K' --first 'test_kind[weights-100K' --first 'test_kind[power-law-1M' --first 'test_kind[fractions-1M' --first 'test_kind[everything-1M' --first 'test_kind[delays-1M' --first 'test_kind[parameters-1M' --first test_latency >> /tmp/run.log 2>&1
echo "stage6 rc $? at $(since)"; cp /tmp/run.log $OUT/
tar cz --exclude=compiled -C /tmp/t/new runs/plan 2>/dev/null | split -b 15000000 - $OUT/run.
python3 - <<'P'
import json,glob,collections
for f in sorted(glob.glob('/tmp/t/new/runs/plan/stages/*/results.jsonl')):
    n=collections.Counter()
    for l in open(f):
        try: d=json.loads(l)
        except ValueError: continue
        if 'case' not in d: continue
        n[d['outcome']]+=1
        if d['outcome'] not in('passed','skipped'): print(d['case'].split('/')[-1], d['reason'][:200])
        for m in d['measurements']:
            if m['name'] in ('burst.scaled','burst.against_uniform') : print(d['case'].split('::')[-1][:40], m['name'], round(m['value'],3))
    print(f.split('/')[-2],dict(n))
P
L=$(( ${2:-185} - $(since) )); [ $L -gt 20 ] && timeout $L python3 /tmp/w/ab.py delays:1000000:no,uniform:100000:no,uniform:1000000:no old=/tmp/old@,new=/tmp/t/new@ 2>&1 | grep -v "found': \[\]"
echo "end $(since)"
