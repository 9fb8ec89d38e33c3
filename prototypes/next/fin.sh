t0=$(date +%s); since() { echo $(( $(date +%s) - t0 )); }
nvidia-smi -L; nproc
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t; tar xzf .gpu/exp.tgz -C /tmp
cd /tmp/exp; export PYTHONPATH=impl:.
run() { rm -rf /tmp/nce; NUMBA_CACHE_DIR=/tmp/nce timeout 40 python3 cpu_tl.py "$@" 2>&1 | grep -v Warn; }
BP_PW=0 run 1000000 32,1; BP_PW=24 run 1000000 32; BP_F=3 run 1000000 32; BP_F=3 BP_A=32 run 1000000 32; BP_PW=0 run 1000000 16 inhibition; echo "cpu $(since)"
cd /tmp/t/new && git checkout -q --detach K && git status --short | head -3; git log --oneline | head -1
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
timeout 55 python3 -m stages run stage5 stage6 stage7 --thorough --workers 20 --run runs/plan --only stage5 --time-limit 26 --first test_device --first test_queues_as_chosen > /tmp/run.log 2>&1; echo "stage5 $? $(since)"
timeout 125 python3 -m stages run --resume runs/plan --workers 20 --only stage6 --time-limit 100 --first test_what_the_card --first 'unequal rows' --first 'test_latency[1 M at 10%]' --first 'test_latency[100 K at 1%]' --first 'test_scaling_with_threads[1M' --first 'test_closed_loop[100' --first 'test_kind[fractions-1M' --first 'test_kind[microcircuit' >> /tmp/run.log 2>&1; echo "stage6 $? $(since)"
L=$(( ${1:-360} - $(since) ))
timeout $((L+12)) python3 -m stages run --resume runs/plan --workers 1 --only stage7 --time-limit $((L-8)) --first 'kind_over_devices[20000000-2-weights' --first 'kind_over_devices[20000000-2-uniform' --first 'kind_over_devices[20000000-2-inhibition' --first 'kind_over_devices[20000000-2-parameters' --first 'kind_over_devices[20000000-2-fractions' --first 'kind_over_devices[1000000-2' >> /tmp/run.log 2>&1; echo "stage7 $? $(since)"
cp /tmp/run.log $OUT/; tar cz --exclude=compiled -C /tmp/t/new runs/plan 2>/dev/null | split -b 15000000 - $OUT/run.
tail -5 /tmp/run.log; echo "end $(since)"
