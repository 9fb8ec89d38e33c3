"""The kernel that stays on the device for a closed loop builds wherever it may be chosen, without a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from burstproof.compile.numba_cubin import compile_kernel, obstacle
from suites.support.compile.tools import needs_tools

pytestmark = [pytest.mark.requirement("BE-20", "KL-1", "ST-1"), needs_tools]

_SHARED_BYTES = 48 << 10
"""Most shared memory that a block has without asking."""


@pytest.mark.parametrize(("per_thread", "buckets"), [(1, 64), (2, 32)])
def test_a_chunk_and_its_places_in_buckets_fit_into_shared_memory(per_thread: int, buckets: int) -> None:
    from burstproof.compile.resources import resources_of
    from burstproof.engine.cuda.kernels.closed_loop import can_persist, closed_loop_spec
    from burstproof.engine.cuda.plan.block_size import FusedShape
    from suites.support.compile.variants import chosen_variants

    reason = obstacle((9, 0))
    if reason:
        pytest.skip(reason)
    chosen = chosen_variants()["delays in a calendar"]
    variant = replace(chosen, fused=FusedShape(512, per_thread), calendar=buckets)
    assert can_persist(variant)
    spec = closed_loop_spec(variant)
    image = compile_kernel(spec.name, spec.function, spec.signature, (9, 0), spec.registers)
    assert 0 < resources_of(image).shared_bytes <= _SHARED_BYTES
