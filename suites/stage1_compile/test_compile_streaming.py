"""The kernels that read synapses from host memory build, spill nothing and add with reductions, without a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from burstproof.compile.numba_cubin import Capability, compile_kernel, obstacle
from burstproof.engine.cuda.plan.word import Word
from suites.support.compile.tools import needs_tools
from suites.support.plans import first, thinned

pytestmark = [pytest.mark.requirement("BE-10", "KL-1", "ST-1"), needs_tools]


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
    if streamed.fused is None:
        specs, names = catalogue(streamed), ("propagate_streamed", "propagate_computed")
    else:
        specs, names = (*catalogue(streamed), *catalogue(replace(streamed, long_rows=128))), ("burst", "burst")
    sending = [spec for spec in specs if spec.name in names]
    assert sorted(spec.name for spec in sending) == sorted(names)
    for long_rows, spec in enumerate(sending):
        image = compile_kernel(spec.name, spec.function, spec.signature, capability, spec.registers)
        resources, found = resources_of(image), instructions_of(image)
        assert resources.local_bytes + resources.stack_bytes == 0, spec.name
        if found is not None:
            assert found.reductions > 0, spec.name
            places_read_back = long_rows if spec.name == "burst" else 0
            assert (found.atomics, found.spills) == (places_read_back, 0), spec.name
