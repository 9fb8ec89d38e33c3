# try.sh OLD NEW: two commits in turns, about 150 s, and what no GPU has run of NEW. Files as for begin.sh.
t0=$(date +%s); HERE=$(pwd); said() { echo "## $(( $(date +%s) - t0 )) s: $*"; }
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t && cd /tmp/t/new
git worktree add -q --detach /tmp/t/old $1; git worktree add -q --detach /tmp/t/try $2
cd $HERE; export PYTHONPATH=/tmp/site; T="python3 $HERE/.gpu/turns.py 4 old=/tmp/t/old new=/tmp/t/try --"
$T weights:20M fractions:20M uniform:20M uniform:5M fractions:5M fractions:2M weights:5M 2>/dev/null; said queues
$T everything:20M delays:5M everything:5M 2>/dev/null; said buckets
cd /tmp/t/try; export PYTHONPATH=/tmp/t/try/impl:/tmp/t/try:/tmp/site
timeout 150 python3 -m pytest -q -n 12 -p no:cacheprovider --tb short suites/stage5_parity/test_cuda_engine.py \
  suites/stage5_parity/test_sanitizer.py -k "as_chosen or sanitizer" 2>&1 | tail -4; said checks
cd $HERE; git -C /tmp/t/new worktree remove --force /tmp/t/old; git -C /tmp/t/new worktree remove --force /tmp/t/try
