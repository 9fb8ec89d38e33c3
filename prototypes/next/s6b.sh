# s6.sh LIMIT WAIT: stage 6 whole on one H200, in the background, for a lease of 30 minutes; then x4wait.sh WAIT while warm
t0=$(date +%s); nvidia-smi -L; nproc
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t
W=$PWD/.gpu
cd /tmp/t/new && git checkout -q --detach K && git status --short | head -3; git log --oneline | head -1
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
ONLY=1 timeout 60 python3 $W/warm.py > /tmp/warm.log 2>&1; tail -c 3500 /tmp/warm.log; echo "prepared $(( $(date +%s) - t0 ))"
F=""; for k in test_same_build test_closed_loop "test_latency[20" "test_latency[100 M" test_memories test_features_of test_vision test_ahead test_overlap; do F="$F --first '$k'"; done
cat > /tmp/go.sh <<G
cd /tmp/t/new
python3 -m stages run stage6 --thorough --workers 16 --run runs/x4 --time-limit $(( $1 - ($(date +%s) - t0) )) $F > /tmp/run.log 2>&1
echo "rc=\$?" >> /tmp/run.log; touch /tmp/run.done
G
rm -f /tmp/run.done
setsid nohup bash /tmp/go.sh > /dev/null 2>&1 < /dev/null &
bash "$W/x4wait.sh" $(( $2 - ($(date +%s) - t0) ))
