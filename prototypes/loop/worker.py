"""Closed loops of one tree; asked on stdin: ``check CALLS``, ``time STIMULATED CALLS``, ``account``, ``quit``."""

import hashlib
import sys
import time

import numpy as np

from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Stimulus
from burstproof.network.synthetic.kinds import seeded_network

clock = time.perf_counter
KINDS = {
    "100K": ("uniform", 100_000),
    "1M": ("uniform", 1_000_000),
    "delays": ("delays", 100_000),
    "everything": ("everything", 50_000),
    "law": ("power-law", 50_000),
}


def stimuli_for(neurons, stimulated, seed=0):
    rng = np.random.default_rng(stimulated + seed)
    ids = (np.sort(rng.choice(neurons, stimulated, replace=False)).astype(np.uint32) for _ in range(64))
    return [(chosen, np.ones(stimulated, np.float32)) for chosen in ids]


def mixed_calls(neurons, count):
    """0 to 2500 amounts of either sign, lengths that jump, and now and then forced firings."""
    rng = np.random.default_rng(7)
    for place in range(count):
        amounts = int(rng.choice([0, 3, 16, 31, 32, 33, 500, 1000, 1023, 1024, 1500, 2500]))
        forced = 20 if place % 7 == 0 else 0
        ids = np.sort(rng.choice(neurons, amounts + forced, replace=False)).astype(np.uint32)
        chosen = rng.permutation(len(ids)) < amounts
        yield ids[chosen], rng.integers(-3, 9, amounts).astype(np.float32), ids[~chosen]


def main():
    kind, neurons = KINDS[sys.argv[1]]
    seeded = seeded_network(kind, neurons, 100, 0.01, 3)
    start = {burst: Stimulus(forced=ids) for burst, ids in seeded.start().items()}
    network = None
    if seeded.plain and len(sys.argv) < 3:
        engine = CudaEngine.from_spec(seeded.spec, EngineOptions())
    else:
        network = seeded.network()
        engine = CudaEngine.create(network, EngineOptions())
    engine.run(max(start) + 5, start)
    loop = engine.closed_loop()
    loop.step()
    sets = {q: stimuli_for(neurons, q) for q in (0, 8, 16, 31, 32, 64, 128, 256, 512, 1000, 2000)}

    def timed(stimulated, calls, gap=0.0):
        pairs, found = sets[stimulated], []
        time.sleep(0.015)  # kernels of other trees have ended by themselves
        for place in range(calls):
            ids, amounts = pairs[place % 64]
            begin = clock()
            loop.step(ids, amounts)
            end = clock()
            found.append(end - begin)
            while gap and clock() - end < gap:
                pass
        return 1e6 * np.array(found)

    print("ready", type(loop).__name__, flush=True)
    for line in sys.stdin:
        word = line.split()
        if word[0] == "quit":
            break
        if word[0] == "check":
            judge, problems, digest = None, 0, hashlib.sha256()
            if network is not None:
                from burstproof.engine.cpu.engine import CpuEngine

                judge = CpuEngine.create(network, EngineOptions())
                judge.restore(engine.state())
            for place, (ids, amounts, forced) in enumerate(mixed_calls(neurons, int(word[1]))):
                got = loop.step(ids, amounts, forced)
                digest.update(got.tobytes())
                if judge is not None and not np.array_equal(judge.step(Stimulus(ids, amounts, forced)).fired_ids, got):
                    problems += 1
                if place % 50 == 17:
                    time.sleep(0.012)
            state = engine.state()
            for column in (state.membrane_potentials, state.pending, state.refractory_countdowns):
                digest.update(np.ascontiguousarray(column).tobytes())
            if judge is not None:
                problems += len(judge.state().differences(state))
                judge.close()
            print(digest.hexdigest()[:16], "cpu:" + ("none" if judge is None else "OK" if not problems else f"DIFFERS {problems}"), flush=True)
        elif word[0] == "time":
            t = timed(int(word[1]), 500 + int(word[2]))[500:]
            print(*(f"{np.percentile(t, p):.2f}" for p in (50, 99, 99.9)), flush=True)
        elif word[0] == "account":
            parts = []
            for stimulated in sets:
                busy, idle = np.median(timed(stimulated, 1700)[200:]), np.median(timed(stimulated, 300, 60e-6))
                parts.append(f"{stimulated}:{busy:.1f}/{idle:.1f}")
            print(" ".join(parts), flush=True)
    loop.close()
    engine.close()


main()
