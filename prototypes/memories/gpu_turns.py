"""What memories add to a burst, trees in turns: ``gpu_turns.py ROUNDS old=PATH new=PATH``; parity of ``new`` first."""

import json
import os
import statistics as st
import subprocess
import sys
import time

rounds, begun = int(sys.argv[1]), time.time()
trees = dict(a.split("=", 1) for a in sys.argv[2:])
here, site = os.path.dirname(os.path.abspath(__file__)), os.environ.get("PYTHONPATH", "")
workers = {
    name: subprocess.Popen(
        [sys.executable, f"{here}/gpu_worker.py"],
        env=dict(os.environ, PYTHONPATH=f"{path}/impl:{path}:{site}"),
        cwd=path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    for name, path in trees.items()
}


def ask(name, text):
    workers[name].stdin.write(text + "\n")
    workers[name].stdin.flush()
    return workers[name].stdout.readline().strip()


def since():
    return f"[{time.time() - begun:.0f} s]"


for name, worker in workers.items():
    print(name, "create and first run, s:", worker.stdout.readline().strip(), since(), flush=True)
for network in ("memories", "associations"):
    print("parity of new with the CPU engine,", network, ask("new", f"check {network}") or "DIED", since(), flush=True)

HOWS = ("none", "counts", "fired", "none+", "counts+")
NETWORKS = ("plain", "memories", "associations")
found = {}
for r in range(rounds + 1):
    for how in HOWS:
        for network in NETWORKS:
            for name in list(trees) if r % 2 else list(trees)[::-1]:
                us = float(ask(name, f"time {network} {how} {700 if network != 'plain' else 2000}"))
                if r:
                    found.setdefault((how, network, name), []).append(us)
print(
    f"{'record':8s} {'tree':4s} {'plain':>8s} {'memories':>9s} {'added':>7s} {'assoc.':>8s} {'added':>7s}   median (min) of {rounds}"
)
for how in HOWS:
    for name in trees:
        plain, memories, associations = (found[how, network, name] for network in NETWORKS)
        added = [[a - b for a, b in zip(one, plain)] for one in (memories, associations)]
        print(
            f"{how:8s} {name:4s} {st.median(plain):8.2f} {st.median(memories):9.2f} {st.median(added[0]):7.2f} "
            f"{st.median(associations):8.2f} {st.median(added[1]):7.2f}   ({min(added[0]):.1f}, {min(added[1]):.1f})",
            flush=True,
        )
loops = {name: [] for name in trees}
for r in range(5):
    for name in list(trees) if r % 2 else list(trees)[::-1]:
        loops[name].append(float(ask(name, "loop 4000")))
print(
    "closed loop of the plain network, 16 amounts, p50 us:",
    {n: [round(x, 2) for x in v] for n, v in loops.items()},
    since(),
)
for network in ("memories", "associations"):
    for how in ("none", "fired"):
        for name in trees:
            ask(name, f"time {network} {how} 300")
            print("us a burst", network, how, name, ask(name, f"profile {network} {how} 700"), flush=True)
print("after all, parity of new once more:", ask("new", "check associations") or "DIED", since())
for worker in workers.values():
    worker.stdin.write("quit\n")
    worker.stdin.flush()
    worker.wait()
