# fin.sh KILL LIMIT6: CPU experiment, stage 5 with warm-up beside it, stage 7's kinds, stage 6 up to LIMIT6 s after the start
t0=$(date +%s); echo $t0 > /tmp/began; since() { echo $(( $(date +%s) - t0 )); }
nvidia-smi -L; nproc
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t; cp -r .gpu /tmp/w
cd /tmp/t/new && git checkout -q --detach K && git status --short | head -3; git log --oneline | head -1; echo "ready $(since)"
cat > /tmp/go.sh <<G
cd /tmp/t/new; export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
since() { echo \$(( \$(date +%s) - $t0 )); }
timeout 75 python3 /tmp/w/cpu_exp.py > /tmp/cpu.log 2>&1; echo "cpu \$(since)" >> /tmp/run.log
(CUDA_VISIBLE_DEVICES=1 timeout 75 python3 /tmp/w/warm.py $(echo weights-100K,inhibition-100K,parameters-100K,fractions-100K,delays-100K,everything-100K,plastic-100K,power-law-100K,areas-100K,microcircuit-77K,uniform-100K,uniform-1M,weights-1M,inhibition-1M,parameters-1M,fractions-1M,delays-1M,everything-1M,power-law-1M,areas-1M,plastic-1M) > /tmp/warm.log 2>&1) &
timeout 120 python3 -m stages run stage5 stage6 stage7 --thorough --workers 20 --run runs/plan --only stage5 --time-limit 78 --first kind_on_gpus --first test_device --first test_a_loop --first test_cases_on_cuda --first test_restored >> /tmp/run.log 2>&1
echo "stage5 rc=\$? at \$(since)" >> /tmp/run.log; wait
timeout 110 python3 -m stages run --resume runs/plan --workers 1 --only stage7 --time-limit 80 --first 'kind_over_devices[1000000-2' >> /tmp/run.log 2>&1
echo "stage7 rc=\$? at \$(since)" >> /tmp/run.log
LEFT=\$(( $2 - \$(since) ))
timeout \$((LEFT + 25)) python3 -m stages run --resume runs/plan --workers 20 --only stage6 --time-limit \$LEFT $(for f in test_what_the_card 'test_kind[weights-100K' 'test_kind[inhibition-100K' 'test_kind[parameters-100K' 'test_kind[fractions-100K' 'test_kind[delays-100K' 'test_kind[everything-100K' 'test_kind[microcircuit' 'test_kind[power-law' 'test_kind[plastic-100K' 'test_kind[areas-100K' 'test_latency[500' 'test_latency[1 M at 1%]' 'test_kind[weights-1M' 'test_kind[inhibition-1M' 'test_kind[parameters-1M' 'test_kind[fractions-1M' 'test_kind[delays-1M]' 'test_kind[everything-1M]' what_a_launch 'test_closed_loop[100' test_memories test_vision 'test_latency[5' 'test_kind[weights-5M' 'test_kind[inhibition-5M' 'test_kind[parameters-5M' 'test_kind[fractions-5M' 'test_kind[delays-5M' 'test_kind[everything-5M' test_ahead test_scaling 'test_closed_loop[1 M' 'test_kind[areas-1M' 'test_kind[everything-1M-10pc' 'test_latency[1' test_genome_on_a_gpu test_rules test_features_of 'test_kind[' test_latency; do printf -- "--first '%s' " "$f"; done) >> /tmp/run.log 2>&1
echo "stage6 rc=\$? at \$(since)" >> /tmp/run.log; touch /tmp/run.done
G
rm -f /tmp/run.done; setsid nohup bash /tmp/go.sh > /tmp/go.log 2>&1 < /dev/null &
bash /tmp/w/fwait.sh $(( $1 - $(since) ))
