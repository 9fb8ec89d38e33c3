# x4e.sh LIMIT KILL: resume: stage 5 kinds, then stage 7 on
t0=$(date +%s); cd /tmp/t/new
[ -f /tmp/run.done ] || { echo "still running"; sleep 20; }
cat > /tmp/go.sh <<G
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
cd /tmp/t/new
python3 -m stages run --resume runs/x4 --workers 48 $2 --time-limit $1 > /tmp/run.log 2>&1
echo "rc=\$?" >> /tmp/run.log; touch /tmp/run.done
G
rm -f /tmp/run.done
setsid nohup bash /tmp/go.sh > /dev/null 2>&1 < /dev/null &
bash "$OLDPWD/.gpu/x4wait.sh" $3
python3 - <<'P'
import json, os
for s in ("stage5","stage7"):
    p=f"runs/x4/stages/{s}/results.jsonl"
    if not os.path.exists(p): continue
    n=0
    for line in open(p):
        d = json.loads(line)
        if "case" in d:
            n+=1
            if d["outcome"] not in ("skipped","passed") or "kind_on_gpus" in d["case"] or ("kind_over" in d["case"] and d["measurements"]):
                print(round(d["duration_s"], 1), d["outcome"], d["case"].split("::")[-1][:50], [(m["name"].split(".")[-1], round(m["value"], 3)) for m in d["measurements"]][:2], d["reason"][:110])
    print(s, n, "cases")
P
