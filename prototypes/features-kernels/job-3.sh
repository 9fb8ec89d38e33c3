# features on one GPU: all recordings by the command, stage 5 cases, the fuzzer of features, the genome with all features
mkdir -p $RES; export PYTHONPATH=impl:.:$PYTHONPATH NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1
which mpiexec; python3 -c "import mpi4py" 2>&1 | tail -1
b=$(date +%s); ls suites/data/golden/features/*.npz | sed 's/.npz//' | timeout 100 xargs -P 15 -n 1 python3 -W ignore -m burstproof verify --backend cuda > $RES/verify.txt 2>&1
echo "verify --backend cuda: $(grep -c agrees $RES/verify.txt) agree, $(grep -c DIFFERS $RES/verify.txt) differ, of $(ls suites/data/golden/features/*.npz | wc -l), $(( $(date +%s) - b )) s"; grep -v agrees $RES/verify.txt | head -20 | cut -c1-300
python3 -W ignore - <<'PY'
import re, os
t = open(os.environ["RES"] + "/verify.txt").read()
n = [tuple(map(int, m)) for m in re.findall(r"fired lists (\d+) of (\d+) bursts, full state (\d+) of", t)]
print("bursts", sum(x[1] for x in n), "fired lists", sum(x[0] for x in n), "states", sum(x[2] for x in n))
PY
timeout 70 python3 -W ignore -m suites.support.parity.fuzz_campaign --backend cuda --cases 4000 --families 45 --seed 400000 --processes 15 --minutes 0.8 --out $RES/fuzz.json | tail -30
