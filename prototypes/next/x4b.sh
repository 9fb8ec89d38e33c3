# x4b.sh KILL: wait on for stage 7
cd /tmp/t/new; bash /tmp/w/x4wait.sh $1; python3 /tmp/w/said.py
