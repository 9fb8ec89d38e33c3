t0=$(date +%s); HERE=$(pwd)
nvidia-smi -L | grep -q H200 || { nvidia-smi -L; exit 1; }
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t && cd /tmp/t/new
for b in K K2; do git worktree add -q --detach /tmp/t/$b $b; done
cd $HERE; export PYTHONPATH=/tmp/site; nvidia-smi -L
timeout 75 python3 $HERE/.gpu/turns.py 3 own=/tmp/t/K2 res=/tmp/t/K -- uniform:20M parameters:20M everything:5M fractions:5M weights:3M 2>/dev/null; echo "## $(( $(date +%s) - t0 )) s"
