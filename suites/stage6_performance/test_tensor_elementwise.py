"""Element-wise operations at 64 M elements against copies, PyTorch and the CPU; checked first (TO-2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from burstproof.tensor.array.dtypes import COMPLEX128, FLOAT32, FLOAT64
from burstproof.tensor.ops.elementwise import evaluate
from burstproof.tensor.ops.expression import parse
from stages.measuring import Measure
from suites.support.accuracy import bound_of
from suites.support.bench.card_limits import Card
from suites.support.bench.steady import time_steadily
from suites.support.bench.tensor_bench import (
    CPU_RULE,
    alternate,
    as_torch,
    copy_rate,
    normal,
    put_contest,
    put_rate,
    relative_error,
    timed_on,
    torch_is_here,
)
from suites.support.bench.timers import host_ms

pytestmark = [pytest.mark.requirement("TO-2", "TO-11", "ST-6"), pytest.mark.gate("gpu")]

ELEMENTS = 1 << 26
CPU_ELEMENTS = 1 << 23


@dataclass(frozen=True)
class Case:
    """An expression, its name in the table of accuracies, and the same of wider arrays."""

    name: str
    text: str
    exact: Callable[..., Any]

    @property
    def names(self) -> tuple[str, ...]:
        """Its operands."""
        return parse(self.text).names


ADD = Case("add", "a + b", np.add)
MULTIPLY = Case("multiply", "a * b", np.multiply)
DIVIDE = Case("divide", "a / b", np.divide)
CHAIN = Case("chain", "relu(a * b + c) * 2", lambda a, b, c: np.maximum(a * b + c, 0) * 2)
COMPLEX_CHAIN = Case("chain", "(a * b + c) * 2 - a", lambda a, b, c: (a * b + c) * 2 - a)
SIGMOID = Case("sigmoid", "sigmoid(a)", lambda a: 1 / (1 + np.exp(-a)))
BESIDE_PYTORCH = pytest.mark.measures(
    "elementwise.against_pytorch", only_if="PyTorch is installed", backend="cuda", against="pytorch", device=...
)
ROWS = [
    pytest.param(ADD, FLOAT32, marks=BESIDE_PYTORCH),
    (CHAIN, FLOAT32),
    (SIGMOID, FLOAT32),
    pytest.param(ADD, FLOAT64, marks=BESIDE_PYTORCH),
    (CHAIN, FLOAT64),
    pytest.param(ADD, COMPLEX128, marks=BESIDE_PYTORCH),
    (MULTIPLY, COMPLEX128),
    (DIVIDE, COMPLEX128),
    (COMPLEX_CHAIN, COMPLEX128),
]


@pytest.fixture(scope="module")
def copied(card: Card) -> float:
    """GB/s of a copy of 512 MiB."""
    return copy_rate(card, 8 * ELEMENTS)


@pytest.mark.measures("elementwise.rate", "elementwise.copy_fraction", backend="cuda", elements=ELEMENTS, device=...)
@pytest.mark.parametrize(("case", "dtype"), ROWS, ids=lambda value: getattr(value, "text", None) or str(value))
def test_rate(card: Card, copied: float, case: Case, dtype: np.dtype, measure: Measure) -> None:
    """One pass over memory, whatever the expression: operands read once, the result written once."""
    operands = {name: normal(ELEMENTS, dtype, seed) for seed, name in enumerate(case.names)}
    result = evaluate(case.text, operands)
    part = {name: array[: 1 << 20].astype(np.result_type(dtype, np.float64)) for name, array in operands.items()}
    error = relative_error(result[: 1 << 20], case.exact(*part.values()))
    assert error <= 2 * bound_of(case.name, str(dtype)), error
    assert bool((result == evaluate(case.text, operands)).all()), "two runs differ"

    # Double-precision arithmetic beside all the memory traffic that there is can take the card to its power limit.
    timed = timed_on(card, lambda: evaluate(case.text, operands, result), full_power=dtype != FLOAT32)
    where: dict[str, object] = {
        "backend": "cuda",
        "operation": case.text,
        "dtype": str(dtype),
        "elements": ELEMENTS,
        "device": card.runtime.name,
    }
    moved = (len(operands) + 1) * result.nbytes
    put_rate(measure, "elementwise", moved, timed, copied, where)
    if case is ADD and torch_is_here():
        import torch

        a, b, out = (as_torch(array) for array in (*operands.values(), result))
        contest = alternate(lambda: evaluate(case.text, operands, result), lambda: torch.add(a, b, out=out))
        put_contest(measure, "elementwise.against_pytorch", contest, where)


@pytest.mark.measures("elementwise.speedup", backend="cuda", against="cpu", elements=CPU_ELEMENTS, device=...)
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64, COMPLEX128], ids=str)
def test_speedup_over_the_cpu(card: Card, dtype: np.dtype, measure: Measure) -> None:
    """The same expression on 8 M elements: device time against the NumPy backend's wall time."""
    case = COMPLEX_CHAIN if dtype == COMPLEX128 else CHAIN
    operands = {name: normal(CPU_ELEMENTS, dtype, seed) for seed, name in enumerate(case.names)}
    hosts = {name: array.get() for name, array in operands.items()}
    result, host = evaluate(case.text, operands), evaluate(case.text, hosts)
    assert np.linalg.norm(result.get() - host) <= 4 * bound_of("chain", str(dtype)) * np.linalg.norm(host)
    on_device = timed_on(card, lambda: evaluate(case.text, operands, result))
    on_cpu = time_steadily(host_ms(lambda: evaluate(case.text, hosts, host)), CPU_RULE)
    measure(
        "elementwise.speedup",
        on_cpu.samples.estimate / on_device.samples.estimate,
        "x",
        conditions={
            "backend": "cuda",
            "against": "cpu",
            "operation": case.text,
            "dtype": str(dtype),
            "elements": CPU_ELEMENTS,
            "device": card.runtime.name,
        },
        telemetry=on_device.telemetry,
        note=f"CPU, one thread of NumPy in pieces: {on_cpu.samples.estimate:.2f} ms; {on_cpu.how}",
    )
