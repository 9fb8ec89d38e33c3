"""What the cases of the tensor room share: timing on CuPy's stream, alternating with PyTorch, errors on the device."""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from burstproof.tensor.array.dtypes import BFLOAT16
from stages.measuring import Measure
from suites.support.bench.card_limits import Card
from suites.support.bench.ceilings import ceiling
from suites.support.bench.steady import Rule, Timed, time_steadily
from suites.support.bench.timers import device_ms

RULE = Rule(warmup=3, min_samples=15, max_samples=100, max_seconds=0.4, relative_noise=0.01)
CPU_RULE = Rule(warmup=1, min_samples=3, max_samples=15, max_seconds=0.6, relative_noise=0.02)
ROUNDS = 11
REPEATS = 20
"""Calls per sample: the device waits for the host before the first one only."""

Work = Callable[[], object]


def timed_on(card: Card, work: Work, repeats: int = REPEATS, *, full_power: bool = False) -> Timed:
    """Device time of one of ``repeats`` calls queued at once, in ms; a throttled card is an ERROR.

    ``full_power``: as for ``time_steadily``.
    """
    return time_steadily(device_ms(work, repeats), RULE, card.watch, full_power=full_power)


@cache
def torch_is_here() -> bool:
    """Whether PyTorch with CUDA is installed beside the package."""
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def as_torch(array: Any) -> Any:
    """The same memory as a PyTorch tensor; uint16 as bfloat16."""
    import torch

    tensor = torch.from_dlpack(array)
    return tensor.view(torch.bfloat16) if array.dtype == BFLOAT16 else tensor


@dataclass(frozen=True)
class Contest:
    """Times of two programs that took turns, in ms: ours and the other's, round by round."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def speedup(self) -> float:
        """The other's median time over ours."""
        return statistics.median(self.theirs) / statistics.median(self.ours)

    @property
    def speedups(self) -> list[float]:
        """Round by round."""
        return [other / own for own, other in zip(self.ours, self.theirs, strict=True)]


def alternate(ours: Work, theirs: Work, repeats: int = REPEATS) -> Contest:
    """Time two programs in turns, so that clock and temperature favour neither; both queue on the default stream."""
    samplers = device_ms(ours, repeats), device_ms(theirs, repeats)
    for sampler in samplers:
        sampler()
    rounds = [tuple(sampler() for sampler in samplers) for _ in range(ROUNDS)]
    return Contest(tuple(own for own, _ in rounds), tuple(other for _, other in rounds))


def put_contest(measure: Measure, name: str, contest: Contest, conditions: dict[str, object]) -> None:
    """Attach the speedup over PyTorch."""
    import torch

    note = f"PyTorch {torch.__version__}, {ROUNDS} turns; ours {statistics.median(contest.ours):.4f} ms"
    measure(
        name,
        contest.speedup,
        "x",
        samples=contest.speedups,
        conditions={**conditions, "against": "pytorch"},
        note=note,
    )


def put_rate(
    measure: Measure, name: str, moved: int, timed: Timed, copy_gb_per_s: float, where: dict[str, object]
) -> None:
    """Attach bytes that had to move over the time, and their share of what a copy reaches."""
    note = f"a copy as large reaches {copy_gb_per_s:.0f} GB/s in the same run"
    bounded = where | ceiling(str(where["device"]), "memory_bandwidth_gb_per_s")
    timed.put(measure, f"{name}.rate", "GB/s", bounded, convert=lambda ms: moved / ms / 1e6)
    timed.put(measure, f"{name}.copy_fraction", "1", where, note, lambda ms: moved / ms / 1e6 / copy_gb_per_s)


def copy_rate(card: Card, size: int) -> float:
    """GB/s, read and written, of the driver's copy of ``size`` bytes from device memory to device memory."""
    import cupy

    source = cupy.zeros(size, cupy.int8)
    target = cupy.ones(size, cupy.int8)
    pointers = target.data.ptr, source.data.ptr
    stream = cupy.cuda.get_current_stream()
    timed = timed_on(card, lambda: cupy.cuda.runtime.memcpyAsync(*pointers, size, 3, stream.ptr))
    assert not target.any()
    return 2 * size / timed.samples.estimate / 1e6


def relative_error(result: Any, exact: Any) -> float:
    """Relative 2-norm of the difference, on the device, in the type of ``exact``."""
    import cupy

    difference = (cupy.asarray(result).astype(exact.dtype) - exact).ravel()
    return float(cupy.linalg.norm(difference) / cupy.linalg.norm(exact.ravel()))


def normal(shape: int | Sequence[int], dtype: Any, seed: int) -> Any:
    """Normally distributed numbers on the device."""
    import cupy

    from burstproof.tensor.ops.nn_reference import narrowed

    generator = cupy.random.default_rng(seed)
    if dtype == cupy.complex128:
        return generator.standard_normal(shape) + 1j * generator.standard_normal(shape)
    wide = cupy.float64 if dtype == cupy.float64 else cupy.float32
    return narrowed(generator.standard_normal(shape, dtype=wide), dtype)
