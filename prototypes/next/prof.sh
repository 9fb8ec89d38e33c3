# prof.sh KIND NEURONS [norl]: profile one burst and one binning; prints nothing, writes src.csv (a line per instruction), det.txt
ncu --clock-control none --set full -k 'regex:enqueue|burst' -s 100 -c 2 -f -o /tmp/rep python3 nc.py $1 $2 $3 > /tmp/ncu.log 2>&1
ncu --import /tmp/rep.ncu-rep --page source --csv > $OUT/src.csv
ncu --import /tmp/rep.ncu-rep --print-details all > $OUT/det.txt
