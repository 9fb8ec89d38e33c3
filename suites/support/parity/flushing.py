"""Adapters that flush subnormals, in software: the shaders' own operations with a flush about each of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from burstproof.engine.wgpu.shaders import operations_shader

_SIGN = "0x80000000u"


@dataclass(frozen=True)
class Flushing:
    """What an adapter flushes to zero.

    Attributes
    ----------
    inputs, outputs : bool
        Whether what goes into an operation is flushed, and what comes out. An output of 2^-126 itself is flushed as
        well, as by an adapter that rounds afterwards.
    keeps_sign : bool
        Whether the zero has the sign of the number; otherwise -0 itself becomes 0.
    """

    inputs: bool
    outputs: bool
    keeps_sign: bool

    @property
    def name(self) -> str:
        """For people."""
        what = " and ".join(["inputs"] * self.inputs + ["outputs"] * self.outputs)
        return f"{what} to {'zero of their sign' if self.keeps_sign else '+0'}"

    def operations(self) -> str:
        """WGSL for such an adapter, in place of ``operations.wgsl``."""
        kept = _SIGN if self.keeps_sign else "0u"
        text, inputs = re.subn(r"bitcast<f32>\((\w)\)", r"flushed_input(\1)", operations_shader())
        text, outputs = re.subn(r"return bitcast<u32>\((.*)\);", r"return flushed_output(bitcast<u32>(\1));", text)
        if (inputs, outputs) != (4, 4):
            raise AssertionError(f"of 4 inputs and 4 outputs {inputs} and {outputs} are flushed")
        small = "(x & 0x7fffffffu) < 0x800000u" if self.inputs else "false"
        result = "(x & 0x7fffffffu) <= 0x800000u" if self.outputs else "false"
        return (
            f"fn flushed_input(x: u32) -> f32 {{ return bitcast<f32>(select(x, x & {kept}, {small})); }}\n"
            f"fn flushed_output(x: u32) -> u32 {{ return select(x, x & {kept}, {result}); }}\n{text}"
        )


FLUSHINGS = (
    Flushing(inputs=True, outputs=True, keeps_sign=True),
    Flushing(inputs=True, outputs=False, keeps_sign=True),
    Flushing(inputs=False, outputs=True, keeps_sign=True),
    Flushing(inputs=True, outputs=True, keeps_sign=False),
)
