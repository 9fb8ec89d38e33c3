# s6.sh LIMIT WAIT: stage 6 whole on one H200, in the background, for a lease of 30 minutes; then s6wait.sh WAIT while warm (30 s)
t0=$(date +%s); nvidia-smi -L; nproc
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t
cd /tmp/t/new && git checkout -q --detach K && git status --short | head -3; git log --oneline | head -1
cat > /tmp/go.sh <<G
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
cd /tmp/t/new
python3 -m stages run stage6 --thorough --workers 16 --run runs/x4 --time-limit $(( $1 - ($(date +%s) - t0) )) > /tmp/run.log 2>&1
echo "rc=\$?" >> /tmp/run.log; touch /tmp/run.done
G
rm -f /tmp/run.done
setsid nohup bash /tmp/go.sh > /dev/null 2>&1 < /dev/null &
bash "$OLDPWD/.gpu/x4wait.sh" $(( $2 - ($(date +%s) - t0) ))
