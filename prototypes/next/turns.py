"""Rows measured in turns by trees: ``turns.py ROUNDS NAME=PATH ... -- ROWS``; environment: CHECK, AFTER, PROF."""

import os
import statistics as st
import subprocess
import sys
import time

rounds = int(sys.argv[1])
cut = sys.argv.index("--")
trees = [a.split("=", 1) for a in sys.argv[2:cut]]
asked = [a.partition("@") for a in sys.argv[cut + 1 :]]
rows = [row for row, _, _ in asked]
only = {row: names.split(",") if names else [name for name, _ in trees] for row, _, names in asked}
checked = int(os.environ.get("CHECK", "0"))
here = os.path.dirname(os.path.abspath(__file__))
site = os.environ.get("PYTHONPATH", "")
begun = time.time()
workers = {}
for row in rows:
    for name, path in trees:
        if name not in only[row]:
            continue
        env = dict(os.environ, PYTHONPATH=f"{path}/impl:{path}:{site}")
        env.update(x.split("=") for x in os.environ.get(f"ENV_{name}", "").split() if x)
        workers[name, row] = subprocess.Popen(
            [sys.executable, f"{here}/worker.py", row],
            env=env,
            cwd=path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
dead = set()
for key, w in workers.items():
    line = w.stdout.readline().strip()
    if line != "ready":
        print("FAILED", key, line, flush=True)
        dead.add(key)
print(f"# all ready after {time.time() - begun:.0f} s", flush=True)
flag = os.environ.get("WAIT_FLAG")
while flag and not os.path.exists(flag):
    time.sleep(0.2)


def ask(name, row, text):
    w = workers[name, row]
    w.stdin.write(text + "\n")
    w.stdin.flush()
    return w.stdout.readline().strip()


def goal(row):
    kind, n, *rest = row.split(":")
    o = dict(x.split("=") for x in rest)
    n = int(float(n[:-1]) * {"K": 1e3, "M": 1e6}[n[-1]])
    if kind == "microcircuit":
        return 96825.0
    return n * float(o.get("rate", 0.01)) * int(o.get("fan", 100))


for row in rows:
    names = [name for name, _ in trees if name in only[row] and (name, row) not in dead]
    if os.environ.get("PROF"):
        for name in names:
            print(row, name, ask(name, row, "prof 0"), f"{time.time() - begun:.0f} s", flush=True)
    else:
        checks = {name: ask(name, row, f"check 0 {checked}") for name in names} if checked else {}
        digests = {name: ask(name, row, "hash 0") for name in names}
        same = "EQUAL" if len(set(digests.values())) == 1 else f"DIFFERS {digests}"
        found = {name: [] for name in names}
        for r in range(rounds + 1):
            for name in names if r % 2 else names[::-1]:
                answer = ask(name, row, "time 0").split()
                if len(answer) != 2:
                    print("BROKEN", name, row, answer)
                    continue
                us, ev = map(float, answer)
                if r:
                    found[name].append(us * goal(row) / ev)
        parts = [f"{name} {st.median(v):8.2f} (min {min(v):.2f})" for name, v in found.items() if v]
        after = {name: ask(name, row, "after 0 2") for name in names} if os.environ.get("AFTER") else {}
        print(
            f"{row:28s} "
            + "  ".join(parts)
            + "  "
            + same + " "
            + " ".join(f"{n}:{c}" for n, c in checks.items())
            + " "
            + " ".join(f"{n}:{c}" for n, c in after.items())
            + f"  [{time.time() - begun:.0f} s]",
            flush=True,
        )
    for name in names:
        w = workers[name, row]
        w.stdin.write("quit 0\n")
        w.stdin.flush()
        w.stdin.close()
for w in workers.values():
    w.wait()
