"""The machine-independent code of the CUDA kernels: what exactness needs of the instructions, without a GPU."""

from __future__ import annotations

import re
from functools import cache
from unittest import mock

import pytest

from suites.support.compile.names import ALL_VARIANTS
from suites.support.compile.tools import needs_tools
from suites.support.compile.variants import chosen_variants

pytestmark = [
    pytest.mark.requirement("BE-4", "KL-1", "ST-1"),
    needs_tools,
    pytest.mark.thorough("compiles every variant: a minute and more"),
]

CAPABILITY = (9, 0)


EACH = [pytest.param(name, marks=pytest.mark.xdist_group(f"PTX of {name}")) for name in ALL_VARIANTS]


@cache
def code_of(variant: str) -> dict[str, str]:
    """PTX of the kernels of a variant by name."""
    from burstproof.device.numba_cuda import cuda
    from burstproof.engine.cuda.kernels.catalogue import catalogue

    device, found = mock.Mock(compute_capability=CAPABILITY), {}
    with mock.patch("numba.cuda.dispatcher.get_current_device", return_value=device):
        for spec in catalogue(chosen_variants()[variant]):
            ptx, _ = cuda.compile(spec.function, spec.signature, cc=CAPABILITY, device=False, abi="numba", output="ptx")
            found[spec.name] = str(ptx)
    return found


def _instructions(ptx: str, name: str) -> set[str]:
    return set(re.findall(rf"^\s*(?:@!?%p\d+\s+)?({name}\.[\w.:]+)", ptx, re.MULTILINE))


@pytest.mark.not_proof
def test_every_variant_is_named() -> None:
    assert {*ALL_VARIANTS} == {*chosen_variants()}


@pytest.mark.parametrize("variant", EACH)
def test_nothing_flushes_subnormals_or_approximates(variant: str) -> None:
    for kernel, ptx in code_of(variant).items():
        assert ".ftz" not in ptx, kernel
        assert ".approx" not in ptx, kernel


@pytest.mark.xdist_group("PTX of everything")
def test_division_rounds_to_nearest() -> None:
    divisions = _instructions(code_of("everything")["propagate_computed"], "div")
    assert "div.rn.f32" in divisions
    assert not {d for d in divisions if d.endswith((".f32", ".f64"))} - {"div.rn.f32"}


@pytest.mark.parametrize(
    ("variant", "conversion"),
    [
        pytest.param("lean", "cvt.rn.f32.s32", marks=pytest.mark.xdist_group("PTX of lean")),
        pytest.param("everything", "cvt.rn.f32.s64", marks=pytest.mark.xdist_group("PTX of everything")),
    ],
)
def test_sums_become_float32_in_one_step(variant: str, conversion: str) -> None:
    code = code_of(variant)
    conversions = _instructions(code["burst" if "burst" in code else "dynamics"], "cvt")
    assert conversion in conversions
    assert not {c for c in conversions if "f64" in c}


@pytest.mark.parametrize("variant", EACH)
def test_leak_is_not_computed_in_double(variant: str) -> None:
    for kernel, ptx in code_of(variant).items():
        if kernel in ("dynamics", "burst"):
            assert not _instructions(ptx, "mul") & {"mul.rn.f64", "mul.f64"}, kernel


@pytest.mark.parametrize("variant", EACH)
def test_sums_take_integer_reductions(variant: str) -> None:
    """Order-free accumulation: no floating-point atomic operation anywhere."""
    for kernel, ptx in code_of(variant).items():
        atomics = _instructions(ptx, "atom") | _instructions(ptx, "red")
        assert not {a for a in atomics if re.search(r"\.f(16|32|64)", a)}, kernel
        if kernel.startswith(("propagate", "burst")):
            assert atomics, kernel
