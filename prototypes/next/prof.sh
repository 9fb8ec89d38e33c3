nvidia-smi -L; t0=$(date +%s); here=$PWD
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
echo /tmp/site > "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/site_of_wheels.pth"
for f in .gl/*.deb; do dpkg -x $f /; done; ldconfig
mkdir -p /tmp/t /tmp/o && tar xzf .gpu/new.tgz -C /tmp/t && cd /tmp/t/new && git checkout -q --detach K
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new
cat > /tmp/pp.py <<'P'
import pstats, sys, io
out = io.StringIO(); p = pstats.Stats(sys.argv[1], stream=out); p.strip_dirs()
p.sort_stats("tottime").print_stats(35); p.sort_stats("cumtime").print_stats(110)
open(sys.argv[2], "w").write("\n".join(l[:150] for l in out.getvalue().splitlines()))
P
one() { name=$1; shift; s=$(date +%s); timeout -s INT $1 python3 -m cProfile -o /tmp/o/$name.prof -m pytest -p no:cacheprovider -p no:xdist -q --tb short --bp-plan=thorough --durations=0 "${@:2}" > /tmp/o/$name.log 2>&1; echo "$name $(( $(date +%s) - s )) s: $(tail -1 /tmp/o/$name.log)"; python3 /tmp/pp.py /tmp/o/$name.prof /tmp/o/$name.txt; }
F=suites/stage5_parity/test_features.py
s=$(date +%s); timeout -s INT 70 python3 -m pytest -p no:cacheprovider -v -n 16 --tb short --bp-plan=thorough --durations=60 $F -k cuda > /tmp/o/feat16.log 2>&1; echo "features -n 16: $(( $(date +%s) - s )) s $(grep -c PASSED /tmp/o/feat16.log) passed"
one feat1 35 $F -k cuda
s=$(date +%s); timeout -s INT 45 python3 -m pytest -p no:cacheprovider -v -n 8 --tb short --bp-plan=thorough --durations=60 $F -k cuda > /tmp/o/feat8.log 2>&1; echo "features -n 8: $(( $(date +%s) - s )) s $(grep -c PASSED /tmp/o/feat8.log) passed"
one kind20e 70 suites/stage6_performance/test_cuda_kinds.py -k "test_kind and everything-20M"
one kind100w 90 suites/stage6_performance/test_cuda_kinds.py -k "test_kind and weights-100M"
one kind100k 50 suites/stage6_performance/test_cuda_kinds.py -k "test_kind and weights-100K"
one curves 100 suites/stage6_performance/test_cuda_curves.py
one tuner 100 suites/stage6_performance/test_tuner.py -k "2 M or 250"
one fneur 70 suites/stage6_performance/test_cuda_features.py -k "features_of_neurons"
one stream 80 suites/stage6_performance/test_streaming.py -k "varied and 10%"
one mil 90 suites/stage5_parity/test_kinds.py -k "plastic-1"
tar czf $OUT/o.tgz -C /tmp o; echo total $(( $(date +%s) - t0 ))
