"""Trees in turns: ``turns.py ROUNDS NEURONS NAME=PATH ...``, with ``bench.py`` of this folder in each."""

import os
import statistics as st
import subprocess
import sys
import time

rounds, neurons = int(sys.argv[1]), sys.argv[2]
trees = dict(a.split("=", 1) for a in sys.argv[3:])
here, begun = os.path.dirname(os.path.abspath(__file__)), time.time()
workers = {}
for name, path in trees.items():
    env = dict(os.environ, PYTHONPATH=f"{path}/impl:{path}:{os.environ.get('PYTHONPATH', '')}")
    workers[name] = subprocess.Popen(
        [sys.executable, f"{here}/bench.py", "serve", neurons],
        env=env,
        cwd=path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(name, text):
    workers[name].stdin.write(text + "\n")
    workers[name].stdin.flush()
    return workers[name].stdout.readline().strip()


alive = [name for name, w in workers.items() if w.stdout.readline().strip() == "ready"]
print(f"# ready after {time.time() - begun:.0f} s: {' '.join(alive)}", flush=True)
while os.environ.get("WAIT_FLAG") and not os.path.exists(os.environ["WAIT_FLAG"]):
    time.sleep(0.1)
hashes = {name: ask(name, "hash") for name in alive}
print("# states", "EQUAL" if len(set(hashes.values())) == 1 else f"DIFFER {hashes}", flush=True)
found = {(name, kind): [] for name in alive for kind in ("plain", "feat")}
for r in range(rounds + 1):
    for name in alive if r % 2 else alive[::-1]:
        for kind in ("plain", "feat"):
            us, fired = map(float, ask(name, f"time {kind}").split())
            if r:
                found[name, kind].append((us, fired))
for name in alive:
    plain, feat = found[name, "plain"], found[name, "feat"]
    scaled = [f[0] / p[0] * p[1] / f[1] for p, f in zip(plain, feat, strict=True)]
    raw = [f[0] / p[0] for p, f in zip(plain, feat, strict=True)]
    us = [st.median(x[0] for x in one) for one in (plain, feat)]
    fires = [st.mean(x[1] for x in one) for one in (plain, feat)]
    print(
        f"{name:10s} plain {us[0]:6.2f} us  features {us[1]:6.2f} us  ratio {st.median(scaled):.3f} "
        f"({min(scaled):.3f}...{max(scaled):.3f}; not by firings {st.median(raw):.3f})  "
        f"fired {fires[0]:.0f} {fires[1]:.0f}  [{time.time() - begun:.0f} s]",
        flush=True,
    )
base = found[alive[0], "plain"]
print("# against plain of", alive[0], {n: round(st.median(f[0] for f in found[n, "feat"]) / st.median(p[0] for p in base), 3) for n in alive})
for w in workers.values():
    w.stdin.write("quit\n")
    w.stdin.flush()
    w.stdin.close()
for w in workers.values():
    w.wait()
