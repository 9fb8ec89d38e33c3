"""``parameters`` with and without every feature of neurons: a worker on stdin, or one ``check`` or ``prof``.

``bench.py serve NEURONS``: answers ``check``, ``time plain|feat``, ``hash``, ``quit``. ``bench.py prof NEURONS``: one
burst of each between ``cudaProfilerStart`` and ``Stop``.
"""

import hashlib
import os
import sys
import time
from dataclasses import replace

import numpy as np

from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Record, Stimulus
from burstproof.network.synthetic.kinds import seeded_network
from suites.support.bench.feature_networks import with_every_feature

SETTLED, WARM, MOST, SAMPLE_S = 200, 64, 2000, 0.04


def made(neurons):
    seeded = seeded_network("parameters", neurons, 100, 0.01, 3)
    network = seeded.network()
    start = {b: Stimulus(forced=ids) for b, ids in seeded.start().items()}
    return {"plain": network, "feat": with_every_feature(network)}, start


def checked(bursts):
    """30 bursts of 100 K neurons beside the CPU engine: lists, potentials, all of the state; then on from a state."""
    from burstproof.engine.cpu.engine import CpuEngine
    from suites.support.bench.cuda_bench import GENERAL, disagreements

    said = []
    for neurons in (100_000, 300_000):
        networks, start = made(neurons)
        with CpuEngine.create(networks["feat"], GENERAL) as judge:
            engine = CudaEngine.create(networks["feat"], EngineOptions())
            problems = list(disagreements(judge, engine, bursts, start, weights=True))
            for one in (judge, engine):
                one.run(130, record=Record.NONE)
            problems += judge.state().differences(engine.state())
            again = CudaEngine.create(networks["feat"], EngineOptions())
            again.restore(judge.state())
            problems += disagreements(judge, again, 5, {}, weights=True)
            said.append(f"{neurons}: {'OK' if not problems else '; '.join(map(str, problems[:3]))}")
            engine.close()
            again.close()
    return " ".join(said)


def digest(engine):
    state, found = engine.state(), hashlib.sha256()
    columns = [state.membrane_potentials, state.pending, state.refractory_countdowns, state.consecutive_fire_counts]
    if state.features is not None:
        f = state.features
        columns += [f.firing_rates, f.homeostat_leaks, f.trains, f.held_potentials, f.signals]
    for column in columns:
        found.update(np.ascontiguousarray(column).tobytes())
    return f"{state.burst_count}:{found.hexdigest()[:12]}"


def timed(engine, bursts):
    begun = time.perf_counter()
    engine.run(bursts, record=Record.NONE)
    return (time.perf_counter() - begun) / bursts * 1e6


def main():
    mode, neurons = sys.argv[1], int(sys.argv[2])
    if mode == "check":
        said = checked(30)
        print(said)
        sys.exit(said.count("OK") < 2)
    networks, start = made(neurons)
    options = EngineOptions()
    if mode == "prof":
        options = replace(options, cuda=replace(options.cuda, graphs=False))
    engines = {name: CudaEngine.create(network, options) for name, network in networks.items()}
    for engine in engines.values():
        engine.run(max(start) + 5, start)
        engine.run(SETTLED, record=Record.NONE)
    if mode == "prof":
        import cupy

        while not os.path.exists(os.environ["PROF_FLAG"]):
            time.sleep(0.1)
        cupy.cuda.profiler.start()
        for engine in engines.values():
            engine.run(3, record=Record.NONE)
        cupy.cuda.profiler.stop()
        return
    lengths = {}
    print("ready", flush=True)
    for line in sys.stdin:
        word = line.split()
        if word[0] == "quit":
            break
        if word[0] == "hash":
            print(" ".join(f"{name}={digest(engine)}" for name, engine in engines.items()), flush=True)
            continue
        engine = engines[word[1]]
        if word[1] not in lengths:
            lengths[word[1]] = int(np.clip(SAMPLE_S * 1e6 / timed(engine, 200), 50, MOST)) // WARM * WARM
        engine.run(WARM, record=Record.NONE)
        us = timed(engine, lengths[word[1]])
        fired = float(engine.run(16, record=Record.COUNTS).fired_counts.mean())
        print(us, fired, flush=True)
    for engine in engines.values():
        engine.close()


main()
