# SECONDS: 80  WANTS: which steps of loading ahead pay at 1 M (cap: limit of registers; cols: parameters by the draw; due: state before a calendar's bucket; mark: marks beside wide words; rows: rows prefetched by the draw; pal: palette in shared memory; new: and words from a guessed slot, first piece of long rows); p100: a palette for 100 K, too
rm -f $RES/ahead.go
for t in cap=acc38830 cols=529775f2 due=4a00d5aa mark=d047743a rows=caa42c27 pal=55885d21; do mkdir -p $RES/a_${t%=*}; git archive ${t#*=} | tar x -C $RES/a_${t%=*}; done
cp -r $PWD $RES/a_p100; sed -i 's/^_FEW_NEURONS = 200_000/_FEW_NEURONS = 0/' $RES/a_p100/impl/burstproof/engine/cuda/plan/entries.py
a=$RES/a_
WAIT_FLAG=$RES/ahead.go timeout 85 python3 $TOOLS/turns.py 3 old=$OLD cap=${a}cap cols=${a}cols due=${a}due mark=${a}mark rows=${a}rows pal=${a}pal new=$PWD p100=${a}p100 -- everything:1M@old,due,rows,new fractions:1M@old,cols,mark,rows,pal,new parameters:1M@old,cols,rows,new delays:1M@old,cap,due,new weights:1M@old,rows,new fractions:100K@old,new,p100 power-law:100K@old,new everything:1M:rate=0.1@old,new > $RES/ahead.txt 2> $RES/ahead.err &
main=$!
echo "parity with the reference on the host (new alone):"
CHECK=6 timeout 45 python3 $TOOLS/turns.py 1 new=$PWD -- parameters:300K fractions:300K everything:300K delays:300K weights:300K 2> $RES/ahead.check.err
touch $RES/ahead.go
wait $main
cat $RES/ahead.txt
rm -rf ${a}* $RES/ahead.go
