"""The kernels that read synapses from host memory build, spill nothing and add with reductions, without a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from burstproof.kernels.compile import Capability, compile_kernel, obstacle
from suites.stage1_compile.tools import needs_tools

pytestmark = [pytest.mark.requirement("BE-10", "KL-1", "ST-1"), needs_tools]


@pytest.mark.parametrize("capability", [(7, 0), (9, 0), (12, 0)], ids=lambda c: f"{c[0]}.{c[1]}")
@pytest.mark.parametrize("variant", ["lean", "lean, packed sums", "delays", "everything"])
def test_streaming_kernels(variant: str, capability: Capability) -> None:
    from burstproof.burst.cuda.streaming_kernels import streaming_catalogue
    from burstproof.kernels.resources import instructions_of, resources_of
    from suites.stage1_compile.variants import chosen_variants

    reason = obstacle(capability)
    if reason:
        pytest.skip(reason)
    name, _, packed = variant.partition(", ")
    chosen = chosen_variants()[name]
    streamed = replace(chosen, streamed=True, sum_bits=8 if packed else chosen.sum_bits)
    assert streamed.packed_sums == bool(packed)
    propagating = [spec for spec in streaming_catalogue(streamed) if spec.name.startswith("propagate")]
    assert len(propagating) == 1 + chosen.computed
    for spec in propagating:
        image = compile_kernel(spec.name, spec.function, spec.signature, capability)
        resources, found = resources_of(image), instructions_of(image)
        assert resources.local_bytes + resources.stack_bytes == 0, spec.name
        if found is not None:
            assert found.reductions > 0, spec.name
            assert found.atomics == found.spills == 0, spec.name


def test_the_fused_burst_sends_nothing_from_host_memory() -> None:
    """All that it adds without reading back are the firings of a span and the number of the burst."""
    from burstproof.burst.cuda.kernels import catalogue
    from burstproof.kernels.resources import instructions_of
    from suites.stage1_compile.variants import chosen_variants

    streamed = replace(chosen_variants()["lean"], streamed=True)
    spec = next(spec for spec in catalogue(streamed) if spec.name == "fused")
    found = instructions_of(compile_kernel(spec.name, spec.function, spec.signature, (9, 0)))
    assert found is not None
    assert (found.reductions, found.spills) == (2, 0)
