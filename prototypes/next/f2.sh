t0=$(date +%s); since() { echo "== $(( $(date +%s) - t0 ))"; }
cd /tmp/t/new; export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
L=${1:-180}
timeout $((L+20)) python3 -m stages run --resume runs/plan --workers 1 --only stage6 --time-limit $L --first test_what_the_card --first 'test_latency[5 M at 1%' --first 'test_kind[weights-5M' --first 'test_kind[inhibition-5M' --first 'test_kind[parameters-5M' --first 'test_kind[fractions-5M' --first 'test_kind[delays-5M' --first 'test_kind[everything-5M' --first 'test_latency[1 M at 10%' --first 'test_latency[20 M at 1%' --first 'test_kind[weights-20M' >> /tmp/run.log 2>&1; echo "stage6 $?"; since
M=${2:-200}
timeout $((M+12)) python3 -m stages run --resume runs/plan --workers 1 --only stage7 --time-limit $((M-8)) --first 'kind_over_devices[20000000-2-weights' --first 'kind_over_devices[20000000-2-uniform' --first 'kind_over_devices[20000000-2-inhibition' --first 'kind_over_devices[20000000-2-parameters' --first 'kind_over_devices[20000000-2-fractions' >> /tmp/run.log 2>&1; echo "stage7 $?"; since
cp /tmp/run.log $OUT/; tar cz --exclude=compiled -C /tmp/t/new runs/plan 2>/dev/null | split -b 15000000 - $OUT/run.
tail -5 /tmp/run.log; since
