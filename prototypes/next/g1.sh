# g1.sh LIMIT: experiments and what has not run
t0=$(date +%s); nvidia-smi -L; nproc; at() { echo "== $1 $(( $(date +%s) - t0 )) s"; }
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t; W=$PWD/.gpu; cd /tmp/t/new; git checkout -q --detach K; git log --oneline | head -1
git worktree add -q --detach /tmp/t/old 38ebffe6
for v in buck buckA buckB shA; do git worktree add -q --detach /tmp/t/$v K; done
Q=impl/burstproof/engine/cuda/plan/queues.py
for v in buck buckA buckB; do sed -i 's/^_LEAST_BUCKETED_SLOT = .*/_LEAST_BUCKETED_SLOT = 2 << 20/' /tmp/t/$v/$Q; done
for v in buckA shA; do sed -i 's/FusedShape(1024, 3), FusedShape(1024, 2), Fused/FusedShape(1024, 2), FusedShape(1024, 2), Fused/' /tmp/t/$v/$Q; done
sed -i 's/FusedShape(1024, 3), FusedShape(1024, 2), Fused/FusedShape(1024, 1), FusedShape(1024, 1), Fused/' /tmp/t/buckB/$Q
cat > /tmp/pt.py <<'P'
import subprocess, sys, os
ws = {}
for name in ("new", "old"):
    p = f"/tmp/t/{name}"
    ws[name] = subprocess.Popen([sys.executable, sys.argv[1] + "/runs.py"], cwd=p, env=dict(os.environ, PYTHONPATH=f"{p}/impl:{p}"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for n, w in ws.items(): print(n, w.stdout.readline().strip())
for r in range(2):
    for n, w in ws.items():
        w.stdin.write("go\n"); w.stdin.flush(); print(n, w.stdout.readline().strip(), flush=True)
for w in ws.values(): w.stdin.write("quit\n"); w.stdin.flush(); w.stdin.close(); w.wait()
P
timeout 100 python3 /tmp/pt.py $W; at runs
CHECK=30 timeout 170 python3 $W/turns.py 5 new=/tmp/t/new buck=/tmp/t/buck buckA=/tmp/t/buckA buckB=/tmp/t/buckB shA=/tmp/t/shA -- everything:1M@new,buck,buckA,buckB delays:1M@new,buck,buckA uniform:1M:rate=0.1@new,shA parameters:5M@new,shA; at turns
cat > /tmp/go.sh <<G
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
cd /tmp/t/new
python3 -m stages run stage6 --thorough --workers 16 --run runs/x4 --time-limit $(( $1 - ($(date +%s) - t0) )) --first test_what_the_card "--first" "test_latency[1 M at 10" --first test_ahead --first test_overlap --first test_tuner --first test_streaming > /tmp/run.log 2>&1
echo "rc=\$?" >> /tmp/run.log; touch /tmp/run.done
G
rm -f /tmp/run.done
setsid nohup bash /tmp/go.sh > /dev/null 2>&1 < /dev/null &
bash "$W/x4wait.sh" $(( $2 - ($(date +%s) - t0) ))
