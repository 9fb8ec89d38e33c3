import json, os, subprocess, sys, time
def child():
    import numpy as np
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.options import EngineOptions, CudaOptions
    from burstproof.engine.state import Record, Stimulus
    from burstproof.network.synthetic.kinds import seeded_network
    from suites.support.bench.cuda_bench import GENERAL, disagreements
    import importlib
    if os.environ.get("HELP"):
        import burstproof.engine.cuda.host.fused_batch as f
        f.helping_threads = lambda n: int(os.environ["HELP"])
    if os.environ.get("WROW"):
        for m in ("buffers", "sizing"): setattr(importlib.import_module("burstproof.engine.cuda.plan." + m), "warp_row", lambda n: int(os.environ["WROW"]))
    from burstproof.engine.cuda.plan.shard_variant import ShardVariant as S
    bm, bl = S.marks_ahead, S.leaks_ahead
    if os.environ.get("PIECE"): S.marks_ahead = property(lambda s: bm.fget(s) or s.ahead)
    if os.environ.get("EARLY"): S.leaks_ahead = property(lambda s: bl.fget(s) or (s.ahead and s.variant.features.decays and "decays" not in s.uniform))
    engine = None
    for line in sys.stdin:
        cmd, *rest = line.split()
        if cmd == "make":
            kind, n, check = rest[0], int(rest[1]), rest[2] == "check"
            if engine is not None: engine.close()
            seeded = seeded_network(kind, n, *((None, None) if kind == "microcircuit" else (100, 0.01)), 11)
            network = seeded.network(); start = {b: Stimulus(forced=i) for b, i in seeded.start().items()}
            engine = CudaEngine.create(network, EngineOptions())
            found = []
            if check:
                from burstproof.engine.cpu.engine import CpuEngine
                judge = CpuEngine.create(network, GENERAL)
                found = disagreements(judge, engine, max(start) + 30, start)
                judge.close()
            else:
                engine.run(max(start) + 30, start)
            engine.run(64, record=Record.NONE); engine.run(64, record=Record.NONE)
            print(json.dumps({"found": [str(f)[:300] for f in found][:3]}), flush=True)
        elif cmd == "time":
            engine.run(64, record=Record.NONE)
            us = []
            for _ in range(8):
                t = time.perf_counter(); engine.run(3000, record=Record.NONE); us.append((time.perf_counter() - t) / 3000 * 1e6)
            print(json.dumps(sorted(us)[4]), flush=True)
        elif cmd == "step":
            rng = np.random.default_rng(3); n = engine.network.neuron_count; us = []
            given = [Stimulus(np.sort(rng.choice(n, 16, replace=False)).astype(np.uint32), np.full(16, 1, np.float32)) for _ in range(50)]
            for i in range(600):
                t = time.perf_counter(); engine.step(given[i % 50]); us.append((time.perf_counter() - t) * 1e6)
            print(json.dumps(sorted(us)[300]), flush=True)
        elif cmd == "state":
            s = engine.state(); import zlib
            print(json.dumps([int(s.burst_count), zlib.crc32(np.ascontiguousarray(s.membrane_potentials).tobytes())]), flush=True)
def main():
    cases = [c.split(":") for c in sys.argv[1].split(",")]
    sides = {}
    for name, path, help_ in [s.split("=") [0:1] + s.split("=")[1].split("@") for s in sys.argv[2].split(",")]:
        env = dict(os.environ, PYTHONPATH=f"{path}/impl:{path}:" + os.environ.get("PYTHONPATH", ""), HELP=(help_.split("-")+["",""])[0], WROW=(help_.split("-")+["",""])[1], PIECE=(help_.split("-")+["","",""])[2], EARLY=(help_.split("-")+["","","",""])[3], NUMBA_CACHE_DIR=f"/tmp/nc{name}", XDG_CACHE_HOME=f"/tmp/xc{name}")
        sides[name] = subprocess.Popen([sys.executable, os.path.abspath(__file__), "child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, cwd=path)
    def ask(n, t): sides[n].stdin.write(t + "\n"); sides[n].stdin.flush()
    def hear(n):
        while True:
            l = sides[n].stdout.readline()
            if not l: raise SystemExit(f"{n} died")
            try: return json.loads(l)
            except ValueError: print(n, l, end="")
    for kind, size, check in cases:
        for n in sides: ask(n, f"make {kind} {size} {check if n != 'old' else 'no'}")
        for n in sides: print(kind, size, n, hear(n), flush=True)
        got = {n: [] for n in sides}
        for _ in range(3):
            for n in sides: ask(n, "time"); got[n].append(hear(n))
        steps = {n: [] for n in sides}
        for _ in range(3):
            for n in sides: ask(n, "step"); steps[n].append(round(hear(n), 1))
        print("   steps with 16 amounts", steps, flush=True)
        states = {}
        for n in sides: ask(n, "state"); states[n] = hear(n)
        print(kind, size, {n: [round(x, 2) for x in v] for n, v in got.items()}, "SAME" if len({json.dumps(v) for v in states.values()}) == 1 else states, flush=True)
    for n in sides: sides[n].stdin.close()
child() if sys.argv[1] == "child" else main()
