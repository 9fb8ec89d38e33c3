# .gpu: new.tgz (git clone of the commit), start.sh, wait.sh; .whl and .gl as the device page says
# start.sh ARGUMENTS OF stages run: set up, and start it detached

t0=$(date +%s)
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t
[ -f .gpu/cache.tgz ] && tar xzf .gpu/cache.tgz -C $HOME
[ -f .gpu/run.tgz ] && { rm -rf /tmp/t/new/runs/plan; tar xzf .gpu/run.tgz -C /tmp/t/new; }
cd /tmp/t/new && git status --short | head -3; git log -1 --format=%h
date; nvidia-smi -L
cat > /tmp/go.sh <<'G'
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new:/tmp/site
cd /tmp/t/new
python3 -m stages run "$@" > /tmp/run.log 2>&1
echo "rc=$?" >> /tmp/run.log; touch /tmp/run.done
G
rm -f /tmp/run.done
setsid nohup bash /tmp/go.sh "$@" > /dev/null 2>&1 < /dev/null &
echo started after $(( $(date +%s) - t0 )) s
