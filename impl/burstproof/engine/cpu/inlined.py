"""Compilers of numba that make machine code only of functions that Python calls.

A kernel is made of dozens of functions. numba makes machine code of each by itself, then of the kernel that they were
linked into; nobody calls the former. Leaving it out spares a seventh of the time that a kernel takes to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.environment import lookup_environment

_ENVIRONMENT = "_ZN08NumbaEnv"
"""How numba's variables begin that point to a function's environment: the constants for exceptions that it raises."""


class _NoEngine:
    """What a library without machine code says of its engine."""

    def set_env(self, name: str, environment: object) -> None:
        """There is no variable yet; ``_WholeLibrary`` sets it."""


class _InlinedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is optimised, to be linked into other code."""

    @property
    def codegen(self) -> _NoEngine:
        return _NoEngine()

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _WholeLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Machine code of a function and all that is linked into it."""

    def _finalize_specific(self) -> None:
        super()._finalize_specific()
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name) if variable.name.startswith(_ENVIRONMENT) else None
            if environment is not None:
                self._codegen.set_env(variable.name, environment)


class InlinedCompiler(Compiler):  # type: ignore[misc]
    """Compiles a function for others only."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """As numba does, but for the machine code."""
        self.state.library = _InlinedLibrary(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class WholeCompiler(Compiler):  # type: ignore[misc]
    """Compiles a function that Python calls, into which those of ``InlinedCompiler`` are linked."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """As numba does."""
        self.state.library = _WholeLibrary(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)
