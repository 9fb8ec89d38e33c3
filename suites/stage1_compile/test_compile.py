"""Every kernel builds for every capability without a GPU, within its limits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from burstproof.compile.numba_cubin import CAPABILITIES, Capability, compile_kernel, obstacle, toolkit_version
from suites.support.compile.names import VARIANTS
from suites.support.compile.tools import needs_tools
from suites.support.plans import only, thinned

pytestmark = [pytest.mark.requirement("KL-1", "KL-4", "ST-1"), needs_tools]

PROPAGATING = ("lean", "everything", "packed sums, long rows", "packed sums, tiles", "entries in words")
LAUNCHED = ("lean", "everything", "features, one kernel", "features, several kernels", "queues per owner")
LAUNCHED += ("delays in a calendar", "packed sums, tiles", "shard, driven, merged", "shard, everything")
LAUNCHED += ("shard, delays, queues per owner",)
REGISTERS = 1 << 16
"""Of a multiprocessor, at every capability there is."""
LONG = "two seconds and more for each variant and capability"


def _allocated(registers: int) -> int:
    """Registers that a multiprocessor sets aside for a thread that has so many: they come in eights."""
    return -(-registers // 8) * 8


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


@pytest.mark.measures("kernel.registers", "kernel.local_bytes", variant=..., capability=..., kernel=...)
@pytest.mark.measures("kernel.registers_over_baseline", only_if="the recorded figures are of these compilers")
@pytest.mark.measures("kernel.reductions", "kernel.reading_atomics", only_if="the variant propagates, for 9.0")
@pytest.mark.parametrize("capability", thinned(CAPABILITIES, LONG, keep=only((9, 0))), ids=_name)
@pytest.mark.parametrize("variant", thinned(VARIANTS, LONG, keep=only("lean")))
def test_every_kernel_builds(variants, recorded, variant: str, capability: Capability, measure) -> None:
    """All kernels of a variant compile to machine code, and a block of each has registers enough on a multiprocessor.

    Registers, spills and the recorded registers are compared. For 9.0 what propagates adds with reductions (RED), never
    with atomics that return a value.
    """
    from burstproof.engine.cuda.kernels.catalogue import catalogue
    from burstproof.engine.cuda.plan.block_size import ENQUEUE_THREADS
    from burstproof.engine.cuda.plan.shard_variant import whole
    from suites.support.compile.survey import compile_variant, images_of, key

    reason = obstacle(capability)
    if reason:
        pytest.skip(reason)

    used = compile_variant(variants[variant], capability)
    threads = {"burst": whole(variants[variant]).threads, "enqueue": ENQUEUE_THREADS}
    for kernel in used.keys() & threads:
        assert _allocated(used[kernel].registers) * threads[kernel] <= REGISTERS, kernel
    for kernel, resources in used.items():
        where = {"variant": variant, "capability": _name(capability), "kernel": kernel}
        measure("kernel.registers", resources.registers, "1", conditions=where)
        measure("kernel.local_bytes", resources.local_bytes + resources.stack_bytes, "B", conditions=where)
        if recorded is not None:  # other tools allocate registers otherwise: nothing to hold them against
            known = recorded.get(key(variant, kernel, capability), float("nan"))
            measure("kernel.registers_over_baseline", resources.registers - known, "1", conditions=where)
    assert set(used) == {spec.name for spec in catalogue(variants[variant])}
    if capability == (9, 0) and variant in PROPAGATING:
        _adds_with_reductions(images_of(variants[variant], capability), variant, measure)


def _adds_with_reductions(images, variant: str, measure) -> None:
    from burstproof.compile.resources import instructions_of

    propagating = [name for name in images if name.startswith(("propagate", "burst", "send"))]
    for name in propagating:
        found = instructions_of(images[name])
        assert found is not None
        where = {"variant": variant, "kernel": name, "capability": "9.0"}
        measure("kernel.reductions", found.reductions, "1", conditions=where)
        measure("kernel.reading_atomics", found.atomics, "1", conditions=where)
        assert found.reductions > 0
        assert found.spills == 0
    assert propagating


@pytest.mark.measures("kernel.registers")
@pytest.mark.requirement("BE-11")
@pytest.mark.thorough(LONG)
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
    used = resources_of(compile_kernel(spec.name, spec.function, spec.signature, oldest, spec.registers))
    where = {"variant": f"lean, {precision}", "capability": _name(oldest), "kernel": spec.name}
    measure("kernel.registers", used.registers, "1", conditions=where)
    assert used.local_bytes + used.stack_bytes == 0
    if recorded is not None:
        assert used.registers <= recorded[key("lean", "burst", oldest)]


@pytest.mark.requirement("BE-20")
@pytest.mark.measures("kernel.registers", "kernel.local_bytes", variant=..., capability=..., kernel="closed_loop")
@pytest.mark.thorough(LONG)
@pytest.mark.parametrize("capability", CAPABILITIES, ids=_name)
@pytest.mark.parametrize("variant", ["lean", "delays", "packed sums, long rows"])
def test_closed_loop_builds(variants, variant: str, capability: Capability, measure) -> None:
    """The kernel that stays: no spills; only stimulus without marks reads back, in spite of the waits in between."""
    from burstproof.compile.resources import instructions_of, resources_of
    from burstproof.engine.cuda.kernels.calls import polled_words
    from burstproof.engine.cuda.kernels.catalogue import catalogue
    from burstproof.engine.cuda.kernels.closed_loop import closed_loop_spec, persistent_variant

    reason = obstacle(capability)
    if reason:
        pytest.skip(reason)
    spec = closed_loop_spec(variants[variant])
    image = compile_kernel(spec.name, spec.function, spec.signature, capability, spec.registers)
    used = resources_of(image)
    where = {"variant": variant, "capability": _name(capability), "kernel": spec.name}
    measure("kernel.registers", used.registers, "1", conditions=where)
    measure("kernel.local_bytes", used.local_bytes + used.stack_bytes, "B", conditions=where)
    if capability == (9, 0):
        found, merged = instructions_of(image), next(s for s in catalogue(variants[variant]) if s.name == "burst")
        alone = instructions_of(
            compile_kernel(merged.name, merged.function, merged.signature, capability, merged.registers)
        )
        assert found is not None
        assert alone is not None
        word, copies = variants[variant].word, 4  # of the first turn and of the others, of the first amounts and others
        read_back = (
            0 if word.marked or word.packed else copies * polled_words(persistent_variant(variants[variant]).threads)
        )
        assert (found.spills, found.atomics) == (0, alone.atomics + read_back)
        assert found.reductions > alone.reductions


@pytest.mark.thorough(LONG)
@pytest.mark.parametrize("variant", LAUNCHED)
def test_launches_give_what_the_machine_code_takes(variants, variant: str) -> None:
    """Tuples are flattened: a launch gives every kernel as many values as it has parameters, each of its size."""
    from suites.support.compile.launched import Numbers, bytes_of, bytes_taken, kernels_of, written
    from suites.support.compile.variants import chosen_shards

    for spec, shard in kernels_of({**variants, **chosen_shards()}[variant]):
        assert bytes_of(written(spec, shard, Numbers())) == bytes_taken(spec, (8, 0)), spec.name
