"""PTX from NVRTC without a driver: cuda.core asks the driver about PTX, the compiler itself needs none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class NvrtcError(Exception):
    """NVRTC's log, or the name of its error where it wrote none."""


def ptx_of(text: str, name: str, options: Sequence[bytes], templates: Sequence[str]) -> str:
    """PTX of CUDA C++ text.

    Parameters
    ----------
    text : str
    name : str
        File name in the log.
    options : sequence of bytes
        As NVRTC takes them; the architecture is a ``compute_`` one.
    templates : sequence of str
        Instances to build.

    Raises
    ------
    NvrtcError
        The text does not compile.
    """
    from cuda.bindings import nvrtc

    program = _taken(nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], []))
    try:
        for template in templates:
            _taken(nvrtc.nvrtcAddNameExpression(program, template.encode()))
        (result,) = nvrtc.nvrtcCompileProgram(program, len(options), list(options))
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = bytearray(_taken(nvrtc.nvrtcGetProgramLogSize(program)))
            _taken(nvrtc.nvrtcGetProgramLog(program, log))
            raise NvrtcError(log.decode(errors="replace"))
        ptx = bytearray(_taken(nvrtc.nvrtcGetPTXSize(program)))
        _taken(nvrtc.nvrtcGetPTX(program, ptx))
        return ptx.rstrip(b"\0").decode()
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _taken(answer: tuple[Any, ...]) -> Any:
    from cuda.bindings import nvrtc

    if answer[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise NvrtcError(str(answer[0]))
    return answer[1] if len(answer) > 1 else None
