# In a checkout of this branch on an H200: $OLD is a checkout of main, $RES a folder for results. Most
# important rows first; how long it takes was never measured, each row ends after 150 s at the latest.
# Each row is first compared with the CPU engine, burst by burst and from a state on, then measured in turns, and
# compared again. The steps of the branch are trees of their own: words, calendar (and words), all (and loads ahead).
set -u
HERE=$PWD/prototypes/onem-words
mkdir -p $RES
RES=$(realpath $RES) OLD=$(realpath $OLD)
step() {
    commit=$(git log --format=%H --grep="$2" -1)
    [ -d $RES/$1 ] || git worktree add -q --detach $RES/$1 $commit
}
step words "Rows that the device makes have a palette, too"
step calendar "A calendar's places are reserved once per row and delay"
TREES="old=$OLD words=$RES/words calendar=$RES/calendar all=$PWD"
ROWS="fractions:1M everything:1M delays:1M weights:1M inhibition:1M parameters:1M everything:1M:rate=0.1"
ROWS="$ROWS fractions:100K everything:100K delays:100K microcircuit:77K uniform:1M"
for row in $ROWS; do
    AFTER=1 timeout 150 python3 $HERE/turns.py 5 $TREES -- $row 2>> $RES/turns.err | tee -a $RES/turns.log
done
# Blocks of 256 threads, of which more fit where a kernel has 40 registers or waits for loads.
for row in fractions:1M:block=256 everything:1M:block=256 parameters:1M:block=256; do
    CHECK=0 timeout 90 python3 $HERE/turns.py 3 $TREES -- $row 2>> $RES/turns.err | tee -a $RES/turns.log
done
PROF=1 NOGRAPH=1 timeout 120 ncu --target-processes all --profile-from-start off --clock-control none --cache-control none \
    --kernel-name-base mangled -k regex:make_burst --set full -f -o $RES/prof \
    python3 $HERE/turns.py 1 old=$OLD all=$PWD -- fractions:1M everything:1M parameters:1M > $RES/prof.log 2>&1
ncu -i $RES/prof.ncu-rep --page details > $RES/details.txt 2>&1
grep -v "^# all ready" $RES/turns.log
grep -c "DIFFERS\|BROKEN\|FAILED" $RES/turns.log
