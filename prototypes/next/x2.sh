# x2.sh LIMIT: shards with queues per owner on two GPUs (or four): parity first, then kinds; then ranks. Carry .whl .gl .gpu
t0=$(date +%s); nvidia-smi -L
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t; here=$PWD
cd /tmp/t/new && git checkout -q --detach K && export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
python3 $here/.gpu/pool.py
timeout -s INT 150 python3 -m pytest -q -n 8 -p no:cacheprovider --tb short --bp-plan=thorough suites/stage7_multi_gpu/test_cuda_shards.py -k "owners or mixed or recordings_agree" > /tmp/checks.log 2>&1; tail -30 /tmp/checks.log; cp /tmp/checks.log $OUT/
timeout 60 mpiexec --allow-run-as-root -n 4 python3 $here/.gpu/rankprof.py 100000 2>&1 | head -24
python3 -m stages run stage7 --thorough --run runs/x2 --time-limit $(( $1 - ($(date +%s) - t0) )) --first "kind_over_devices[20000000-2" --first "kind_over_devices[1000000-2-power" --first "kind_over_devices[1000000-2" --first test_slow --first test_burst_of_ten > /tmp/run.log 2>&1
tar czf $OUT/run.tgz runs/x2; cp /tmp/run.log $OUT/
python3 - <<'P'
import json
for line in open("runs/x2/stages/stage7/results.jsonl"):
    d = json.loads(line)
    if "case" in d and d["outcome"] != "skipped" and (d["measurements"] or d["outcome"] != "passed"):
        print(round(d["duration_s"], 1), d["outcome"], d["case"].split("::")[-1][:60], [(m["name"].split(".")[-1], round(m["value"], 3)) for m in d["measurements"]][:3], d["reason"][:200])
P
