# try3.sh OLD NEW
t0=$(date +%s); HERE=$(pwd); said() { echo "## $(( $(date +%s) - t0 )) s: $*"; }
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t && cd /tmp/t/new
git worktree add -q --detach /tmp/t/old $1; git worktree add -q --detach /tmp/t/try $2
cd $HERE; export PYTHONPATH=/tmp/site; nvidia-smi -L; said ready
T2="timeout 100 python3 $HERE/.gpu/turns.py 4 old=/tmp/t/old new=/tmp/t/try --"
$T2 weights:20M parameters:20M uniform:5M everything:5M 2>/dev/null; said turns
cd /tmp/t/try; export PYTHONPATH=/tmp/t/try/impl:/tmp/t/try:/tmp/site
(timeout 100 python3 -m pytest -q -n 8 -p no:cacheprovider --tb short suites/stage5_parity/test_cuda_engine.py -k "as_chosen" 2>&1 | tail -3; said checks) &
for k in parameters:20M weights:20M; do
  echo -e "prof 0\nquit 0" | timeout 100 ncu --clock-control none --profile-from-start off --set none --section SourceCounters --section WarpStateStats --section SpeedOfLight --section SchedulerStats -o /tmp/p-$k python3 $HERE/.gpu/worker.py $k 2>&1 | tail -2
  ncu --import /tmp/p-$k.ncu-rep --page details --csv > $OUT/d-${k%%:*}.csv 2>&1
  ncu --import /tmp/p-$k.ncu-rep --page source --csv > $OUT/s-${k%%:*}.csv 2>&1
  said $k
done
wait
cd $OUT; gzip -f *.csv; ls -la $OUT
