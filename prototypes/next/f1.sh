t0=$(date +%s); since() { echo "== $(( $(date +%s) - t0 ))"; }
nvidia-smi -L; nproc
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
mkdir -p /tmp/t; tar xzf .gpu/new.tgz -C /tmp/t; tar xzf .gpu/b.tgz -C /tmp
cd /tmp/b; timeout ${1:-130} python3 ab2.py weights:20000000:2,weights:5000000:1,weights:5000000:1:norl,parameters:5000000:1,uniform:20000000:1,delays:5000000:1 base=/tmp/b/base,new=/tmp/t/new | cut -c1-170 | grep "SAME\|{"; since
cd /tmp/t/new && git checkout -q --detach K && git status --short | head -3; git log --oneline | head -1
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
L=${2:-190}
timeout $((L+20)) python3 -m stages run stage5 stage6 stage7 --thorough --workers 24 --run runs/plan --only stage5 --time-limit $L --first test_queues_as_chosen --first test_bins_as_chosen --first test_sanitizer --first test_device --first test_kind_on_gpus > /tmp/run.log 2>&1; echo "stage5 $?"; since
tail -4 /tmp/run.log
