cd /tmp/t/new; bash /tmp/w/x4wait.sh $1; python3 /tmp/w/said7.py
