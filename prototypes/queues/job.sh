# On a machine with an H200, from a checkout of this branch; OLD: a checkout of main, RES: a folder for results. 110 s.
set -u
here=prototypes/queues
nvcc -arch=sm_90 -O3 -std=c++17 -o "$RES/bins" $here/bins.cu &
sweep() { timeout 40 python3 -W ignore $here/sweep.py "$@" 2>&1 | tail -2; }
old() { (cd "$OLD" && PYTHONPATH="$OLD/impl:$OLD:$PYTHONPATH" timeout 40 python3 -W ignore "$NEW/$here/sweep.py" "$@" 2>&1 | tail -2); }
NEW=$PWD
old inhibition 5 none; old inhibition 5 queues; sweep inhibition 5 queues
sweep inhibition 5 queues ENQUEUE_THREADS=1024 ENQUEUE_BLOCKS=1 _BIN_BYTES=192512
sweep inhibition 5 queues _OWNERS=132
sweep inhibition 5 queues _PER_THREAD=4
wait
timeout 40 "$RES/bins" | tee "$RES/bins.txt"
for case in "fractions 5" "delays 5" "inhibition 20" "parameters 20"; do old $case own; sweep $case queues; done
names=gpu__time_duration.sum,smsp__inst_executed.sum,l1tex__data_bank_conflicts_pipe_lsu.sum,dram__bytes_read.sum
names=$names,lts__t_sectors_op_write.sum,sm__warps_active.avg.pct_of_peak_sustained_active
for case in "inhibition 5" "delays 5" "inhibition 20"; do
    timeout 60 ncu --clock-control none -k 'regex:owners_burst|make_enqueue' --launch-skip 30 --launch-count 4 \
        --metrics $names python3 -W ignore $here/sweep.py $case queues 2>&1 | grep -E "enqueue|burst|__" | cut -c1-110
done
