"""The machine code of the attention kernels: tensor cores, asynchronous copies, nothing spilled."""

from __future__ import annotations

import pytest

from suites.support.compile.tools import needs_tools

pytestmark = [pytest.mark.requirement("TO-5", "KL-4"), needs_tools]


@pytest.mark.parametrize("which", ["forward", "keys", "queries"])
def test_flash_kernels_run_on_tensor_cores(which) -> None:
    """Products on tensor cores, tiles that reach shared memory past the registers, no local memory, no atomics."""
    from burstproof.compile.resources import instructions_of
    from burstproof.tensor.attention.flash import TILES, flash_entry

    entry = flash_entry(which, 64, True, True)
    found = instructions_of(entry.code.image((9, 0)), entry.function)
    assert found is not None
    products = {"forward": 2 * 2, "keys": 4, "queries": 3}[which]  # forward: code with the mask and without it
    tile = TILES[which, 64]
    assert found.tensor == products * tile.strips * (tile.block // 8) * (64 // 16)
    assert found.async_copies > 0
    assert found.spills == 0
    assert found.atomics == found.reductions == 0
