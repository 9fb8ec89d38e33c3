"""A genome: grown, stimulated by the name of a cortical area, drawn, kept as a network file, read back."""

import sys
from pathlib import Path

import burstproof as bp

GOLDEN = Path(__file__).parents[2] / "suites" / "data" / "golden"
genome = sys.argv[1] if len(sys.argv) > 1 else GOLDEN / "genomes" / "essential_genome.json"

network = bp.grow(genome, seed=0)
print(network)
drive = bp.Stimulation(network).add(1.5, area="vision_C", bursts=range(1, 101, 10))

with bp.open_engine(network, stimulus=drive) as engine:
    print(engine)
    recording = engine.run(100, drive)
active = [area for area in bp.statistics(recording).areas if area.firings]
for area in active:
    print(f"{area.name:20} {area.firings:6} firings, at most {area.peak} in a burst")
bp.raster(recording, "genome.svg", title=network.provenance["title"])

bp.save(network, "genome.bpnet")
print(bp.load("genome.bpnet"))
