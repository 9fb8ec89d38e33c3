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
