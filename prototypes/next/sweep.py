"""A sweep of networks for outliers: ``sweep.py`` all; ``sweep.py one TEXT``."""
import fcntl, json, os, subprocess, sys, time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

LOCK = "/tmp/sweep.lock"
T0 = float(os.environ.get("T0", time.time()))
LIMIT = float(os.environ.get("LIMIT", 500))


def base(text):
    kind, n, *rest = text.split(":")
    o = dict(x.split("=") for x in rest)
    return kind, int(float(n[:-1]) * {"K": 1e3, "M": 1e6}[n[-1]]), o


def changed(network, mod, rng):
    import numpy as np
    from burstproof.network.model import SynapseTable
    s = network.synapses
    n, m = network.neuron_count, len(s)
    names = ("source_neurons", "target_neurons", "weights", "delay_bursts", "types", "postsynaptic_potentials")
    src, dst, w, d, ty, psp = (np.array(getattr(s, k)) for k in names)
    if mod == "hub":       # a fifth of all synapses onto a hundred neurons
        hit = rng.random(m) < 0.2
        dst[hit] = rng.integers(0, 100, int(hit.sum())).astype(dst.dtype)
    elif mod == "zipf":
        u = rng.random(m)
        dst = (n * u ** 4).astype(dst.dtype)
    elif mod == "local":   # neighbours on a line
        dst = ((src.astype(np.int64) + rng.integers(-50, 51, m)) % n).astype(dst.dtype)
    elif mod == "next":    # every row the same contiguous block
        dst = ((src.astype(np.int64) // 1000 * 1000 + np.arange(m) % 100 * 7) % n).astype(dst.dtype)
    elif mod == "const15":
        d[:] = 15
    elif mod == "two":
        d[:] = np.where(src % 5 == 0, 8, 15)
    elif mod == "four":
        d[:] = 3 + 4 * rng.integers(0, 4, m)
    elif mod == "eight":
        d[:] = 2 + 2 * rng.integers(0, 8, m)
    elif mod == "rowfour":
        d[:] = 3 + 4 * (src % 4)
    elif mod == "d64":
        d = rng.integers(1, 65, m).astype(d.dtype)
    elif mod == "d255":
        d = rng.integers(1, 256, m).astype(d.dtype)
    elif mod == "dup":
        dst = (src.astype(np.int64) * 7919 % n).astype(dst.dtype)
    elif mod == "float":
        w = rng.integers(1, 256, m).astype(w.dtype); psp = (rng.random(m) * 2).astype(psp.dtype)
    elif mod == "shuffled":   # synapses in no order
        p = rng.permutation(m)
        src, dst, w, d, ty, psp = (x[p] for x in (src, dst, w, d, ty, psp))
    elif mod == "silent":     # nine tenths of the neurons have no synapses
        keep = src % 10 == 0
        src, dst, w, d, ty, psp = (x[keep] for x in (src, dst, w, d, ty, psp))
    table = SynapseTable.build(src, dst, weights=w, delay_bursts=d, types=ty, postsynaptic_potentials=psp)
    return replace(network, synapses=table)


def one(text):
    import numpy as np
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
    from burstproof.engine.options import EngineOptions, CudaOptions
    from burstproof.engine.state import Record, Stimulus
    from burstproof.network.synthetic.kinds import seeded_network
    from suites.support.bench.cuda_bench import GENERAL, disagreements
    kind, n, o = base(text)
    fan, rate = int(o.get("fan", 100)), float(o.get("rate", 0.01))
    import burstproof.engine.cuda.plan.queues as queues, burstproof.engine.cuda.plan.tiles as tiles
    if "q" in o: queues._pays = lambda *a, **k: o["q"] == "1"
    if "r" in o: queues._pays, tiles._with_calendar = (lambda *a, **k: False), (lambda variant, *a, **k: variant)
    import burstproof.engine.cuda.plan.entries as entries
    if "pal" in o: entries._FEW_NEURONS = 0
    if "ringb" in o: tiles._RING_BYTES = int(o["ringb"]) << 20
    if "ring" in o: queues._pays, tiles._RING_BYTES = (lambda *a, **k: False), 1 << 40
    seeded = seeded_network(kind, n, *((None, None) if kind == "microcircuit" else (fan, rate)), 11)
    start = {b: Stimulus(forced=i) for b, i in seeded.start().items()}
    options = EngineOptions(cuda=CudaOptions(firing_rate=rate)) if "told" in o else EngineOptions()
    t = time.time()
    network = None
    if seeded.plain and "mod" not in o and n * fan > 20_000_000:
        engine = CudaEngine.from_spec(seeded.spec, options, None)
    else:
        network = seeded.network()
        if "mod" in o:
            network = changed(network, o["mod"], np.random.default_rng(5))
            start = {b: Stimulus(forced=np.random.default_rng(b).choice(n, max(1, int(n * rate)), replace=False).astype(np.uint32)) for b in range(1, min(256, 1 + int(network.synapses.delay_bursts.max())))}
            for s in start.values(): s.forced.sort()
        engine = CudaEngine.create(network, options)
    made = time.time() - t
    verdict = "unchecked"
    if network is not None and len(network.synapses.source_neurons) <= 101_000_000 and "nocheck" not in o:
        from burstproof.engine.cpu.engine import CpuEngine
        judge = CpuEngine.create(network, GENERAL)
        found = disagreements(judge, engine, max(start) + 4, start)
        verdict = "OK" if not found else "DIFFERS " + "; ".join(found)[:200]
        judge.close()
    else:
        engine.run(max(start) + 4, start)
    engine.run(3, record=Record.NONE); engine.run(2, record=Record.FIRED); engine.run(100, record=Record.NONE)
    print("ready", flush=True)
    sys.stdin.readline()
    engine.run(100, record=Record.NONE)
    t = time.perf_counter(); engine.run(100, record=Record.NONE); per = (time.perf_counter() - t) / 100
    count = int(np.clip(0.03 / per, 50, 4000)); us = []
    for _ in range(6):
        t = time.perf_counter(); engine.run(count, record=Record.NONE); us.append((time.perf_counter() - t) / count * 1e6)
    step = []
    for _ in range(60):
        t = time.perf_counter(); engine.step(); step.append((time.perf_counter() - t) * 1e6)
    r = engine.run(32, record=Record.FIRED)
    fired = len(r.fired_ids) / 32
    if network is None:
        events = fired * fan
    else:
        degree = np.bincount(network.synapses.source_neurons, minlength=n)
        events = float(degree[r.fired_ids].sum()) / 32
    print(json.dumps(dict(text=text, us=min(us), med=sorted(us)[3], step=sorted(step)[30], fired=fired, events=events, made=made, check=verdict, launch=str(engine.launch)[:400])), flush=True)
    engine.close()


def main():
    rows = [x for x in open(sys.argv[1]).read().split() if not x.startswith("#")]
    out = os.path.join(os.environ.get("OUT", "/tmp"), "sweep.jsonl")
    done, live = [], {}
    def start(text):
        if time.time() - T0 > LIMIT - 60: return
        p = subprocess.Popen([sys.executable, __file__, "one", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(f"/tmp/err{rows.index(text)}", "w"), text=True)
        if p.stdout.readline().strip() == "ready": live[text] = p
        else: done.append(dict(text=text, failed=open(f"/tmp/err{rows.index(text)}").read()[-300:]))
    with ThreadPoolExecutor(int(os.environ.get("POOL", 15))) as pool: list(pool.map(start, rows))
    print("built", round(time.time() - T0), len(live), flush=True)
    for text in rows:
        if text not in live: continue
        p = live[text]; p.stdin.write("go\n"); p.stdin.flush(); line = p.stdout.readline()
        done.append(json.loads(line) if line.startswith("{") else dict(text=text, failed=open(f"/tmp/err{rows.index(text)}").read()[-300:]))
        with open(out, "a") as f: f.write(json.dumps(done[-1]) + "\n")
        p.wait()
    for d in done:
        if "failed" in d: print("FAILED", d["text"], d["failed"][-160:].replace("\n", " ")); continue
        k, n, o = base(d["text"]); c = {"uniform": 1, "weights": 1.1, "inhibition": 1.15, "parameters": 1.6, "fractions": 1.7, "delays": 1.9, "everything": 2.4}.get(k, 1.2)
        d["ratio"] = d["us"] / (3.3 + n / 1e6 * 4 * c + d["events"] / 1e6 * 9 * c)
    ok = [d for d in done if "ratio" in d]
    print(len(done), "of", len(rows), "wrong:", [d["text"] for d in ok if d["check"].startswith("DIFF")])
    for d in ok: print(f"{d['text']:40s} {d['us']:7.1f} med {d['med']:7.1f} step {d['step']:6.0f} ev {d['events']/1e3:6.0f}K {d['check'][:9]} " + " ".join(w for w in ("queues", "bucket", "calendar", "sender", "slot of", "tiles") if w in d["launch"]))


if sys.argv[1] == "one": one(sys.argv[2])
else: main()
