"""No function has more than 120 lines, and no kernel more than 12 parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from suites.support.compile.cuda_sources import catalogued, title
from suites.support.compile.structs import kernels_in

pytestmark = pytest.mark.requirement("ST-2")

CHECKOUT = Path(__file__).parents[2]
PACKAGES = ("impl", "hardware", "reports", "stages", "suites")
KERNELS = CHECKOUT / "impl/burstproof/engine/cuda/kernels"
MOST_LINES, MOST_PARAMETERS = 120, 12

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: str) -> Iterator[Function]:
    """Every function of ``source``, nested ones too."""
    return (node for node in ast.walk(ast.parse(source)) if isinstance(node, Function))


def lines_of(function: Function) -> int:
    """Lines from ``def`` to the end."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def parameters_of(function: Function) -> int:
    """Parameters that have a name of their own."""
    given = function.args
    return len([*given.posonlyargs, *given.args, *given.kwonlyargs])


def test_lines_and_parameters_are_counted() -> None:
    outer, inner = functions("def outer(a, /, b, *, c=1):\n    def inner():\n        return 1\n\n    return inner\n")
    assert [(lines_of(f), parameters_of(f)) for f in (outer, inner)] == [(5, 3), (2, 0)]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_function_is_long(package: str) -> None:
    files = list((CHECKOUT / package).rglob("*.py"))
    assert files
    named = ((f"{file.name}:{found.name}", found) for file in files for found in functions(file.read_text()))
    assert [name for name, found in named if lines_of(found) > MOST_LINES] == []


def test_no_kernel_takes_many_arguments() -> None:
    """Device functions and what makes them are held to it, too: a launch gives named tuples (``engine.cuda.args``)."""
    found = [(file.name, function) for file in KERNELS.glob("*.py") for function in functions(file.read_text())]
    assert "closed_loop" in {function.name for _, function in found}
    assert [(file, f.name) for file, f in found if parameters_of(f) > MOST_PARAMETERS] == []


def test_kernels_and_their_parameters_are_found_in_cuda_sources() -> None:
    first = 'extern "C" __global__ void __launch_bounds__(2 * N) f(int* a,  // of (b)\n  const S s) {\n}\n'
    assert list(kernels_in(first + "__global__ void g() {}")) == [("f", ("int* a", "const S s")), ("g", ())]


def test_no_kernel_in_cuda_sources_takes_many_arguments() -> None:
    """Those of the suites, too; a struct is one argument."""
    texts = [file.read_text() for package in PACKAGES for file in (CHECKOUT / package).rglob("*.cu")]
    found = [kernel for text in texts for kernel in kernels_in(text)]
    assert len(found) == sum(text.count("__global__") for text in texts) > 0
    assert {name: len(taken) for name, taken in found if len(taken) > MOST_PARAMETERS} == {}


def test_no_launch_of_a_cuda_source_gives_many_arguments() -> None:
    found = {title(entry): len(entry.declared) for entry in catalogued().values()}
    assert found
    assert {name: count for name, count in found.items() if count > MOST_PARAMETERS} == {}
