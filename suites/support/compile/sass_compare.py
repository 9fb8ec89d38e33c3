"""The gate of a change that must not change machine code: every surveyed CUDA kernel's SASS, before and after.

``python -m suites.support.compile.sass_compare dump FOLDER`` compiles the kernels for capability 9.0 and writes a file
for each: registers and bytes of stack and local memory, then the instructions. ``compare OLD NEW`` holds two such
folders against each other; it exits with 1 if a kernel needs more registers or spills more, or is missing.

Names of kernels and labels are left out, and parameters are named in the order in which a kernel first reads them, so
that neither a new name nor another order of parameters counts as a difference.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from burstproof.compile.numba_cubin import compile_kernel
from burstproof.compile.resources import disassembled, resources_of

if TYPE_CHECKING:
    from burstproof.engine.cuda.kernels.spec import KernelSpec
    from burstproof.engine.cuda.plan.shard_variant import ShardVariant
    from burstproof.engine.cuda.plan.variant import Variant

CAPABILITY = (9, 0)
_SEPARATOR = " -- "
_FIRST_PARAMETER = 0x210
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(.*?)\s*;", re.MULTILINE)
_LABEL = re.compile(r"^(\.L_x_\d+):", re.MULTILINE)
_CONSTANT = re.compile(r"c\[0x0\]\[(?:(U?R\w+)\+)?0x([0-9a-f]+)\]")
_TARGET = re.compile(r"`\((\.L_x_\d+)\)")
_NAME = re.compile(r"`\(_Z\w+\)")


@dataclass(frozen=True)
class Code:
    """What a kernel needs (registers, bytes of stack and local memory) and its instructions, made comparable."""

    registers: int
    local_bytes: int
    instructions: tuple[str, ...]

    def text(self) -> str:
        """The kernel as a file."""
        return "\n".join((f"{self.registers} registers, {self.local_bytes} bytes", *self.instructions, ""))

    @classmethod
    def read(cls, text: str) -> Code:
        """The kernel that ``text`` holds."""
        head, *instructions = text.splitlines()
        registers, _, local_bytes, _ = head.split()
        return cls(int(registers), int(local_bytes), tuple(instructions))


@dataclass(frozen=True)
class Difference:
    """Two versions of one kernel; ``old`` or ``new`` is ``None`` where there is no such kernel."""

    kernel: str
    old: Code | None
    new: Code | None

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return self.old == self.new

    @property
    def acceptable(self) -> bool:
        """Whether no kernel is missing, and none needs more."""
        if self.old is None or self.new is None:
            return self.new is not None
        return self.new.registers <= self.old.registers and self.new.local_bytes <= self.old.local_bytes

    def __str__(self) -> str:
        """One line of a report."""
        if self.old is None or self.new is None:
            return f"{self.kernel}: {'new' if self.old is None else 'MISSING'}"
        old, new = self.old, self.new
        counts = f"{len(old.instructions)} -> {len(new.instructions)} instructions"
        registers = f"{old.registers} -> {new.registers} registers"
        return f"{self.kernel}: {counts}, {registers}{'' if self.acceptable else ' MORE'}"


def comparable(sass: str) -> tuple[str, ...]:
    """Instructions of one kernel, with labels and parameters named in the order of their first use."""
    parameters: dict[str, str] = {}
    labels: dict[str, str] = {}

    def parameter(found: re.Match[str]) -> str:
        register, place = found[1], int(found[2], 16)
        if place < _FIRST_PARAMETER or register:
            return found[0]
        return parameters.setdefault(found[2], f"parameter {len(parameters)}")

    def label(found: re.Match[str]) -> str:
        return labels.setdefault(found[1], f"label {len(labels)}")

    lines = []
    for line in sass.splitlines():
        if named := _LABEL.match(line):
            lines.append(f"{named[1]}:")
        elif instruction := _INSTRUCTION.match(line):
            lines.append(instruction[1])
    text = _CONSTANT.sub(parameter, "\n".join(line for line in lines if line != "NOP"))
    text = _NAME.sub("kernel", _TARGET.sub(label, text))
    named_lines = (f"{labels[line[:-1]]}:" if line[:-1] in labels else line for line in text.splitlines())
    return tuple(line for line in named_lines if not line.startswith(".L_x_"))


def compare(old: dict[str, Code], new: dict[str, Code]) -> list[Difference]:
    """Every kernel of either side."""
    return [Difference(kernel, old.get(kernel), new.get(kernel)) for kernel in sorted({*old, *new})]


def surveyed() -> Iterator[tuple[str, KernelSpec]]:
    """Every kernel of the survey with the name of its variant."""
    from burstproof.engine.cuda.kernels.catalogue import catalogue

    for name, variant in {**_variants(), **_shards()}.items():
        yield from ((name, spec) for spec in catalogue(variant))
    yield from _generating()


def _overlapped(variant: Variant) -> Variant:
    return replace(variant, overlapped=variant.fused is not None)


def _variants() -> dict[str, Variant]:
    from burstproof.engine.precision import Storage, precision_named
    from suites.support.compile.variants import chosen_variants, sized_variants

    found = {name: _overlapped(variant) for name, variant in {**chosen_variants(), **sized_variants()}.items()}
    lean = found["lean"]
    for precision in ("fp16", "bf16", "int8"):
        stored = replace(lean.features, storage=Storage(precision_named(precision), 0.25))
        found[f"lean, {precision}"] = replace(lean, features=stored)
    for name in ("lean", "delays", "everything", "packed sums, long rows"):
        found[f"{name}, streamed"] = replace(found[name], streamed=True)
    return found


def _shards() -> dict[str, ShardVariant]:
    from suites.support.compile.variants import chosen_shards

    return {
        name: replace(shard, overlapped=shard.fused and shard.variant.tiles == 0)
        for name, shard in chosen_shards().items()
    }


def _generating() -> Iterator[tuple[str, KernelSpec]]:
    from burstproof.engine.cuda.kernels import generate, padded
    from burstproof.network.synthetic.spec import SyntheticSpec
    from suites.support.compile.variants import chosen_variants

    variants = chosen_variants()
    same = SyntheticSpec(1000, 20, seed=3)
    varied = SyntheticSpec(1000, 20, seed=3, weights=(1, 3), delays=(1, 7), inhibitory_fraction=0.2)
    for name, spec, variant in (("same", same, variants["lean"]), ("varied", varied, variants["delays"])):
        for strategy in (None, "contiguous", "round_robin"):
            where = f"generated, {name}, {strategy or 'whole'}"
            yield where, generate.survey_kernel(spec, strategy)
            yield where, generate.fill_kernel(spec, variant, strategy)
    yield "generated, same, padded", padded.fill_padded_kernel(same, 32, "contiguous")


def dump(folder: Path) -> None:
    """Compile everything into ``folder``; kernels that lie there already are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for variant, spec in surveyed():
        file = folder / f"{variant}{_SEPARATOR}{spec.name}.sass"
        if file.exists():
            continue
        print(file.stem, file=sys.stderr)
        image = compile_kernel(spec.name, spec.function, spec.signature, CAPABILITY, spec.registers)
        used = resources_of(image)
        code = Code(used.registers, used.local_bytes + used.stack_bytes, comparable(disassembled(image)))
        file.write_text(code.text())


def read(folder: Path) -> dict[str, Code]:
    """The kernels of a folder by variant and name."""
    return {file.stem: Code.read(file.read_text()) for file in sorted(folder.glob("*.sass"))}


def main(arguments: Sequence[str]) -> int:
    """Dump or compare; returns the exit code."""
    if len(arguments) == 2 and arguments[0] == "dump":
        dump(Path(arguments[1]))
        return 0
    if len(arguments) != 3 or arguments[0] != "compare":
        print("usage: python -m suites.support.compile.sass_compare dump FOLDER | compare OLD NEW", file=sys.stderr)
        return 2
    found = compare(read(Path(arguments[1])), read(Path(arguments[2])))
    for difference in found:
        if not difference.same:
            print(difference)
    print(f"{sum(difference.same for difference in found)} of {len(found)} kernels are the same")
    return 0 if all(difference.acceptable for difference in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
