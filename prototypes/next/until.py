import json, os, sys, time
path, text, count, limit = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
end = time.time() + limit
while time.time() < end:
    n = sum(text in line and '"case"' in line and '"outcome"' in line for line in open(path)) if os.path.exists(path) else 0
    if n >= count: break
    time.sleep(1)
print("until", n, round(end - time.time()))
