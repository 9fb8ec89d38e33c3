"""What the comparison of machine code counts as a difference, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.support.compile.sass_compare import Code, Difference, comparable, compare, main, read

pytestmark = pytest.mark.requirement("KL-1", "KL-4", "ST-1")

SASS = """
.text._ZN5fusedE:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   ULDC.64 UR4, c[0x0][{first}] ;
        /*0020*/              @!P0 BRA `({label}) ;
        /*0030*/                   IMAD.WIDE R2, R0, 0x4, c[0x0][{second}] ;
        /*0040*/                   IADD3 R3, R2, c[0x0][{first}], RZ ;
{label}:
        /*0050*/                   EXIT ;
.L_x_99:
        /*0060*/                   NOP ;
"""
PLAIN = SASS.format(first="0x210", second="0x250", label=".L_x_3")


def _code(registers: int = 32, local_bytes: int = 0, sass: str = PLAIN) -> Code:
    return Code(registers, local_bytes, comparable(sass))


def test_names_of_labels_and_places_of_parameters_do_not_count() -> None:
    moved = SASS.format(first="0x2a0", second="0x230", label=".L_x_7").replace("fused", "burst")
    assert comparable(moved) == comparable(PLAIN)
    assert "ULDC.64 UR4, parameter 0" in comparable(PLAIN)
    assert "label 0:" in comparable(PLAIN)


def test_the_name_of_a_kernel_in_a_jump_does_not_count() -> None:
    jump = "\n        /*0070*/                   RET.REL.NODEC R14 `({name}) ;"
    assert comparable(PLAIN + jump.format(name="_ZN5fusedE")) == comparable(PLAIN + jump.format(name="_ZN5burstE"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("IMAD.WIDE R2, R0, 0x4, c[0x0][0x250]", "IMAD.WIDE R2, R0, 0x4, c[0x0][0x210]"),  # another parameter
        ("c[0x0][0x28]", "c[0x0][0x24]"),  # no parameter: the stack
        ("IADD3 R3", "IADD3 R4"),
        ("        /*0020*/              @!P0 BRA `(.L_x_3) ;\n", ""),
    ],
)
def test_what_counts(old: str, new: str) -> None:
    assert old in PLAIN
    assert comparable(PLAIN.replace(old, new)) != comparable(PLAIN)


def test_more_registers_and_missing_kernels_are_refused() -> None:
    one, wider, spilling = _code(), _code(registers=40), _code(local_bytes=8)
    changed = Code(30, 0, ("EXIT",))
    found = compare(
        {"a": one, "b": one, "c": one, "d": one, "e": one}, {"a": one, "b": wider, "c": spilling, "d": changed}
    )
    assert [difference.same for difference in found] == [True, False, False, False, False]
    assert [difference.acceptable for difference in found] == [True, False, False, True, False]
    assert str(found[1]).endswith("32 -> 40 registers MORE")
    assert str(found[4]) == "e: MISSING"
    assert Difference("f", None, one).acceptable


def test_the_command_compares_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, code in ((old, _code()), (new, _code(registers=33))):
        folder.mkdir()
        (folder / "lean -- fused.sass").write_text(code.text())
    assert read(old) == {"lean -- fused": _code()}
    assert main(["compare", str(old), str(old)]) == 0
    assert main(["compare", str(old), str(new)]) == 1
    assert "32 -> 33 registers MORE" in capsys.readouterr().out
    assert main(["compare", str(old)]) == 2
