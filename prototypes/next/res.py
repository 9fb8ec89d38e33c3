import json, sys
for line in open(sys.argv[1]):
    d = json.loads(line)
    if "case" in d and d["outcome"] != "skipped":
        print(round(d["duration_s"], 1), d["outcome"], d["case"].split("::")[-1][:50], [(m["name"].split(".")[-1], round(m["value"], 3)) for m in d["measurements"]][:3], d["reason"][:150])
