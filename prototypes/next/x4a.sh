# x4a.sh KILL: stage 5's kinds and warm-up side by side, then stage 7 in the background
t0=$(date +%s); nvidia-smi -L; nproc; free -g | head -2
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t; W=/tmp/w; cp -r .gpu $W
cd /tmp/t/new && git checkout -q --detach K && git status --short | head -3; git log --oneline | head -1
export GPUS=${GPUS:-4}
cat > /tmp/go.sh <<G
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new GPUS=$GPUS
cd /tmp/t/new
(timeout 220 python3 $W/warm7.py > /tmp/warm.log 2>&1; echo "warm ended \$(( \$(date +%s) - $t0 ))" >> /tmp/warm.log) &
WARM=\$!
python3 -m stages run stage5 --thorough --workers 10 --run runs/x4p --first kind_on_gpus --first test_kind --first test_integers_are_bounded > /tmp/run5.log 2>&1 &
FIVE=\$!
python3 $W/until.py runs/x4p/stages/stage5/results.jsonl kind_on_gpus 25 270
kill -INT \$FIVE; wait \$FIVE; echo "five rc=\$? at \$(( \$(date +%s) - $t0 ))" >> /tmp/run5.log
kill \$WARM 2>/dev/null; wait \$WARM; pkill -f warm7.py
touch /tmp/five.done
python3 -m stages run stage7 --thorough --workers 24 --run runs/x4 --time-limit ${LIMIT:-1000} --first 'kind_over_devices[20000000-4' --first 'kind_over_devices[20000000-2' --first 'kind_over_devices[1000000-4' --first 'kind_over_devices[1000000-2' --first keep_up > /tmp/run.log 2>&1
echo "rc=\$?" >> /tmp/run.log; touch /tmp/run.done
G
rm -f /tmp/run.done
setsid nohup bash /tmp/go.sh > /tmp/go.log 2>&1 < /dev/null &
bash $W/x4wait.sh $(( $1 - ($(date +%s) - t0) ))
tail -c 700 /tmp/run5.log; tail -4 /tmp/warm.log; grep -c " 0 " /tmp/warm.log; tar czf $OUT/five.tgz runs/x4p; cp /tmp/warm.log $OUT
python3 $W/said.py
