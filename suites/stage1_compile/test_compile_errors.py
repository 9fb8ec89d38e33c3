"""What the compiler refuses comes back as one error; what the tools cannot assemble is known before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from burstproof.compile.code import NEWEST_ISA, check_ptx, newest_isa, ptx_isa
from burstproof.compile.entry import Entry
from burstproof.compile.resources import count_instructions
from burstproof.compile.source import CudaSource, SourceOptions
from burstproof.errors import CompileError, InputError
from suites.support.compile.tools import needs_tools

PTX = "//\n// generated\n.version 9.4\n.target sm_90\n"

pytestmark = pytest.mark.requirement("KL-1", "KL-3", "ST-1")


def test_a_ptx_newer_than_the_tools_is_refused_with_the_cure() -> None:
    with pytest.raises(CompileError, match=r"PTX ISA 9\.4.*at most 9\.0.*Set rebuild") as caught:
        check_ptx(PTX, (13, 0))
    assert caught.value.exit_code == 3


def test_a_ptx_that_the_tools_know_is_accepted() -> None:
    check_ptx(PTX.replace("9.4", "8.8"), (12, 9))
    assert ptx_isa(PTX) == (9, 4)


def test_isa_never_falls_with_newer_tools() -> None:
    newest = [newest_isa(version) for version in sorted(NEWEST_ISA)]
    assert newest == sorted(newest)
    assert newest_isa((14, 2)) == max(newest)


def test_tools_too_old_are_named() -> None:
    with pytest.raises(CompileError, match=r"got '11\.4'.*Install nvJitLink"):
        newest_isa((11, 4))


def test_a_text_without_version_is_refused() -> None:
    with pytest.raises(CompileError, match=r"no \.version directive"):
        ptx_isa("int main() {}")


def test_instructions_are_told_apart() -> None:
    found = count_instructions(
        [
            "LDG.E",
            "LDG.E.128",
            "LDG.E.64.CONSTANT",
            "REDG.E.ADD.STRONG.GPU",
            "ATOMG.E.ADD",
            "STG.E",
            "DMUL",
            "LDL",
            "IADD3",
        ]
    )
    assert (found.total, found.global_loads, found.wide_loads, found.global_stores) == (9, 3, 2, 1)
    assert (found.reductions, found.atomics, found.double_precision, found.spills) == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: SourceOptions(defines=("TILE", "64")), r"SourceOptions\.defines: no macros.*\(\('TILE', '64'\),\)"),
        (lambda: SourceOptions(defines=(("TILE", 64),)), r"SourceOptions\.defines: no macros.*pairs of strings"),
        (lambda: SourceOptions(defines={"TILE": "64"}), r"SourceOptions\.defines: no macros.*a tuple of pairs"),
        (lambda: SourceOptions(max_registers=-3), r"max_registers: no bound \(got -3; allowed: 16 to 255, or None\)"),
        (lambda: SourceOptions().arch("9.0"), r"no compute capability \(got '9\.0'; allowed: such as \(9, 0\)\)"),
        (lambda: SourceOptions().arch(90), r"no compute capability \(got 90"),
        (lambda: CudaSource("t.cu", "", templates="fill<int>"), r"t\.cu, templates: one string.*\('fill<int>',\)"),
        (lambda: Entry(CudaSource("t.cu", ""), "k", "float32[],uint32"), r"not a type of a kernel's parameter"),
    ],
)
def test_what_a_source_cannot_mean_is_refused_where_it_is_written(build: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()


@needs_tools
def test_a_kernel_with_an_error_names_kernel_and_line() -> None:
    from numba import types

    from burstproof.compile.numba_cubin import compile_kernel

    def broken(values):
        values[0] = undefined_name  # noqa: F821

    with pytest.raises(CompileError, match=r"(?s)kernel broken for sm_90.*undefined_name"):
        compile_kernel("broken", broken, types.void(types.float32[::1]), (9, 0))
