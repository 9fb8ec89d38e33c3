# p1.sh KILL: the whole plan but stage 6, then stage 6 (limit $2 s), in the background
t0=$(date +%s); nvidia-smi -L; nproc
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t; cp -r .gpu /tmp/w
cd /tmp/t/new && git checkout -q --detach K && git status --short | head -3; git log --oneline | head -1
date +%s > /tmp/began
cat > /tmp/go.sh <<G
cd /tmp/t/new; export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
python3 -m stages run --thorough --workers 14 --run runs/plan --only harness --only stage1 --only stage2 --only stage3 --only stage4 --only stage5 --only stage7 > /tmp/run.log 2>&1
echo "rc=\$? at \$(( \$(date +%s) - \$(cat /tmp/began) ))" >> /tmp/run.log
LEFT=\$(( $2 - (\$(date +%s) - \$(cat /tmp/began)) ))
python3 -m stages run --resume runs/plan --workers 14 --only stage6 --time-limit \$LEFT --first test_what_the_card --first test_cpu --first 'test_kind[inhibition-100K' --first 'test_kind[everything-1M' --first 100K-brainevent --first test_latency --first test_closed_loop --first test_tensor --first test_int8 --first test_proof --first test_gpt --first test_attention >> /tmp/run.log 2>&1
echo "rc=\$? at \$(( \$(date +%s) - \$(cat /tmp/began) ))" >> /tmp/run.log; touch /tmp/run.done
G
rm -f /tmp/run.done
setsid nohup bash /tmp/go.sh > /dev/null 2>&1 < /dev/null &
bash /tmp/w/pwait.sh $(( $1 - ($(date +%s) - t0) ))
