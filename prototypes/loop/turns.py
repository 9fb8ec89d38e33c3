"""``turns.py ROUNDS CALLS NAME=PATH ...``: closed loops of trees in turns; equal lists and states first."""

import os
import statistics as st
import subprocess
import sys
import time

rounds, calls = int(sys.argv[1]), int(sys.argv[2])
trees = [a.split("=", 1) for a in sys.argv[3:]]
here, site, begun = os.path.dirname(os.path.abspath(__file__)), os.environ.get("PYTHONPATH", ""), time.time()


def begin(path, *args):
    env = dict(os.environ, PYTHONPATH=f"{path}/impl:{path}:{site}")
    return subprocess.Popen(
        [sys.executable, f"{here}/worker.py", *args],
        env=env, cwd=path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )


def ask(worker, text):
    worker.stdin.write(text + "\n")
    worker.stdin.flush()
    return worker.stdout.readline().strip()


def end(worker):
    if worker.poll() is None:
        worker.stdin.write("quit\n")
        worker.stdin.close()
    worker.wait()


sizes = ["100K", "1M"]
checks = ["delays", "everything", "law", "100K"]
new = trees[-1]
judged = {name: begin(new[1], name, "judged") for name in checks}
workers = {(size, name): begin(path, size) for size in sizes for name, path in trees}
for key, worker in judged.items():
    worker.stdout.readline()
    print(f"parity, {key}:", ask(worker, "check 150"), f"[{time.time() - begun:.0f} s]", flush=True)
    end(worker)
for key, worker in workers.items():
    print(*key, worker.stdout.readline().strip(), file=sys.stderr, flush=True)
for size in sizes:
    found = {name: ask(workers[size, name], "check 400") for name, _ in trees}
    print(f"{size}: lists and state", "EQUAL" if len(set(found.values())) == 1 else f"DIFFER {found}", f"[{time.time() - begun:.0f} s]", flush=True)
    for stimulated in (16, 1000):
        rows = {name: [] for name, _ in trees}
        for r in range(rounds):
            for name, _ in trees if r % 2 else trees[::-1]:
                rows[name].append([float(x) for x in ask(workers[size, name], f"time {stimulated} {calls}").split()])
        for name, rs in rows.items():
            p = [st.median(column) for column in zip(*rs)]
            print(f"{size:5s} {stimulated:5d} {name:10s} p50 {p[0]:6.2f} (min {min(r[0] for r in rs):.2f})  p99 {p[1]:6.2f}  p99.9 {p[2]:6.2f} (min {min(r[2] for r in rs):.2f}, max {max(r[2] for r in rs):.2f})", flush=True)
for size in sizes:
    for name, _ in trees:
        print(f"account {size} {name} (stimulated:busy/idle us)", ask(workers[size, name], "account"), f"[{time.time() - begun:.0f} s]", flush=True)
for worker in workers.values():
    end(worker)
