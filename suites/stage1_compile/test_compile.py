"""Every kernel builds for every capability without a GPU, within its limits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from burstproof.compile.numba_cubin import CAPABILITIES, Capability, compile_kernel, obstacle, toolkit_version
from suites.support.compile.tools import needs_tools

pytestmark = [pytest.mark.requirement("KL-1", "KL-4", "ST-1"), needs_tools]

VARIANTS = ("lean", "delays", "everything", "beta batch path", "packed sums, long rows", "packed sums, tiles")


def _name(capability: Capability) -> str:
    return f"{capability[0]}.{capability[1]}"


@pytest.fixture(scope="module")
def variants():
    from suites.support.compile.variants import chosen_variants

    return chosen_variants()


@pytest.fixture(scope="module")
def recorded():
    from suites.support.compile.survey import BASELINE

    document = json.loads(BASELINE.read_text())
    return document["registers"] if tuple(document["toolkit"]) == toolkit_version() else None


@pytest.mark.parametrize("capability", CAPABILITIES, ids=_name)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_kernel_builds(variants, recorded, variant: str, capability: Capability, measure) -> None:
    """All kernels of a variant compile to machine code; registers, spills and the recorded registers are compared."""
    from burstproof.engine.cuda.kernels.catalogue import catalogue
    from suites.support.compile.survey import compile_variant, key

    reason = obstacle(capability)
    if reason:
        pytest.skip(reason)

    used = compile_variant(variants[variant], capability)
    for kernel, resources in used.items():
        where = {"variant": variant, "capability": _name(capability), "kernel": kernel}
        measure("kernel.registers", resources.registers, "1", conditions=where)
        measure("kernel.local_bytes", resources.local_bytes + resources.stack_bytes, "B", conditions=where)
        if recorded is not None:  # other tools allocate registers otherwise: nothing to hold them against
            known = recorded.get(key(variant, kernel, capability), float("nan"))
            measure("kernel.registers_over_baseline", resources.registers - known, "1", conditions=where)
    assert set(used) == {spec.name for spec in catalogue(variants[variant])}


@pytest.mark.requirement("BE-11")
@pytest.mark.parametrize("precision", ["fp16", "bf16", "int8"])
def test_reduced_precision_builds(variants, recorded, precision: str, measure) -> None:
    """The fused burst with potentials in 2 or 1 bytes needs no more than fp32, on the oldest capability there is."""
    from burstproof.compile.resources import resources_of
    from burstproof.engine.cuda.kernels.catalogue import catalogue
    from burstproof.engine.precision import Storage, precision_named
    from suites.support.compile.survey import key

    oldest = next(capability for capability in CAPABILITIES if obstacle(capability) is None)
    features = replace(variants["lean"].features, storage=Storage(precision_named(precision), 0.25))
    spec = next(s for s in catalogue(replace(variants["lean"], features=features)) if s.name == "burst")
    used = resources_of(compile_kernel(spec.name, spec.function, spec.signature, oldest))
    where = {"variant": f"lean, {precision}", "capability": _name(oldest), "kernel": spec.name}
    measure("kernel.registers", used.registers, "1", conditions=where)
    assert used.local_bytes + used.stack_bytes == 0
    if recorded is not None:
        assert used.registers <= recorded[key("lean", "burst", oldest)]


@pytest.mark.parametrize("variant", ["lean", "everything", "packed sums, long rows", "packed sums, tiles"])
def test_propagation_does_not_read_back(variants, variant: str, measure) -> None:
    """On capability 9.0 the propagation adds with reductions (RED), never with atomics that return a value."""
    from burstproof.compile.resources import instructions_of
    from burstproof.engine.cuda.kernels.catalogue import catalogue

    propagating = []
    for spec in catalogue(variants[variant]):
        if spec.name.startswith(("propagate", "burst", "send")):
            propagating.append(spec.name)
            found = instructions_of(compile_kernel(spec.name, spec.function, spec.signature, (9, 0)))
            assert found is not None
            where = {"variant": variant, "kernel": spec.name, "capability": "9.0"}
            measure("kernel.reductions", found.reductions, "1", conditions=where)
            measure("kernel.reading_atomics", found.atomics, "1", conditions=where)
            assert found.reductions > 0
            assert found.spills == 0
    assert propagating
