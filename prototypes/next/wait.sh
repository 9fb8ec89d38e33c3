# wait.sh SECONDS [cache]: until then, or until the run ends, keep its folder in $OUT; at the end the caches, too
t0=$(date +%s); N=$1
while [ ! -f /tmp/run.done ] && [ $(( $(date +%s) - t0 )) -lt $N ]; do
  sleep 5
  if [ $(( ($(date +%s) - t0) % 40 )) -lt 5 ]; then tar czf /tmp/run.tgz -C /tmp/t/new runs/plan 2>/dev/null; mv /tmp/run.tgz $OUT/run.tgz; fi
done
[ -f /tmp/run.done ] && sleep 1
tar czf /tmp/run.tgz -C /tmp/t/new runs/plan; mv /tmp/run.tgz $OUT/run.tgz
if [ "$2" = cache ]; then du -sh $HOME/.cache/* $HOME/.cupy 2>/dev/null; tar czf $OUT/cache.tgz -C $HOME .cache/burstproof 2>/dev/null; ls -la $OUT; fi
uptime; tail -c 2500 /tmp/run.log | tr '\r' '\n' | tail -25; ps aux --sort=-%cpu | head -8 | cut -c1-150
