# features on two GPUs: all recordings by the command on shards, the fuzzer over shards, ranks with a GPU each
mkdir -p $RES; export PYTHONPATH=impl:.:$PYTHONPATH NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1 NCCL_NVLS_ENABLE=0
b=$(date +%s); ls suites/data/golden/features/*.npz | sed 's/.npz//' | timeout 120 xargs -P 30 -n 1 python3 -W ignore -m burstproof verify --shards 2 --backend cuda > $RES/verify.txt 2>&1
echo "verify --shards 2 --backend cuda: $(grep -c agrees $RES/verify.txt) agree, $(grep -c DIFFERS $RES/verify.txt) differ, of $(ls suites/data/golden/features/*.npz | wc -l), $(( $(date +%s) - b )) s"; grep -v agrees $RES/verify.txt | head -20 | cut -c1-300
which mpiexec && python3 -c "import mpi4py" && { timeout 150 python3 -W ignore -m pytest -q -p no:cacheprovider suites/stage7_multi_gpu/test_rank_nccl.py -k "nccl_and_hosts" --bp-results $RES/ranks.jsonl 2>&1 | tail -5; }
timeout 85 python3 -W ignore -m suites.support.parity.fuzz_campaign --backend cuda --shards 2 --cases 4000 --families 60 --seed 500000 --processes 30 --minutes 1 --out $RES/fuzz.json | tail -25
