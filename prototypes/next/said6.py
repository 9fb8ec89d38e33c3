import json
n = {}
for line in open("runs/x4/stages/stage6/results.jsonl"):
    d = json.loads(line)
    if "case" not in d: continue
    n[d["outcome"]] = n.get(d["outcome"], 0) + 1
    if d["outcome"] not in ("skipped", "passed") or d["measurements"] and "test_kind[" in d["case"]:
        print(round(d["duration_s"]), d["outcome"][:4], d["case"].split("::")[-1][5:45], *(f"{m['value']:.4g}" for m in d["measurements"][:2]), d["reason"][:110])
print(n)
