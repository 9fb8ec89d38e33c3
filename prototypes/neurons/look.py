"""Registers and instructions of the burst of ``parameters`` and of the features row, for 9.0: ``look.py [FOLDER]``."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

from cuda.core import LinkerOptions

from burstproof.compile.numba_cubin import compile_kernel
from burstproof.compile.resources import disassembled, resources_of
from burstproof.engine.cuda.kernels.catalogue import catalogue
from burstproof.engine.cuda.plan.packed import pack_network
from burstproof.engine.options import EngineOptions
from burstproof.network.synthetic.kinds import seeded_network
from suites.support.bench.feature_networks import with_every_feature


def variants(neurons):
    network = seeded_network("parameters", neurons, 4, 0.01, 3).network()
    yield "plain", pack_network(network, EngineOptions())
    yield "featured", pack_network(with_every_feature(network), EngineOptions())


def compiled(spec):
    """As ``compile_kernel``, with as many registers as the spec allows, or ``CAP``."""
    cap = int(os.environ["CAP"]) if "CAP" in os.environ else getattr(spec, "registers", None)
    with mock.patch("cuda.core.LinkerOptions", lambda **given: LinkerOptions(**given | {"max_register_count": cap})):
        return compile_kernel(spec.name, spec.function, spec.signature, (9, 0))


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    neurons = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    for name, packed in variants(neurons):
        v = replace(packed.variant, overlapped=True, row_length=100)
        print(name, "shape", v.fused, "word", v.word, "bits", v.target_bits, "narrow", sorted(v.narrow))
        print("  uniform", sorted(v.uniform), "record", v.record, "sleeps", v.sleeps, "tables", v.tables, flush=True)
        for spec in catalogue(v):
            if spec.name not in ("burst", "modulate"):
                continue
            image = compiled(spec)
            used, sass = resources_of(image), disassembled(image)
            count = sum(1 for line in sass.splitlines() if ";" in line and "NOP" not in line)
            print("  ", spec.name, used, count, flush=True)
            if folder:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{name}-{spec.name}.sass").write_text(sass)


main()
