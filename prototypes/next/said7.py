import json
n = {}; t = 0
for line in open("runs/x4/stages/stage6/results.jsonl"):
    d = json.loads(line)
    if "case" not in d: continue
    n[d["outcome"]] = n.get(d["outcome"], 0) + 1; t += d["duration_s"]
    name = d["case"].split("::")[-1]
    want = name.startswith(("test_kind[", "test_latency[", "test_closed", "test_memories", "test_features_of"))
    if d["outcome"] not in ("skipped", "passed") or d["measurements"] and want or d["duration_s"] > 20:
        print(round(d["duration_s"]), d["outcome"][:4], name[5:50], *(f"{m['value']:.4g}" for m in d["measurements"][:3]), d["reason"][:90])
print(n, round(t))
