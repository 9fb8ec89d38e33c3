"""The machine-independent code of the CUDA kernels: what exactness needs of the instructions, without a GPU."""

from __future__ import annotations

import re
from unittest import mock

import pytest

from suites.support.compile.tools import needs_tools
from suites.support.compile.variants import chosen_variants

pytestmark = [
    pytest.mark.requirement("BE-4", "KL-1", "ST-1"),
    pytest.mark.xdist_group("PTX"),
    needs_tools,
    pytest.mark.thorough("compiles every variant: ten seconds"),
]

CAPABILITY = (9, 0)


@pytest.fixture(scope="module")
def code() -> dict[tuple[str, str], str]:
    """PTX by variant and kernel."""
    from burstproof.device.numba_cuda import cuda
    from burstproof.engine.cuda.kernels.catalogue import catalogue

    device = mock.Mock(compute_capability=CAPABILITY)
    found = {}
    with mock.patch("numba.cuda.dispatcher.get_current_device", return_value=device):
        for variant_name, variant in chosen_variants().items():
            for spec in catalogue(variant):
                ptx, _ = cuda.compile(
                    spec.function, spec.signature, cc=CAPABILITY, device=False, abi="numba", output="ptx"
                )
                found[variant_name, spec.name] = str(ptx)
    return found


def _instructions(ptx: str, name: str) -> set[str]:
    return set(re.findall(rf"^\s*(?:@!?%p\d+\s+)?({name}\.[\w.:]+)", ptx, re.MULTILINE))


def test_nothing_flushes_subnormals_or_approximates(code: dict[tuple[str, str], str]) -> None:
    for place, ptx in code.items():
        assert ".ftz" not in ptx, place
        assert ".approx" not in ptx, place


def test_division_rounds_to_nearest(code: dict[tuple[str, str], str]) -> None:
    divisions = _instructions(code["everything", "propagate_computed"], "div")
    assert "div.rn.f32" in divisions
    assert not {d for d in divisions if d.endswith((".f32", ".f64"))} - {"div.rn.f32"}


@pytest.mark.parametrize(("variant", "conversion"), [("lean", "cvt.rn.f32.s32"), ("everything", "cvt.rn.f32.s64")])
def test_sums_become_float32_in_one_step(variant: str, conversion: str, code: dict[tuple[str, str], str]) -> None:
    kernel = "burst" if (variant, "burst") in code else "dynamics"
    conversions = _instructions(code[variant, kernel], "cvt")
    assert conversion in conversions
    assert not {c for c in conversions if "f64" in c}


def test_leak_is_not_computed_in_double(code: dict[tuple[str, str], str]) -> None:
    for (variant, kernel), ptx in code.items():
        if kernel in ("dynamics", "burst"):
            assert not _instructions(ptx, "mul") & {"mul.rn.f64", "mul.f64"}, variant


def test_sums_take_integer_reductions(code: dict[tuple[str, str], str]) -> None:
    """Order-free accumulation: no floating-point atomic operation anywhere."""
    for (variant, kernel), ptx in code.items():
        atomics = _instructions(ptx, "atom") | _instructions(ptx, "red")
        assert not {a for a in atomics if re.search(r"\.f(16|32|64)", a)}, (variant, kernel)
        if kernel.startswith(("propagate", "burst")):
            assert atomics, (variant, kernel)
