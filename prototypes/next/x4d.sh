# x4d.sh LIMIT KILL: stage 7, 20 M kinds first
t0=$(date +%s); nvidia-smi -L; nproc
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t
cd /tmp/t/new && git checkout -q --detach K && git status --short | head -3; git log --oneline | head -1
F=""; for k in 4-delays 4-everything 2-everything 4-fractions 2-fractions 4-parameters 2-parameters 4-inhibition 2-inhibition 4-uniform 2-uniform 4-weights 2-weights 2-delays; do F="$F --first kind_over_devices[20000000-$k"; done
cat > /tmp/go.sh <<G
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
cd /tmp/t/new
python3 -m stages run stage7 --thorough --workers 48 --run runs/x4 --time-limit $(( $1 - ($(date +%s) - t0) )) $F > /tmp/run.log 2>&1
echo "rc=\$?" >> /tmp/run.log; touch /tmp/run.done
G
rm -f /tmp/run.done
setsid nohup bash /tmp/go.sh > /dev/null 2>&1 < /dev/null &
bash "$OLDPWD/.gpu/x4wait.sh" $(( $2 - ($(date +%s) - t0) ))
python3 - <<'P'
import json
for line in open("runs/x4/stages/stage7/results.jsonl"):
    d = json.loads(line)
    if "case" in d and (d["outcome"] not in ("skipped","passed") or "kind_over" in d["case"] and d["measurements"] or "keep_up" in d["case"]):
        print(round(d["duration_s"], 1), d["outcome"], d["case"].split("::")[-1][:50], [(m["name"].split(".")[-1], round(m["value"], 3)) for m in d["measurements"]][:2], d["reason"][:150])
P
