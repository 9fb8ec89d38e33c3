"""Engines for rows; asked on stdin: ``time I``, ``check I BURSTS``, ``after I BURSTS``, ``prof I``, ``quit``."""

import os
import sys
import time
from dataclasses import replace

import numpy as np

from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Record, Stimulus
from burstproof.network.synthetic.kinds import seeded_network
from suites.support.bench.cuda_bench import GENERAL, disagreements
from suites.support.bench.drawn_reference import DrawnReference
from suites.support.bench.implicit_reference import ImplicitReference


def parse(text):
    kind, n, *rest = text.split(":")
    n = int(float(n[:-1]) * {"K": 1e3, "M": 1e6}[n[-1]])
    opts = dict(x.split("=") for x in rest)
    return kind, n, opts


def made(text, options):
    kind, n, opts = parse(text)
    if kind == "microcircuit":
        seeded = seeded_network(kind, n, None, None, 3)
    else:
        seeded = seeded_network(kind, n, int(opts.get("fan", 100)), float(opts.get("rate", 0.01)), 3)
    if "told" in opts:
        options = replace(options, cuda=replace(options.cuda, firing_rate=float(opts.get("rate", 0.01))))
    if "block" in opts:
        options = replace(options, cuda=replace(options.cuda, block_size=int(opts["block"])))
    start = {b: Stimulus(forced=ids) for b, ids in seeded.start().items()}
    if seeded.plain:
        choice = ShardingChoice(tuple(range(int(opts["gpus"])))) if "gpus" in opts else None
        engine = CudaEngine.from_spec(seeded.spec, options, choice)
        network = None
    else:
        network = seeded.network()
        split = ()
        if "gpus" in opts:
            from burstproof.engine.sharded.partition import make_partition
            choice = ShardingChoice(tuple(range(int(opts["gpus"]))))
            split = make_partition(network, len(choice.devices), choice.strategy), choice
        engine = CudaEngine.create(network, options, *split)
    return seeded, network, engine, start


def judge_of(seeded, network, engine):
    if network is not None:
        from burstproof.engine.cpu.engine import CpuEngine

        return CpuEngine.create(network, GENERAL)
    return (ImplicitReference if seeded.kind == "uniform" else DrawnReference)(seeded.spec, engine.fixed_point)


def main():
    rows = sys.argv[1:]
    options = EngineOptions()
    if os.environ.get("NOGRAPH"):
        options = replace(options, cuda=replace(options.cuda, graphs=False))
    engines, lengths = [], {}
    for text in rows:
        t = time.time()
        item = made(text, options)
        engines.append(item)
        print(f"# {text} made in {time.time() - t:.1f} s; {item[2].launch}", file=sys.stderr, flush=True)
    print("ready", flush=True)
    started = set()

    def begin(i):
        if i not in started:
            _, _, engine, start = engines[i]
            engine.run(max(start) + 5, start)
            engine.run(60, record=Record.NONE)
            started.add(i)

    for line in sys.stdin:
        word = line.split()
        if word[0] == "quit":
            break
        i = int(word[1])
        seeded, network, engine, start = engines[i]
        if word[0] == "check":
            judge = judge_of(seeded, network, engine)
            found = disagreements(judge, engine, int(word[2]), start)
            started.add(i)
            engine.run(60, record=Record.NONE)
            print("OK" if not found else "DIFFERS " + "; ".join(found), flush=True)
            if hasattr(judge, "close"):
                judge.close()
        elif word[0] == "after":
            judge = judge_of(seeded, network, engine)
            judge.restore(engine.state())
            found = disagreements(judge, engine, int(word[2]), {})
            print("OK" if not found else "DIFFERS " + "; ".join(found), flush=True)
            if hasattr(judge, "close"):
                judge.close()
        elif word[0] == "time":
            begin(i)
            if i not in lengths:
                engine.run(200, record=Record.NONE)
                t = time.perf_counter()
                engine.run(200, record=Record.NONE)
                per = (time.perf_counter() - t) / 200
                lengths[i] = int(np.clip(0.04 / per, 50, 4000))
            n = lengths[i]
            engine.run(64, record=Record.NONE)
            t = time.perf_counter()
            engine.run(n, record=Record.NONE)
            us = (time.perf_counter() - t) / n * 1e6
            if network is None:
                events = (
                    float(engine.run(64, record=Record.COUNTS).fired_counts.mean()) * seeded.spec.synapses_per_neuron
                )
            else:
                r = engine.run(200, record=Record.FIRED)
                events = float(np.diff(network.row_order.offsets)[r.fired_ids].sum()) / 200
            print(us, events, flush=True)
        elif word[0] == "hash":
            import hashlib

            begin(i)
            s = engine.state()
            h = hashlib.sha256()
            for c in (s.membrane_potentials, s.pending, s.refractory_countdowns):
                h.update(np.ascontiguousarray(c).tobytes())
            print(s.burst_count if hasattr(s, "burst_count") else engine.burst_count, h.hexdigest()[:16], flush=True)
        elif word[0] == "prof":
            import cupy

            begin(i)
            cupy.cuda.profiler.start()
            engine.run(1, record=Record.NONE)
            cupy.cuda.profiler.stop()
            print("profiled", flush=True)
    for item in engines:
        item[2].close()


main()
