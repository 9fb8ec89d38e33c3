t0=$(date +%s)
save() { tar czf /tmp/run.tgz -C /tmp/t/new runs/x4 2>/dev/null; mv /tmp/run.tgz $OUT/run.tgz; cp /tmp/run.log $OUT/; }
while [ ! -f /tmp/run.done ] && [ $(( $(date +%s) - t0 )) -lt $1 ]; do sleep 5
  [ $(( ($(date +%s) - t0) % 60 )) -lt 5 ] && save
done
save; grep -v "^ *$" /tmp/run.log | tail -c 2500; free -g | head -2; uptime
