"""The kernels that read synapses from host memory build, spill nothing and add with reductions, without a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from burstproof.compile.numba_cubin import Capability, compile_kernel, obstacle
from burstproof.engine.cuda.plan.word import Word
from suites.support.compile.tools import needs_tools
from suites.support.plans import first, thinned

pytestmark = [pytest.mark.requirement("BE-10", "KL-1", "ST-1"), needs_tools]


SEPARATE = ["propagate_computed", "propagate_streamed"]
SENDING = {"burst", *SEPARATE}

PLACES = thinned(
    [
        *(pytest.param(variant, (9, 0)) for variant in ("lean", "lean, packed sums", "delays", "everything")),
        *(
            pytest.param(variant, capability)
            for capability in ((7, 0), (12, 0))
            for variant in ("delays", "everything")
        ),
    ],
    "two seconds and more for each variant and capability",
    keep=first(1),
)


@pytest.mark.parametrize(("variant", "capability"), PLACES, ids=str)
def test_streaming_kernels(variant: str, capability: Capability) -> None:
    """The fused burst without and with long rows, whose pieces get their places; or the separate kernels that send."""
    from burstproof.compile.resources import instructions_of, resources_of
    from burstproof.engine.cuda.kernels.catalogue import catalogue
    from suites.support.compile.variants import chosen_variants

    reason = obstacle(capability)
    if reason:
        pytest.skip(reason)
    name, _, packed = variant.partition(", ")
    chosen = chosen_variants()[name]
    streamed = replace(chosen, streamed=True, word=Word(8) if packed else chosen.word)
    assert streamed.word.packed == bool(packed)
    sending = [(spec, 0) for spec in catalogue(streamed) if spec.name in SENDING]
    if streamed.fused is not None:  # a long row asks for the places of its pieces
        sending += [(spec, 1) for spec in catalogue(replace(streamed, long_rows=128)) if spec.name in SENDING]
    assert sorted(spec.name for spec, _ in sending) == (SEPARATE if streamed.fused is None else ["burst", "burst"])
    for spec, read_back in sending:
        image = compile_kernel(spec.name, spec.function, spec.signature, capability, spec.registers)
        resources, found = resources_of(image), instructions_of(image)
        assert resources.local_bytes + resources.stack_bytes == 0, spec.name
        if found is not None:
            assert found.reductions > 0, spec.name
            assert (found.atomics, found.spills) == (read_back, 0), spec.name
