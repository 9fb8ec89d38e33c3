# rec.sh COMMIT LIMIT WAIT
cd /tmp/t/new && git worktree prune && git checkout -q --detach $1 && git status --short | head -3
cat > /tmp/go.sh <<'G'
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
cd /tmp/t/new
python3 -m stages run stage6 --thorough --workers 16 --run runs/kinds "$@" > /tmp/run.log 2>&1
echo "rc=$?" >> /tmp/run.log; touch /tmp/run.done
G
rm -f /tmp/run.done; t0=$(date +%s)
setsid nohup bash /tmp/go.sh --time-limit $2 --first "latency[1 M at 10%" --first "weights-5M" --first "inhibition-5M" --first "parameters-5M" --first "fractions-5M" --first "delays-5M" --first "everything-5M" --first "latency[5 M at 1%" --first "weights-20M" --first "inhibition-20M" --first "parameters-20M" --first "fractions-20M" --first "delays-20M" --first "everything-20M" --first "latency[20 M at" --first "latency[100 M at" --first "inhibition-100M" --first "1M]" --first "1M-10pc" --first "100K]" --first "weights-100M" --first "latency[1 M at 1%]" --first "latency[100 K at 1%]" --first "latency[500 K" > /dev/null 2>&1 < /dev/null &
while [ ! -f /tmp/run.done ] && [ $(( $(date +%s) - t0 )) -lt $3 ]; do sleep 4
  if [ $(( ($(date +%s) - t0) % 40 )) -lt 4 ]; then tar czf /tmp/run.tgz -C /tmp/t/new runs/kinds 2>/dev/null; mv /tmp/run.tgz $OUT/run.tgz; fi
done
tar czf /tmp/run.tgz -C /tmp/t/new runs/kinds; mv /tmp/run.tgz $OUT/run.tgz; cp /tmp/run.log $OUT/; tail -c 1500 /tmp/run.log
