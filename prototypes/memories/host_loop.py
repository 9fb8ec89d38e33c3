"""Host time of a burst with memories over recorded lists, no device: ``host_loop.py FOLDER [profile]``."""

import cProfile
import pstats
import sys
import time

import numpy as np

from burstproof.engine.cuda.host.ahead import GrowingOnDevices
from burstproof.engine.cuda.host.loop_calls import loop_calls, write_nothing, write_packed
from burstproof.engine.cuda.kernels.mailbox import mail_length
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.options import EngineOptions
from burstproof.engine.sharded.shard import Fired
from burstproof.engine.state import Record
from suites.support.bench.feature_networks import with_memories
from suites.support.bench.rows import Row

SETTLED = 1300


class Lists:
    """What devices would say."""

    def __init__(self, path):
        with np.load(path) as found:
            ids, potentials, counts = found["ids"], found["potentials"], found["counts"]
        ends = np.concatenate([[0], np.cumsum(counts)]).tolist()
        self.lists = [ids[a:b] for a, b in zip(ends[:-1], ends[1:])]
        self.shown = [potentials[a:b] for a, b in zip(ends[:-1], ends[1:])]
        self.at = self.number = 0

    def lay_out(self, network, together):
        pass

    def give(self, stimulus, *more):
        self.number += 1
        if stimulus is None:
            write_nothing(MAIL, self.number)
            CALLS.ring(MAIL, self.number, 0, 0)
        else:
            write_packed(MAIL, stimulus, self.number)
            CALLS.ring(MAIL, self.number, len(stimulus.ids), len(stimulus.forced))
        return True

    def hear(self):
        self.at += 1
        ids = self.lists[self.at - 1].copy()
        return (ids, 5000) if NEW else ids

    def potentials(self):
        return self.shown[self.at - 1].copy()

    def leave(self):
        pass

    def signals(self, burst):
        return NO

    def burst(self, number, stimulus):
        self.at += 1
        return Fired(self.lists[self.at - 1].copy(), self.shown[self.at - 1].copy(), 5000)


NO, MAIL, CALLS = np.empty(0, np.float32), np.zeros(mail_length(65535), np.int64), loop_calls()
a = time.thread_time()
for _ in range(20000):
    time.thread_time()
OWN = (time.thread_time() - a) / 20000
NEW = hasattr(GrowingOnDevices, "_keep")
RECORDS = [Record(word) for word in sys.argv[2:] if word in ("none", "counts", "fired")] or [Record.NONE]


def spans(growing):
    """Mean time inside the parts of a burst."""
    found = {}
    machine, held = growing._machine, growing.held

    def wrap(owner, attribute):
        inner = getattr(owner, attribute)

        def outer(*a, **k):
            t = time.thread_time()
            try:
                return inner(*a, **k)
            finally:
                found[attribute] = found.get(attribute, 0.0) + time.thread_time() - t - OWN

        setattr(owner, attribute, outer)

    for owner, names in (
        (growing, "_give _stimulus settle _ended _keep _hear is_short_of_room"),
        (held, "give hear potentials"),
        (machine, "live_on take begin _send _by_area _learn _feed_twins _prune _new_divisors may_feed_twins"),
        (machine.memories, "fire after replay _promote _recognise"),
    ):
        for name in names.split():
            if hasattr(owner, name):
                wrap(owner, name)
    for one in machine.associations:
        for name in ("learn", "_fade", "_weigh", "_make", "remove"):
            if hasattr(one, name):
                wrap(one, name)
    return found


row = Row(100_000, 0.01)
network = row.network()
for associative in (False, True):
    one = with_memories(network, 1000, associative)
    point = plan_fixed_point(one, EngineOptions())
    for stepped, record in [(False, record) for record in RECORDS] + [(True, Record.NONE)] * ("stepped" in sys.argv):
        best = []
        for _ in range(2 if "profile" in sys.argv else 6):
            held = Lists(f"{sys.argv[1]}/lists{int(associative)}.npz")
            growing = GrowingOnDevices(one, point, held)
            early = []
            no_early = np.empty(0, np.uint32)

            def go(first, last):
                if stepped:
                    for number in range(first, last):
                        growing.step(number, None, no_early)
                    return
                with growing.ahead(*([record] if NEW else [])):
                    for number in range(first, last):
                        growing.advance(number, None, early)

            go(1, SETTLED)
            found = spans(growing) if "spans" in sys.argv else {}
            profile = cProfile.Profile()
            if "profile" in sys.argv:
                profile.enable()
            for first in range(SETTLED, len(held.lists) - 100, 100):
                b = time.process_time()
                go(first, first + 100)
                best.append((time.process_time() - b) * 1e4)
            profile.disable()
        print(
            f"associative {associative} {'stepped' if stepped else record.value}: {min(best):.1f} us process time a burst (lower quartile {np.percentile(best, 25):.1f})",
            flush=True,
        )
        if found:
            per = len(held.lists) - SETTLED
            print({k: round(v / per * 1e6, 1) for k, v in sorted(found.items(), key=lambda x: -x[1])})
        if "profile" in sys.argv:
            pstats.Stats(profile).sort_stats(
                *([s[5:] for s in sys.argv if s.startswith("sort=")] or ["tottime"])
            ).print_stats(45)
