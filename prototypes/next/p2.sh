# p2.sh KILL LIMIT: go on with runs/plan (at 48a9f653): what is left of stage 6 (243 cases), in the background (LIMIT s)
t0=$(date +%s); nvidia-smi -L; nproc
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/plan_clone.tgz -C /tmp/t; cp -r .gpu /tmp/w; W=/tmp/w
cd /tmp/t/new && git checkout -q --detach K && tar xzf $W/plan.tgz && git status --short | head -3; git log --oneline | head -1
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
timeout 110 python3 $W/warm.py > /tmp/warm.log 2>&1; tail -2 /tmp/warm.log
git status --short | head -3; echo "prepared $(( $(date +%s) - t0 ))"
F=""; for k in 'test_kind[weights-100K' 'test_kind[parameters-100K' 'test_kind[fractions-100K' 'test_kind[delays-100K' 'test_kind[everything-100K' 'test_kind[plastic-100K' 'test_kind[areas' 1M] 5M] 20M] '10pc]' 'x30]' '77K]' power-law-100K test_latency test_closed_loop test_memories test_features_of_neurons test_rules_with test_vision test_genome_on_a_gpu test_cuda_against test_overlap test_what_a_launch test_same_build 1M-brainevent 5M-brainevent test_ahead ; do F="$F --first $k"; done
cat > /tmp/go.sh <<G
cd /tmp/t/new
python3 -m stages run --resume runs/plan --workers 14 --only stage6 --time-limit $2 $F > /tmp/run.log 2>&1
echo "rc=\$?" >> /tmp/run.log; touch /tmp/run.done
G
rm -f /tmp/run.done
setsid nohup bash /tmp/go.sh > /dev/null 2>&1 < /dev/null &
bash "$W/pwait.sh" $(( $1 - ($(date +%s) - t0) ))
