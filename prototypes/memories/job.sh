# SECONDS: 85  WANTS: what memories add to a burst (goal 60 us) for runs that record nothing, counts, lists, with and without associations, old and new tree; parity with the CPU engine over 1200 bursts first
timeout 88 python3 $PWD/prototypes/memories/gpu_turns.py 8 old=$OLD new=$PWD 2> $RES/memories.err
tail -3 $RES/memories.err
