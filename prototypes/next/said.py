import json, os
for p in ("runs/x4p/stages/stage5", "runs/x4/stages/stage7"):
  n = {}
  if not os.path.exists(p + "/results.jsonl"): continue
  for line in open(p + "/results.jsonl"):
    d = json.loads(line)
    if "case" not in d: continue
    n[d["outcome"]] = n.get(d["outcome"], 0) + 1
    if d["outcome"] not in ("skipped", "passed") or ("kind_o" in d["case"] or "keep_up" in d["case"]) and d["outcome"] != "skipped":
        print(round(d["duration_s"]), d["outcome"][:4], d["case"].split("::")[-1][5:45], *(f"{m['value']:.4g}" for m in d["measurements"][:2]), d["reason"][:110])
  print(p, n)
