# x4.sh: whole plan on four GPUs, in the background
t0=$(date +%s); nvidia-smi -L; nproc
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t
cd /tmp/t/new && git checkout -q --detach K && git status --short | head -3; git log --oneline | head -1
cat > /tmp/go.sh <<'G'
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
cd /tmp/t/new; END=$1
left() { echo $(( END - $(date +%s) )); }
run() { echo "== $(date +%T) $*"; python3 -m stages run "$@"; echo "rc=$? $(date +%T)"; }
{ run --thorough --workers 48 --run runs/x4 --only stage7 --time-limit 1000 --first test_owners --first "kind_over_devices[20000000" --first "kind_over_devices"
[ $(left) -gt 60 ] && run --resume runs/x4 --workers 48 --only harness --only stage1 --only stage2 --only stage3 --only stage4 --only stage5 --time-limit $(left)
[ $(left) -gt 60 ] && run --resume runs/x4 --time-limit $(left) --first test_cpu_scaling --first "test_kind["
} > /tmp/run.log 2>&1
touch /tmp/run.done
G
setsid nohup bash /tmp/go.sh $(( t0 + $1 )) > /dev/null 2>&1 < /dev/null &
bash "$OLDPWD/.gpu/x4wait.sh" $2
