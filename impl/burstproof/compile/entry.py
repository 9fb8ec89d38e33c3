"""A kernel as the package declares it: where its code comes from, its function, its parameters."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from burstproof.compile.numba_cubin import Capability, Image
from burstproof.compile.parameters import Parameter, parse_parameters
from burstproof.device.protocol import Signature

if TYPE_CHECKING:
    from burstproof.compile.launch import DeviceKernel


class Code(Protocol):
    """Anything that gives machine code for a capability without a device, such as ``CudaSource``."""

    @property
    def name(self) -> str:
        """Name in errors and reports."""

    def image(self, capability: Capability) -> Image:
        """Machine code for ``capability``.

        Raises
        ------
        CompileError
            What the compiler said.
        """


@dataclass(frozen=True, eq=False)
class Entry:
    """A function of some code and the parameters that it takes.

    Attributes
    ----------
    code : Code
    function : str
        An ``extern "C"`` name, or a template instance that the code lists.
    parameters : str or tuple of Parameter
        Types in order, see ``parse_parameters``: ``"float32[] float32[] uint32"``.
    block : int
        Threads per block at which occupancy is reported.
    shared_bytes : int
        Dynamic shared memory at which occupancy is reported.
    minimum : (int, int)
        Lowest capability that it builds for.

    Raises
    ------
    InputError
        An unknown type among the parameters.
    """

    code: Code
    function: str
    parameters: str | tuple[Parameter, ...]
    block: int = 256
    shared_bytes: int = 0
    minimum: Capability = (7, 0)
    _loaded: dict[int, DeviceKernel] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.parameters, str):
            parse_parameters(self.parameters)

    @classmethod
    def of_numba(cls, function: Callable[..., None], signature: Signature) -> Entry:
        """A Python function for numba as an entry.

        Parameters
        ----------
        function : callable
            As for ``numba.cuda.jit``.
        signature : numba signature
            ``types.void(...)`` of arrays in C order and numbers.
        """
        from burstproof.compile.code import NumbaCode

        code = NumbaCode(function, signature)
        return cls(code, code.name, code.parameters)

    @cached_property
    def declared(self) -> tuple[Parameter, ...]:
        """The parameters parsed."""
        return parse_parameters(self.parameters) if isinstance(self.parameters, str) else self.parameters

    def on(self, device_id: int = 0) -> DeviceKernel:
        """The kernel on a device, built for its capability and loaded at the first call only.

        Raises
        ------
        CompileError
            The code does not build for the device.
        InputError
            The code has no such function, or its parameters are declared otherwise.
        BackendUnavailableError
            No such device.
        """
        found = self._loaded.get(device_id)
        return found if found is not None else self._load(device_id)

    def _load(self, device_id: int) -> DeviceKernel:
        from burstproof.compile.launch import device_capability, load_kernel

        with self._lock:
            if device_id not in self._loaded:
                image = self.code.image(device_capability(device_id))
                self._loaded[device_id] = load_kernel(image, self.function, self.declared, device_id)
            return self._loaded[device_id]
