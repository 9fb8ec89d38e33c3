"""A featured network run in batches on the simulated device against the CPU engine: factors in blocks, sleep."""
import burstproof.engine.cuda.plan.tiles as tiles
tiles._FEW_NEURONS = 0
from variants import *
from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions, CudaOptions
from burstproof.engine.cuda.plan.packed import pack_network
from suites.support.bench.cuda_bench import disagreements
row = Row(1500, 0.2, checked_bursts=3, synapses_per_neuron=20, kind="parameters")
n = row.network()
for case in ("M", "all"):
    net = variant(n, *map(bool, CASES[case]))
    o = EngineOptions(cuda=CudaOptions(batch_length=5))
    v = pack_network(net, o).variant
    print(case, "sleeps", v.sleeps, "makes", v.makes_factors)
    with CudaEngine.create(net, o) as cuda, CpuEngine.create(net, EngineOptions(cpu=CpuOptions(specialise=False))) as cpu:
        for bursts in (1, 5, 7, 3):
            found = disagreements(cpu, cuda, bursts, row.start, weights=True)
            print(case, bursts, found[:2], flush=True)
