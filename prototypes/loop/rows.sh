# SECONDS: 88  WANTS: goal B of loop: whether blocks of long rows that find their next pieces while they send pay (power law 100 K 6.7, 1 M 15.5; microcircuit 7.35, goal 6), and with how many blocks (new: a quarter of the device, half, full). The microcircuit is built on the host: its line comes last, if it is ready in time
for d in 2 1; do cp -r $PWD $RES/r_$d; sed -i "s#full_grid(_LONG_ROW_BLOCK) // 4#full_grid(_LONG_ROW_BLOCK) // $d#" $RES/r_$d/impl/burstproof/engine/cuda/host/fused_batch.py; done
rm -f $RES/rows.go $RES/circuit.go
WAIT_FLAG=$RES/circuit.go timeout 87 python3 $TOOLS/turns.py 2 old=$OLD new=$PWD -- microcircuit:77.169K > $RES/circuit.txt 2> $RES/circuit.err &
circuit=$!
WAIT_FLAG=$RES/rows.go timeout 80 python3 $TOOLS/turns.py 3 old=$OLD new=$PWD half=$RES/r_2 full=$RES/r_1 -- power-law:100K power-law:1M > $RES/rows.txt 2> $RES/rows.err &
main=$!
echo "parity with the reference on the host (new alone):"
CHECK=6 timeout 45 python3 $TOOLS/turns.py 1 new=$PWD -- power-law:100K 2> $RES/rows.check.err
touch $RES/rows.go
wait $main
cat $RES/rows.txt
touch $RES/circuit.go
wait $circuit
cat $RES/circuit.txt
rm -rf $RES/r_1 $RES/r_2 $RES/rows.go $RES/circuit.go
