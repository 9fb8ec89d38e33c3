# Parity of the kernels whose arguments were grouped: what the simulator is asked, asked of the device.
timeout 88 python3 -W ignore - <<'P'
import time
from suites.support.parity.simulator_check import checks
names = ["closed loop", "queues per owner", "mix: fractions, delays to 7", "closed loop with a calendar", "recording: train_11",
         "mix: plastic, windows 3 and 2, delays to 4, mp-driven", "recording: neuro_11", "delays in a calendar",
         "recalled delays", "long rows", "cancelled sums", "restored state", "closed loop with features", "recording: mem3_11",
         "mix: beta", "packed sums", "tiles", "closed loop of many", "synapses in host memory", "full log", "train"]
table, begun, known = [], time.perf_counter(), dict(checks())
for name in names:
    if time.perf_counter() - begun > 70:
        table.append((name, "not run", 0.0)); continue
    start = time.perf_counter()
    try:
        found = known[name]()
    except Exception as error:
        found = [repr(error)[:300]]
    table.append((name, "equal" if not found else str(found)[:300], time.perf_counter() - start))
for row in table:
    print(f"{row[0]:60} {row[1]} ({row[2]:.1f} s)")
P
