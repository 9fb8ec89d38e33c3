# g11.sh LIMIT: old and new in turns, then the rows of stage 6 whose layout is another
t0=$(date +%s); nvidia-smi -L; nproc
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t; cp -r .gpu /tmp/w; W=/tmp/w
cd /tmp/t/new && git checkout -q --detach K && git worktree add -q /tmp/t/old d94e8843 && git status --short | head -3; git log --oneline | head -1
(unset PYTHONPATH; CHECK=3 timeout 250 python3 $W/turns.py 7 new=/tmp/t/new old=/tmp/t/old -- uniform:1M inhibition:3M:fan=30 parameters:3M:fan=30 fractions:3M:fan=30 delays:2M delays:1M:rate=0.1:told=1 everything:1M:rate=0.1:told=1 delays:500K:rate=0.05:told=1) 2>&1 | grep -v "^# .*made" | tail -14
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
echo "turns done $(( $(date +%s) - t0 ))"
F=""; for k in "test_kind[fractions-3M" "test_kind[parameters-3M" "test_kind[inhibition-3M" "test_kind[delays-1M-10pc" "test_kind[everything-1M-10pc" "test_kind[everything-1M" "test_kind[delays-1M" "test_kind[fractions-1M" "test_kind[power-law-1M" "test_kind[parameters-1M" "test_kind[inhibition-1M" "test_kind[everything-100K"; do F="$F --first $k"; done
rm -f /tmp/run.done
python3 -m stages run stage6 --thorough --workers 14 --run runs/x4 --time-limit $(( $1 - ($(date +%s) - t0) )) $F > /tmp/run.log 2>&1
tar czf $OUT/run.tgz -C /tmp/t/new runs/x4; cp /tmp/run.log $OUT/; tail -c 1500 /tmp/run.log; python3 $W/said6.py
