# SECONDS: 85  WANTS: whether a closed loop whose stimulus is read with the call, whose replies are taken line by line and whose host side does less reaches p50 <= 14 us (100 K, 16 and 1000 stimulated), <= 32 (1 M), p99.9 <= 40; account: p50 by number of stimulated neurons, calls back to back / 60 us apart; peek: without adding stimulus by atomics
mkdir -p $RES/l_peek; git archive b7d39154 | tar x -C $RES/l_peek
timeout 88 python3 $PWD/prototypes/loop/turns.py 3 20000 old=$OLD peek=$RES/l_peek new=$PWD 2> $RES/loop.err || tail -5 $RES/loop.err
rm -rf $RES/l_peek
