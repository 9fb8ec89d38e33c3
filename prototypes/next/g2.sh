# g2.sh KILL: two GPUs: stage 5 of kinds for a while, then stage 7
t0=$(date +%s); nvidia-smi -L; nproc
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t; W=$PWD/.gpu
cd /tmp/t/new && git checkout -q --detach K && git status --short | head -3; git log --oneline | head -1
F=""; for k in 2-everything 2-parameters 2-inhibition 2-uniform 2-weights 2-delays 2-fractions; do F="$F --first kind_over_devices[20000000-$k"; done
F="$F --first kind_over_devices[1000000-2 --first test_slow --first test_cuda_shards"
cat > /tmp/go.sh <<G
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
cd /tmp/t/new
python3 -m stages run stage5 --thorough --workers 24 --run runs/x2a --time-limit 200 --first kind_on_gpus --first test_integers_are_bounded --first test_kind > /tmp/run5.log 2>&1
echo "five \$(( \$(date +%s) - $t0 ))" >> /tmp/run5.log
python3 -m stages run stage7 --thorough --workers 24 --run runs/x4 --time-limit \$(( $1 - 20 - (\$(date +%s) - $t0) )) $F > /tmp/run.log 2>&1
echo "rc=\$?" >> /tmp/run.log; touch /tmp/run.done
G
rm -f /tmp/run.done
setsid nohup bash /tmp/go.sh > /dev/null 2>&1 < /dev/null &
bash "$W/x4wait.sh" $(( $1 - ($(date +%s) - t0) ))
tail -c 1500 /tmp/run5.log; tar czf $OUT/five.tgz runs/x2a
python3 - <<'P'
import json
for p in ("runs/x2a/stages/stage5", "runs/x4/stages/stage7"):
  n = {}
  for line in open(p + "/results.jsonl"):
    d = json.loads(line)
    if "case" not in d: continue
    n[d["outcome"]] = n.get(d["outcome"], 0) + 1
    if d["outcome"] not in ("skipped", "passed") or ("kind_o" in d["case"] or "keep_up" in d["case"]) and d["outcome"] != "skipped":
        print(round(d["duration_s"], 1), d["outcome"], d["case"].split("::")[-1][:50], [(m["name"].split(".")[-1], round(m["value"], 3)) for m in d["measurements"]][:2], d["reason"][:150])
  print(p, n)
P
