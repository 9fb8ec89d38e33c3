"""Host time of a burst with memories over recorded lists, no device: ``host_loop.py FOLDER [profile]``."""

import cProfile
import pstats
import sys
import time

import numpy as np

from burstproof.engine.cuda.host.ahead import GrowingOnDevices
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.options import EngineOptions
from burstproof.engine.sharded.shard import Fired
from suites.support.bench.feature_networks import with_memories
from suites.support.bench.rows import Row

SETTLED = 1300


class Lists:
    """What devices would say."""

    def __init__(self, path):
        with np.load(path) as found:
            self.ids, self.potentials, counts = found["ids"], found["potentials"], found["counts"]
        ends = np.concatenate([[0], np.cumsum(counts)]).tolist()
        self.lists = [self.ids[a:b] for a, b in zip(ends[:-1], ends[1:])]
        self.shown = [self.potentials[a:b] for a, b in zip(ends[:-1], ends[1:])]
        self.at = 0

    def lay_out(self, network, together):
        pass

    def give(self, stimulus, *more):
        return True

    def hear(self):
        self.at += 1
        return self.lists[self.at - 1].copy()

    def leave(self):
        pass

    def signals(self, burst):
        return NO

    def burst(self, number, stimulus):
        self.at += 1
        return Fired(self.lists[self.at - 1].copy(), self.shown[self.at - 1].copy(), 5000)


NO = np.empty(0, np.float32)
row = Row(100_000, 0.01)
network = row.network()
for associative in (False, True):
    one = with_memories(network, 1000, associative)
    point = plan_fixed_point(one, EngineOptions())
    for stepped in (False, True):
        best = []
        for _ in range(2 if "profile" in sys.argv else 3):
            held = Lists(f"{sys.argv[1]}/lists{int(associative)}.npz")
            growing = GrowingOnDevices(one, point, held)
            early = []
            no_early = np.empty(0, np.uint32)

            def go(first, last):
                if stepped:
                    for number in range(first, last):
                        growing.step(number, None, no_early)
                    return
                with growing.ahead():
                    for number in range(first, last):
                        growing.advance(number, None, early)

            go(1, SETTLED)
            profile = cProfile.Profile()
            if "profile" in sys.argv:
                profile.enable()
            a, b = time.perf_counter(), time.process_time()
            go(SETTLED, len(held.lists))
            a, b = time.perf_counter() - a, time.process_time() - b
            profile.disable()
            best.append(b / (len(held.lists) - SETTLED) * 1e6)
        print(f"associative {associative} stepped {stepped}: {min(best):.1f} us process time a burst", flush=True)
        if "profile" in sys.argv:
            pstats.Stats(profile).sort_stats("tottime").print_stats(22)
