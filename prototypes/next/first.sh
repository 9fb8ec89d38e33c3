# first.sh OLD: set up, try what no GPU has run, time OLD (a commit) against this one in turns. About 300 s.
# .gpu: new.tgz (tar of "new", a whole git clone at the commit to try), this folder's files; .whl and .gl as ever.
t0=$(date +%s); HERE=$(pwd); OLD=$1; said() { echo "## $(( $(date +%s) - t0 )) s: $*"; }
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t && cd /tmp/t/new && git status --short | head -3; git log -1 --format=%h
git worktree add -q --detach /tmp/t/old $OLD; git worktree add -q --detach /tmp/t/more HEAD
sed -i 's/^_SHARED_BYTES = .*/_SHARED_BYTES = 224 << 10/; s/^_LEAST_BUCKETED_SLOT, _LEAST_WIDE_SLOT = .*/_LEAST_BUCKETED_SLOT, _LEAST_WIDE_SLOT = 7 << 20, 7 << 20/; s/^_MANY_NEURONS, _NARROW_BITS = .*/_MANY_NEURONS, _NARROW_BITS = 2_000_000, 4/' \
  /tmp/t/more/impl/burstproof/engine/cuda/plan/queues.py
git -C /tmp/t/more diff --stat | tail -1
nvidia-smi -L; nproc; said set up
cd /tmp/t/new; export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new:/tmp/site
timeout 170 python3 -m pytest -q -n 16 --dist worksteal -p no:cacheprovider --maxfail 8 --tb short \
  suites/stage5_parity/test_sanitizer.py suites/stage5_parity/test_kinds.py suites/stage5_parity/test_cuda_engine.py \
  suites/stage5_parity/test_closed_loop.py -k "sanitizer or queues_as_chosen or loop_equals or test_trains or \
  (on_gpus and not plastic and not power and not microcircuit)" > $OUT/smoke.log 2>&1
tail -25 $OUT/smoke.log; said smoke
for turn in 1 2; do
  t=$(date +%s%N)
  python3 -m pytest -q -p no:cacheprovider -k cuda suites/stage5_parity/test_closed_loop.py::test_a_loop_equals_the_reference | tail -1
  echo "process $turn: $(( ($(date +%s%N) - t) / 1000000 )) ms"
done
said processes
cd $HERE; T="python3 $HERE/.gpu/turns.py 4 old=/tmp/t/old new=/tmp/t/new more=/tmp/t/more --"
export PYTHONPATH=/tmp/site
both() { for row in "$@"; do echo $row@old,new; done; }  # groups fit into 80 GB
$T weights:20M $(both parameters:20M) 2>/dev/null; said 20M
$T $(both fractions:20M everything:20M) 2>/dev/null; said 20M
$T delays:20M uniform:5M $(both weights:5M) weights:2M@new,more uniform:2M@new,more 2>/dev/null; said 20M and 5M
$T $(both parameters:5M fractions:5M delays:5M everything:5M) fractions:2M@new,more delays:2M@new,more 2>/dev/null; said 5M
$T $(both weights:1M parameters:1M delays:1M weights:100K everything:100K) fractions:1M everything:1M 2>/dev/null
said 1M and 100K
