"""One tree's engines: plain, with memories, with associations; asked on stdin by ``gpu_turns.py``."""

import json
import sys
import time

import numpy as np

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Record
from suites.support.bench.feature_networks import with_memories
from suites.support.bench.rows import Row

import burstproof.engine.cuda.host.ahead as ahead

ahead.PAYS = 0  # otherwise after 65536 bursts
row, LIVE, CHECKED = Row(100_000, 0.01), 1000, 1200
network = row.network()
networks = {
    "plain": network,
    "memories": with_memories(network, LIVE),
    "associations": with_memories(network, LIVE, True),
}
begun = time.time()
engines = {}
first = {}
for name, one in networks.items():
    a = time.time()
    engines[name] = CudaEngine.create(one, EngineOptions())
    b = time.time()
    engines[name].run(LIVE + 200, row.start, Record.NONE)
    first[name] = (round(b - a, 2), round(time.time() - b, 2))
print("ready", json.dumps(first), flush=True)


def check(name):
    """1200 bursts from the start of each record, in pieces of several lengths, beside the CPU engine."""
    problems = []
    with (
        CpuEngine.create(networks[name], EngineOptions()) as judge,
        CudaEngine.create(networks[name], EngineOptions()) as engine,
    ):
        start = engine.state()
        want = judge.run(CHECKED, row.start, Record.FIRED)
        end = judge.state()
        for record in Record:
            engine.restore(start)
            parts, left = [], CHECKED
            for length in (40, 0, 1, 31, 32, 33, 500, CHECKED):
                length = min(length, left)
                left -= length
                parts.append(engine.run(length, row.start, record))
            problems += [f"{record.value}: {field}" for field in end.differences(engine.state())]
            got = {f: np.concatenate([getattr(p, f) for p in parts]) for f in vars(want)}
            for field, values in got.items():
                wanted = getattr(want, field)
                if record is Record.NONE or (
                    record is Record.COUNTS and field.startswith("fired_") and field != "fired_counts"
                ):
                    wanted = wanted[:0]
                if wanted.tobytes() != values.tobytes():
                    problems.append(f"{record.value}: recorded {field}")
    return problems


def timed(name, how, bursts):
    engine, progress = engines[name], None
    if how.endswith("+"):
        how, progress = how[:-1], (lambda done: None)
    a = time.perf_counter()
    engine.run(bursts, record=Record(how), progress=progress)
    return (time.perf_counter() - a) / bursts * 1e6


def loop(calls):
    rng = np.random.default_rng(3)
    ids = np.sort(rng.choice(100_000, 16, replace=False)).astype(np.uint32)
    amounts = np.ones(16, np.float32)
    with engines["plain"].closed_loop() as one:
        took = []
        for _ in range(calls):
            a = time.perf_counter()
            one.step(ids, amounts)
            took.append(time.perf_counter() - a)
    return float(np.median(took[calls // 10 :])) * 1e6


def profile(name, how, bursts):
    """Mean us a burst inside each step of a run; they nest."""
    engine = engines[name]
    growing, found = engine._growing, {}

    def wrap(owner, attribute):
        inner = getattr(owner, attribute)

        def outer(*a, **k):
            t = time.perf_counter()
            try:
                return inner(*a, **k)
            finally:
                found[attribute] = found.get(attribute, 0.0) + time.perf_counter() - t

        setattr(owner, attribute, outer)
        return lambda: delattr(owner, attribute)

    machine, held = growing._machine, growing.held
    owners = [
        (growing, "advance"),
        (growing, "_give"),
        (growing, "_stimulus"),
        (held, "give"),
        (growing, "settle"),
        (machine, "live_on"),
    ]
    owners += [
        (machine, "_learn"),
        (machine.memories, "after"),
        (machine.memories, "replay"),
        (growing, "_hear"),
        (machine, "begin"),
    ]
    owners += [(held, "hear"), (machine, "take"), (machine, "_send"), (machine, "_by_area"), (held, "potentials")]
    undo = [wrap(o, a) for o, a in owners if hasattr(o, a)]
    whole = timed(name, how, bursts)
    for one in undo:
        one()
    return {"whole": round(whole, 1), **{k: round(v / bursts * 1e6, 1) for k, v in found.items()}}


for line in sys.stdin:
    word = line.split()
    if word[0] == "check":
        print(json.dumps(check(word[1])), flush=True)
    elif word[0] == "time":
        print(timed(word[1], word[2], int(word[3])), flush=True)
    elif word[0] == "loop":
        print(loop(int(word[1])), flush=True)
    elif word[0] == "profile":
        print(json.dumps(profile(word[1], word[2], int(word[3]))), flush=True)
    else:
        break
for engine in engines.values():
    engine.close()
