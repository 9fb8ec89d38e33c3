"""Every catalogued kernel builds for every capability without a GPU, as declared and within its recorded resources."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from burstproof.compile.numba_cubin import CAPABILITIES, Capability, obstacle
from burstproof.compile.parameters import parse_parameters
from burstproof.compile.resources import KernelReport, occupancy, report_of
from burstproof.compile.source import CudaSource
from burstproof.errors import SourceError
from suites.support.compile.cuda_sources import CATALOGUES, catalogued, title
from suites.support.compile.structs import asserting, kernels_in
from suites.support.compile.tools import needs_tools
from suites.support.plans import only, thinned

pytestmark = [pytest.mark.requirement("KL-1", "KL-4", "ST-1"), needs_tools]

PACKAGE = Path(__file__).parents[2] / "impl" / "burstproof"


def _name(capability: Capability) -> str:
    return f"{capability[0]}.{capability[1]}"


INSTRUCTIONS = ("global_loads", "wide_loads", "reductions", "atomics", "tensor", "async_copies", "spills")


@cache
def first_reports(module: str) -> tuple[KernelReport, ...]:
    """Every kernel of the image that ``module`` lists first, on capability 9.0."""
    first = next(iter(catalogued((module,)).values()))
    return report_of(first.code.image((9, 0)), first.block, first.shared_bytes)


@pytest.fixture(scope="module")
def recorded():
    from burstproof.compile.numba_cubin import compiler_version
    from suites.support.compile.survey import BASELINE

    document = json.loads(BASELINE.read_text())["sources"]
    return document if tuple(document["compiler"]) == compiler_version() else None


@pytest.mark.measures(
    "kernel.registers",
    "kernel.local_bytes",
    "kernel.occupancy",
    only_if="a kernel of the module is for the capability",
    variant=...,
    capability=...,
    kernel=...,
)
@pytest.mark.measures(
    "kernel.registers_over_baseline",
    "kernel.spills_over_baseline",
    only_if="the recorded figures are of these compilers",
    variant=...,
    capability=...,
    kernel=...,
)
@pytest.mark.parametrize("capability", thinned(CAPABILITIES, "a capability of many", keep=only((9, 0))), ids=_name)
@pytest.mark.parametrize("module", CATALOGUES)
def test_every_catalogued_kernel_builds(recorded, module: str, capability: Capability, measure) -> None:
    """Registers and spills against the recorded figures, and how many blocks fit at once."""
    from suites.support.compile.survey import compile_entries, entry_key

    reason = obstacle(capability)
    if reason:
        pytest.skip(reason)

    wanted = [entry for entry in catalogued((module,)).values() if capability >= entry.minimum]
    used = compile_entries(wanted, capability)
    assert list(used) == wanted
    for entry, resources in used.items():
        where = {"variant": entry.code.name, "capability": _name(capability), "kernel": title(entry)}
        spilled = resources.stack_bytes + resources.local_bytes
        measure("kernel.registers", resources.registers, "1", conditions=where)
        measure("kernel.local_bytes", spilled, "B", conditions=where)
        fits = occupancy(capability, resources.registers, resources.shared_bytes + entry.shared_bytes, entry.block)
        measure("kernel.occupancy", fits.share, "1", conditions=where, note=f"bound by {fits.bound_by}")
        if recorded is not None:  # other tools allocate registers otherwise: nothing to hold them against
            key = entry_key(entry, capability)
            known = recorded["registers"].get(key, float("nan"))
            measure("kernel.registers_over_baseline", resources.registers - known, "1", conditions=where)
            more = spilled - recorded["spilled_bytes"].get(key, 0)
            measure("kernel.spills_over_baseline", more, "B", conditions=where)


@pytest.mark.parametrize("module", CATALOGUES)
def test_the_machine_code_takes_what_is_declared(module: str) -> None:
    """Size of each parameter on capability 9.0, which a launch checks again."""
    from burstproof.compile.parameters import size_of
    from burstproof.compile.resources import parameter_bytes_of

    for entry in catalogued((module,)).values():
        declared = tuple(size_of(code) for parameter in entry.declared for code in parameter.formats)
        assert parameter_bytes_of(entry.code.image((9, 0)), entry.function) == declared, title(entry)


def test_structs_lie_in_the_source_as_they_are_declared() -> None:
    """Every field by name, type and offset; and the kernel takes the struct at the declared place."""
    asked, structs = set(), set()
    for entry in catalogued().values():
        for place, parameter in enumerate(entry.declared):
            if not parameter.struct:
                continue
            assert isinstance(entry.code, CudaSource)
            taken = dict(kernels_in(entry.code.text))[entry.function]
            assert parameter.struct in taken[place].split(), title(entry)
            structs.add(parameter.struct)
            source = asserting(entry.code, parameter)
            if (source.text, source.options) not in asked:
                asked.add((source.text, source.options))
                source.ptx((9, 0))
    assert structs == {"Rates", "Strides"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("struct Rates { float step, decay; };", None),
        ("struct Rates { float decay, step; };", "static assertion failed"),
        ("struct Rates { float step, decay, more; };", "static assertion failed"),
        ("struct Rates { float step, shrink; };", '"decay"'),
        ("struct Rates { float step; int decay; };", "cannot be used to initialize"),
        ("struct Rates { float step; alignas(8) float decay; };", "static assertion failed"),
        ("struct Others { float step, decay; };", '"Rates" is undefined'),
    ],
)
def test_a_struct_that_is_declared_otherwise_is_found(text: str, error: str | None) -> None:
    (rates,) = parse_parameters("Rates(float32:step,decay)")
    source = asserting(CudaSource("rates.cu", text), rates)
    if error is None:
        source.ptx((9, 0))
        return
    with pytest.raises(SourceError, match=error):
        source.ptx((9, 0))


@pytest.mark.measures(*(f"kernel.{name}" for name in INSTRUCTIONS))
@pytest.mark.parametrize("module", CATALOGUES)
def test_the_instructions_that_matter(module: str, measure) -> None:
    """Of the file that each room lists first, on capability 9.0; disassembling every file takes too long."""
    for report in first_reports(module):
        counts = report.instructions
        assert counts is not None
        where = {"variant": module, "capability": "9.0", "kernel": report.kernel}
        for name in INSTRUCTIONS:
            measure(f"kernel.{name}", getattr(counts, name), "1", conditions=where)
        assert counts.total > 0


def test_no_source_file_is_left_out() -> None:
    """Each CUDA C++ file of the package belongs to a catalogued kernel."""
    files = {path.name for path in PACKAGE.rglob("*.cu")}
    assert files
    assert files <= {entry.code.name for entry in catalogued().values()}


def test_the_matrix_product_loads_in_vectors_and_keeps_its_tile_in_registers() -> None:
    from burstproof.compile.proof import DENSE

    found = {report.kernel: report.instructions for report in first_reports("burstproof.compile.proof")}
    for entry in DENSE.values():
        counts = found[entry.function]
        assert counts is not None
        assert counts.wide_loads > 0
        assert counts.wide_stores > 0
        assert counts.spills == 0
        assert counts.double_precision == 0
