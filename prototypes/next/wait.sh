# wait.sh SECONDS: until then, or until the run ends, keep its folder in $OUT. Ends at once on a machine without a run.
[ -f /tmp/go.sh ] || { echo "no run here: the machine was given back, and this is another one"; exit 1; }
t0=$(date +%s); N=$1
while [ ! -f /tmp/run.done ] && [ $(( $(date +%s) - t0 )) -lt $N ]; do
  sleep 5
  if [ $(( ($(date +%s) - t0) % 40 )) -lt 5 ]; then tar czf /tmp/run.tgz -C /tmp/t/new runs/plan 2>/dev/null; mv /tmp/run.tgz $OUT/run.tgz; fi
done
[ -f /tmp/run.done ] && sleep 1
tar czf /tmp/run.tgz -C /tmp/t/new runs/plan; mv /tmp/run.tgz $OUT/run.tgz
uptime; tail -c 2500 /tmp/run.log | tr '\r' '\n' | tail -25
