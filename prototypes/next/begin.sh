# begin.sh COMMIT ARGUMENTS OF stages run: set up a machine, and a run of the plan at COMMIT, detached.
# .gpu: new.tgz (tar of "new", a git clone that has COMMIT), this folder's files, run.tgz to resume; .whl and .gl as ever.
t0=$(date +%s); COMMIT=$1; shift
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
# a .pth, not PYTHONPATH alone: cases start processes with an environment of their own
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
[ -d /tmp/t/new ] || { mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t; }
[ -f .gpu/run.tgz ] && { rm -rf /tmp/t/new/runs/plan; tar xzf .gpu/run.tgz -C /tmp/t/new; }
cd /tmp/t/new && git checkout -q --detach $COMMIT && git log -1 --format=%h && git status --short | head -3; nvidia-smi -L; nproc
cat > /tmp/go.sh <<'G'
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
cd /tmp/t/new
python3 -m stages run "$@" > /tmp/run.log 2>&1
echo "rc=$?" >> /tmp/run.log; touch /tmp/run.done
G
rm -f /tmp/run.done
setsid nohup bash /tmp/go.sh "$@" > /dev/null 2>&1 < /dev/null &
echo "started after $(( $(date +%s) - t0 )) s"
