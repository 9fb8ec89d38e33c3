# stage 6 rows of features in their present form; the 100 K rows first, then the million
mkdir -p $RES
timeout 175 python3 -W ignore -m pytest suites/stage6_performance/test_cuda_features.py -p no:cacheprovider -q -rs --bp-results $RES/rows.jsonl -k "memories or rules" --durations=0 2>&1 | tail -30 | cut -c1-220
timeout 175 python3 -W ignore -m pytest suites/stage6_performance/test_cuda_features.py -p no:cacheprovider -q -rs --bp-results $RES/rows2.jsonl -k "features_of_neurons" --durations=0 2>&1 | tail -30 | cut -c1-220
python3 - <<'PY'
import json, os
for f in ("rows", "rows2"):
    for line in open(f"{os.environ['RES']}/{f}.jsonl"):
        d = json.loads(line)
        for m in d.get("measurements", ()):
            print(m["name"], round(m["value"], 3), m["unit"], {k: v for k, v in m["conditions"].items() if k in ("features", "live", "associative")}, m.get("note"))
PY
# where the host's time of associations goes
cat > $RES/profile.py <<'PY'
import cProfile, pstats, time
from suites.support.bench.rows import Row
from suites.support.bench.feature_networks import with_memories
from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Record
row = Row(100_000, 0.01, checked_bursts=60)
network = row.network()
for assoc in (False, True):
    with CudaEngine.create(with_memories(network, 1000, assoc), EngineOptions()) as e:
        e.run(20, row.start, Record.NONE); e.run(1200, record=Record.NONE)
        b = time.perf_counter(); e.run(1000, record=Record.NONE); print("associative", assoc, round(1e3 * (time.perf_counter() - b), 1), "us a burst")
        p = cProfile.Profile(); p.enable(); e.run(2000, record=Record.NONE); p.disable()
        pstats.Stats(p).sort_stats("tottime").print_stats(28)
PY
timeout 60 python3 -W ignore $RES/profile.py > $RES/profile.txt 2>&1; grep -v "^$" $RES/profile.txt | cut -c1-130
