# x4s.sh LIMIT: 1 M kinds on four GPUs and on two; areas and plastic agree; one call
t0=$(date +%s); nvidia-smi -L | head -1; nproc
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t; W=/tmp/w; cp -r .gpu $W
cd /tmp/t/new && git checkout -q --detach K && git status --short | head -3; git log --oneline | head -1
export GPUS=4 PYTHONPATH=/tmp/t/new/impl:/tmp/t/new AT_ONCE=30 ONLY_SMALL=1
(timeout 130 python3 $W/warm7.py > /tmp/warm.log 2>&1) &
WARM=$!
python3 -m stages run stage5 --thorough --workers 10 --run runs/x4p --first 'kind_on_gpus[plastic' --first 'kind_on_gpus[areas' --first 'kind_on_gpus[power' > /tmp/run5.log 2>&1 &
FIVE=$!
python3 $W/until.py runs/x4p/stages/stage5/results.jsonl kind_on_gpus 9 150
kill -INT $FIVE; wait $FIVE; echo "five rc=$? at $(( $(date +%s) - t0 ))"
kill $WARM 2>/dev/null; pkill -f warm7.py; tail -2 /tmp/warm.log; grep -c " 0 " /tmp/warm.log
tar czf $OUT/five.tgz runs/x4p
python3 -m stages run stage7 --thorough --workers 24 --run runs/x4 --time-limit $(( $1 - ($(date +%s) - t0) )) --first 'kind_over_devices[1000000-4-power' --first 'kind_over_devices[1000000-2' --first 'kind_over_devices[1000000-4' --first strong --first weak > /tmp/run.log 2>&1
tar czf $OUT/run.tgz runs/x4; cp /tmp/run.log /tmp/run5.log /tmp/warm.log $OUT/
tail -c 900 /tmp/run5.log; tail -c 1500 /tmp/run.log
python3 - <<'P'
import json
for stage, run in (("stage5", "x4p"), ("stage7", "x4")):
    n = {}
    for line in open(f"runs/{run}/stages/{stage}/results.jsonl"):
        d = json.loads(line)
        if "case" not in d: continue
        n[d["outcome"]] = n.get(d["outcome"], 0) + 1
        if d["outcome"] not in ("skipped", "passed") or "kind_o" in d["case"] or (stage == "stage7" and d["measurements"]):
            print(round(d["duration_s"], 1), d["outcome"][:4], d["case"].split("::")[-1][:48], [(m["name"].split(".")[-1], float(f"{m['value']:.4g}")) for m in d["measurements"]][:3], d["reason"][:120])
    print(stage, n)
P
