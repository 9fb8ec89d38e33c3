# features of neurons at 1 M: which part costs what (each variant checked against the CPU engine at 100 K), then ncu
mkdir -p $RES; export PYTHONPATH=$RES:$PYTHONPATH
cat > $RES/variants.py <<'PY'
"""Breakdown of the features of neurons: variants over the same generated rows."""
import sys, time
from dataclasses import replace
from statistics import median
import numpy as np
from burstproof.network.features import AreaFeatures, Features, Homeostat
from burstproof.network.model import FIRST_OWN_AREA_INDEX
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Record
import burstproof.engine.cuda.host.generate as generate
from burstproof.engine.layout import build_layout
from burstproof.engine.features.support import EVERYTHING
from burstproof.engine.cuda.plan.packed import featured, pack_layout
from suites.support.bench import feature_networks as fn
from suites.support.bench.rows import Row
from suites.support.bench.feature_networks import _drivers, _modulators, _OF_NEURONS, AREAS, TRAINED
from burstproof.network.synthetic.build import synthesize

def variant(network, homeostat, modulators, trains):
    if not (homeostat or modulators or trains):
        return network
    table, count = network.neurons, network.neuron_count
    drivers, driving = _drivers(count)
    areas = FIRST_OWN_AREA_INDEX + np.arange(count, dtype=np.int64) * AREAS // count
    areas[drivers] = driving
    columns = {"thresholds": np.float32(1), "refractory_periods": 0, "consecutive_fire_limits": 3, "snooze_periods": 4, "excitabilities": 1}
    changed = {name: np.array(getattr(table, name)) for name in columns}
    if trains:
        changed["excitabilities"] *= np.float32(TRAINED)
    for name, value in columns.items():
        changed[name][drivers] = value
    neurons = replace(table, cortical_areas=areas.astype(table.cortical_areas.dtype), **changed)
    every = AreaFeatures(Homeostat(target=0.01, leak_min=0.05) if homeostat else None, (0, 1, 2) if modulators else (), spike_train=trains)
    features = Features(_modulators(_OF_NEURONS, driving) if modulators else (), areas={int(one): every for one in np.unique(areas)})
    return network.replace(neurons=neurons, features=features)

CASES = {"plain": (0,0,0), "H": (1,0,0), "M": (0,1,0), "T": (0,0,1), "HM": (1,1,0), "HT": (1,0,1), "all": (1,1,1)}

def engine(row, case):
    from burstproof.engine.cuda.engine import CudaEngine
    generate.synthesize = lambda spec: variant(synthesize(spec), *map(bool, CASES[case]))
    generate.build_layout = lambda *a: build_layout(*a, modelled=EVERYTHING)
    generate.pack_layout = lambda network, *a: featured(pack_layout(network, *a), network, network.neuron_count, slice(None))
    return CudaEngine.from_spec(row.spec, EngineOptions())

def parity(row, case, bursts=20):
    from burstproof.engine.cpu.engine import CpuEngine
    from burstproof.engine.cuda.engine import CudaEngine
    from suites.support.bench.cuda_bench import GENERAL, disagreements
    network = variant(row.network(), *map(bool, CASES[case]))
    with CudaEngine.create(network, EngineOptions()) as cuda, CpuEngine.create(network, GENERAL) as cpu:
        return disagreements(cpu, cuda, bursts, row.start)
PY
cat > $RES/turns.py <<"PY"
"""One process per variant; set-up at once, then timed in turns under a lock."""
import fcntl, json, os, sys, time
from statistics import median
from variants import *
case, total, res = sys.argv[1], int(sys.argv[2]), os.environ["RES"]
small = Row(100_000, 0.01, checked_bursts=20, kind="parameters")
t0 = time.time()
problems = parity(small, case)
t1 = time.time()
assert not problems, (case, problems[0])
row = Row(1_000_000, 0.01, checked_bursts=6, kind="parameters")
e = engine(row, case)
e.run(6, row.start, Record.NONE); e.run(400, record=Record.NONE)
t2 = time.time()
open(f"{res}/ready-{case}", "w").close()
end = time.time() + 45
while sum(n.startswith("ready-") for n in os.listdir(res)) < total and time.time() < end:
    time.sleep(0.2)
times, fired = [], []
lock = open(f"{res}/lock", "w")
for _ in range(12):
    fcntl.flock(lock, fcntl.LOCK_EX)
    e.run(100, record=Record.NONE)
    b = time.perf_counter(); e.run(1000, record=Record.NONE); times.append(1e3 * (time.perf_counter() - b))
    fired.append(float(e.run(5, record=Record.COUNTS).fired_counts.mean()))
    fcntl.flock(lock, fcntl.LOCK_UN); time.sleep(0.02)
print(f"{case:6} {median(times):7.2f} us  min {min(times):7.2f} max {max(times):7.2f}  fired {sum(fired)/len(fired):8.0f}  parity 100K ok ({t1-t0:.0f} s), set-up {t2-t1:.0f} s", flush=True)
PY
cat > $RES/once.py <<"PY"
import sys
from dataclasses import replace
from variants import *
from burstproof.engine.options import CudaOptions
import variants
case = sys.argv[1]
row = Row(1_000_000, 0.01, checked_bursts=6, kind="parameters")
variants.EngineOptions = lambda: EngineOptions(cuda=CudaOptions(graphs=False))
e = engine(row, case)
e.run(6, row.start, Record.NONE); e.run(60, record=Record.NONE); e.run(3, record=Record.NONE)
PY
for c in plain H M T HM HT all; do timeout 80 python3 -W ignore $RES/turns.py $c 7 > $RES/$c.txt 2>&1 & done; wait
tail -qn 1 $RES/plain.txt $RES/[HMTa]*.txt
for c in plain all; do (timeout 75 ncu --clock-control none --set full -k 'regex:burst|modulate' -s 100 -c 2 -o $RES/$c -f python3 -W ignore $RES/once.py $c > $RES/$c.log 2>&1; ncu -i $RES/$c.ncu-rep --page details > $RES/$c.ncu.txt) & done; wait
for c in plain all; do echo "== $c"; grep -E 'burst|modulate|Duration|Registers|Achieved Occ|Theoretical Occ|DRAM Throughput|L2 Hit|Elapsed Cycles|Executed Ipc|Memory Throughput  ' $RES/$c.ncu.txt | cut -c1-120; done
