# h6.sh KILL: old and new in turns while rows are compiled, then stage 6 in the background (LIMIT s)
t0=$(date +%s); nvidia-smi -L; nproc
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t; cp -r .gpu /tmp/w; W=/tmp/w
cd /tmp/t/new && git checkout -q --detach K && git worktree add -q /tmp/t/old 9fb274a6 && git status --short | head -3; git log --oneline | head -1
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
timeout 150 python3 $W/warm.py > /tmp/warm.log 2>&1 &
WARM=$!
(unset PYTHONPATH; CHECK=3 timeout 120 python3 $W/turns.py 5 new=/tmp/t/new old=/tmp/t/old -- power-law:5M:fan=25) 2>&1 | tail -12
wait $WARM; tail -3 /tmp/warm.log; grep -vc " 0 " /tmp/warm.log; echo "prepared $(( $(date +%s) - t0 ))"
F=""; for k in test_kind[ test_latency test_closed_loop test_memories test_ahead test_features_of test_vision test_cuda_against test_overlap test_what_a_launch; do F="$F --first $k"; done
cat > /tmp/go.sh <<G
cd /tmp/t/new
python3 -m stages run stage6 --thorough --workers 14 --run runs/x4 --time-limit $LIMIT $F > /tmp/run.log 2>&1
echo "rc=\$?" >> /tmp/run.log; touch /tmp/run.done
G
rm -f /tmp/run.done
setsid nohup bash /tmp/go.sh > /dev/null 2>&1 < /dev/null &
bash "$W/x4wait.sh" $(( $1 - ($(date +%s) - t0) )); python3 $W/said6.py
