nvidia-smi -L; python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
mkdir -p /tmp/t && tar xzf .gpu/new.tgz -C /tmp/t && cd /tmp/t/new && git checkout -q --detach K
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new:/tmp/site
timeout -s INT 190 python3 -m pytest -v -n 16 -p no:cacheprovider --tb short --bp-plan=thorough suites/stage5_parity/test_cuda_engine.py -k "as_chosen or queue or owner or layout or bins" > /tmp/checks.log 2>&1; grep -c PASSED /tmp/checks.log; grep "FAILED\|ERROR" /tmp/checks.log | head -20; tail -3 /tmp/checks.log; cp /tmp/checks.log $OUT/
