python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
export PYTHONPATH=/tmp/site; tar xzf .gpu/old.tgz -C /tmp; tar xzf .gpu/new.tgz -C /tmp; cp .gpu/ab2.py /tmp
timeout ${2:-200} python3 /tmp/ab2.py $1 old=/tmp/old,v0=/tmp/v0 2>&1 | grep -v Warn
