# try4.sh A B C D
t0=$(date +%s); HERE=$(pwd); said() { echo "## $(( $(date +%s) - t0 )) s: $*"; }
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t && cd /tmp/t/new
for c in $*; do git worktree add -q --detach /tmp/t/$c $c; done
cd $HERE; export PYTHONPATH=/tmp/site; nvidia-smi -L; said ready
A=/tmp/t/$1; B=/tmp/t/$2; C=/tmp/t/$3; D=/tmp/t/$4
timeout 100 python3 $HERE/.gpu/turns.py 3 base=$A flush=$B rec=$C four=$D -- weights:20M@base,flush,four parameters:20M@flush,rec 2>/dev/null; said turns
timeout 100 python3 $HERE/.gpu/turns.py 3 base=$A flush=$B rec=$C four=$D three=/tmp/t/$5 -- everything:20M@flush,rec fractions:20M@flush,rec weights:20M@four,three 2>/dev/null; said turns
timeout 100 python3 $HERE/.gpu/turns.py 3 base=$A flush=$B rec=$C four=$D three=/tmp/t/$5 -- uniform:5M@base,flush,four,three weights:3M@base,four,three parameters:5M@flush,rec everything:5M@base,flush,rec fractions:2M@flush,rec delays:5M@base,flush,four,three 2>/dev/null; said turns
cd $D; export PYTHONPATH=$D/impl:$D:/tmp/site
timeout 150 python3 -m pytest -q -n 14 -p no:cacheprovider --tb short suites/stage5_parity/test_cuda_engine.py -k "as_chosen" 2>&1 | tail -3; said checks
