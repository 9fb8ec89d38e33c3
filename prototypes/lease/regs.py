"""regs.py KIND:N ... : registers of kernels for 9.0 as sized for N neurons."""
import sys
from dataclasses import replace
from burstproof.engine.cuda.plan.packed import pack_network
from burstproof.engine.cuda.plan.tiles import sized
from burstproof.engine.cuda.plan.choices import choices_of
from burstproof.engine.options import EngineOptions
from burstproof.network.synthetic.kinds import seeded_network
from suites.support.compile.survey import compile_variant
want = set((sys.argv[1]).split(","))
for text in sys.argv[2:]:
    kind, n = text.split(":")
    n = int(float(n[:-1]) * {"K": 1e3, "M": 1e6}[n[-1]])
    seeded = seeded_network(kind, 10000, 100, 0.01, 3)
    p = pack_network(seeded.network(), EngineOptions())
    f = n // 10000
    sizes = replace(p.sizes, neurons=n, static_entries=p.sizes.static_entries * f)
    p = replace(p, sizes=sizes, variant=replace(sized(p.variant, sizes),overlapped=True))
    print(text, choices_of(p)[:200])
    from suites.support.compile.survey import catalogue, resources_of, compile_kernel
    for name, r in ((s.name, resources_of(compile_kernel(s.name, s.function, s.signature, (9,0), s.registers))) for s in catalogue(p.variant) if s.name in want):
        if name in want: print("   ", name, r)
