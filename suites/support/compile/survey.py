"""The survey of stage 1: every chosen kernel for every capability, and the record that later runs are held against.

``python -m suites.support.compile.survey`` writes ``reports/baselines/kernel_resources.json``; with ``sources``, only
its part of the kernels that are listed in ``cuda_sources``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from burstproof.compile.entry import Entry
from burstproof.compile.numba_cubin import (
    CAPABILITIES,
    Capability,
    Image,
    compile_kernel,
    compiler_version,
    toolkit_version,
)
from burstproof.compile.resources import Resources, resources_of
from burstproof.device.dependent_launch import OVERLAP_CAPABILITY
from burstproof.engine.cuda.kernels.catalogue import catalogue
from burstproof.engine.cuda.plan.variant import Variant
from burstproof.errors import ExitCode
from suites.support.compile.cuda_sources import catalogued, title
from suites.support.compile.variants import chosen_variants

BASELINE = Path(__file__).parents[3] / "reports" / "baselines" / "kernel_resources.json"


@cache
def images_of(variant: Variant, capability: Capability) -> Mapping[str, Image]:
    """Every kernel of ``variant`` as it is built for ``capability``, by name; a process compiles it once."""
    if variant.fused is not None:
        variant = replace(variant, overlapped=capability >= OVERLAP_CAPABILITY)
    return {
        spec.name: compile_kernel(spec.name, spec.function, spec.signature, capability, spec.registers)
        for spec in catalogue(variant)
    }


def compile_variant(variant: Variant, capability: Capability) -> dict[str, Resources]:
    """Resources of every kernel of ``variant`` as it is built for ``capability``, by kernel name."""
    return {name: resources_of(image) for name, image in images_of(variant, capability).items()}


def key(variant: str, kernel: str, capability: Capability) -> str:
    """Name under which the registers of a kernel are recorded."""
    return f"{variant}|{kernel}|{capability[0]}.{capability[1]}"


def entry_key(entry: Entry, capability: Capability) -> str:
    """Name under which the figures of a catalogued kernel are recorded."""
    return f"{title(entry)}|{capability[0]}.{capability[1]}"


def compile_entries(entries: Iterable[Entry], capability: Capability) -> dict[Entry, Resources]:
    """Resources of the ``entries`` that build for ``capability``; code that several share is compiled once."""
    images: dict[int, Image] = {}
    found = {}
    for entry in entries:
        if capability >= entry.minimum:
            image = images.setdefault(id(entry.code), entry.code.image(capability))
            found[entry] = resources_of(image, entry.function)
    return found


def survey_sources() -> dict[str, Any]:
    """Compiler, and by kernel registers and bytes spilled, where there are some, of the catalogued."""
    registers, spilled = {}, {}
    for capability in CAPABILITIES:
        print(f"catalogued kernels, {capability[0]}.{capability[1]}", file=sys.stderr)
        for entry, used in compile_entries(catalogued().values(), capability).items():
            registers[entry_key(entry, capability)] = used.registers
            if used.stack_bytes + used.local_bytes:
                spilled[entry_key(entry, capability)] = used.stack_bytes + used.local_bytes
    return {"compiler": list(compiler_version()), "registers": registers, "spilled_bytes": spilled}


def main(arguments: Sequence[str]) -> int:
    """Compile everything, or what is asked for, and write the record; returns the exit code."""
    if not set(arguments) <= {"sources"}:
        print("usage: python -m suites.support.compile.survey [sources]", file=sys.stderr)
        return ExitCode.USAGE
    if "sources" in arguments:
        document = json.loads(BASELINE.read_text())
    else:
        document = {"toolkit": list(toolkit_version()), "registers": _survey_numba()}
    document["sources"] = survey_sources()
    BASELINE.write_text(json.dumps(document, indent=1) + "\n")
    return ExitCode.PASS


def _survey_numba() -> dict[str, int]:
    registers = {}
    for name, variant in chosen_variants().items():
        for capability in CAPABILITIES:
            print(f"{name}, {capability[0]}.{capability[1]}", file=sys.stderr)
            for kernel, resources in compile_variant(variant, capability).items():
                registers[key(name, kernel, capability)] = resources.registers
    return registers


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
