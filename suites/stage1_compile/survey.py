"""The survey of stage 1: every chosen kernel for every capability, and the record that later runs are held against.

``python -m suites.stage1_compile.survey`` writes ``reports/baselines/kernel_resources.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from burstproof.burst.cuda.kernels import catalogue
from burstproof.burst.cuda.variant import Variant
from burstproof.kernels.compile import CAPABILITIES, Capability, compile_kernel, toolkit_version
from burstproof.kernels.resources import Resources, resources_of
from suites.stage1_compile.variants import chosen_variants

BASELINE = Path(__file__).parents[2] / "reports" / "baselines" / "kernel_resources.json"


def compile_variant(variant: Variant, capability: Capability) -> dict[str, Resources]:
    """Resources of every kernel of ``variant`` for ``capability``, by kernel name."""
    return {
        spec.name: resources_of(compile_kernel(spec.name, spec.function, spec.signature, capability))
        for spec in catalogue(variant)
    }


def key(variant: str, kernel: str, capability: Capability) -> str:
    """Name under which the registers of a kernel are recorded."""
    return f"{variant}|{kernel}|{capability[0]}.{capability[1]}"


def main() -> None:
    """Compile everything and write the record."""
    registers = {}
    for name, variant in chosen_variants().items():
        for capability in CAPABILITIES:
            print(f"{name}, {capability[0]}.{capability[1]}", file=sys.stderr)
            for kernel, resources in compile_variant(variant, capability).items():
                registers[key(name, kernel, capability)] = resources.registers
    document = {"toolkit": list(toolkit_version()), "registers": registers}
    BASELINE.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
