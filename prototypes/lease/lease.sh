set -u
export PYTHONUNBUFFERED=1
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl 2>&1 | tail -1
export PYTHONPATH=/tmp/site
export OLD=$PWD TOOLS=$PWD/.gpu/tools RES=/tmp/res; mkdir -p $RES
git clone -q .gpu/all.bundle /tmp/r -b main
for b in buckets ahead2 neurons memories loop; do git -C /tmp/r worktree add -q --detach /tmp/t/$b origin/$b; done
cp -r /tmp/t/buckets /tmp/t/b1; sed -i "s/^_SHAPE, _FEATURED_SHAPE = FusedShape([0-9, ]*)/_SHAPE, _FEATURED_SHAPE = FusedShape(1024, 1)/; s/^_SHARED_BYTES = 200 << 10/_SHARED_BYTES = 100 << 10/; s/^_OWNERS = 132/_OWNERS = 264/" /tmp/t/b1/impl/burstproof/engine/cuda/plan/queues.py
nvidia-smi --query-gpu=name --format=csv,noheader
for b in ahead2 neurons memories loop; do (cd /tmp/t/$b; PYTHONPATH=impl:.:/tmp/site python3 -c "import suites.support.bench.cuda_bench" || echo BROKEN $b); done
echo "== ahead2 $SECONDS s"
( CHECK=3 timeout 90 python3 $TOOLS/turns.py 3 main=$OLD b1=/tmp/t/b1 new=/tmp/t/ahead2 -- everything:5M@main,new delays:5M@main,b1,new parameters:5M@main,b1,new fractions:5M@new 2> $OUT/e1.txt )
echo "== neurons $SECONDS s"
( cd /tmp/t/neurons; B=$PWD/prototypes/neurons; PYTHONPATH=$PWD/impl:$PWD:/tmp/site timeout 60 python3 $B/bench.py check 0 2> $OUT/e2c.txt || tail -5 $OUT/e2c.txt; timeout 70 python3 $B/turns.py 5 1000000 old=$OLD new=$PWD both=/tmp/t/ahead2 2> $OUT/e2.txt || tail -5 $OUT/e2.txt )
echo "== memories $SECONDS s"
( cd /tmp/t/memories; bash $OLD/.gpu/jobs/memories.sh ); cp $RES/*.err $OUT/ 2>/dev/null
echo "== loop $SECONDS s"
( cd /tmp/t/loop; bash $OLD/.gpu/jobs/loop.sh ); cp $RES/*.err $OUT/ 2>/dev/null
echo "== 20M $SECONDS s"
( timeout 75 python3 $TOOLS/turns.py 2 main=$OLD new=/tmp/t/ahead2 -- delays:20M everything:20M@new 2> $OUT/e3.txt )
echo "== end $SECONDS s"
