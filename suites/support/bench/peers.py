"""Other programs on the same networks: they deliver the contributions of recorded fired lists, checked, then timed.

Each does the delivery of a burst and nothing else: no dynamics, no fired list. Sums are integers below 2^24, which
float32 adds exactly in any order. ``pip install '.[peers]'`` has brainevent and JAX; CuPy is in the CUDA extras,
PyTorch is taken where it is installed.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.network.synthetic.spec import SyntheticSpec
from suites.support.bench.drawn_reference import draw_rows
from suites.support.bench.timers import device_ms, host_ms

LARGEST_EXACT = 1 << 24
TURNS = 20
"""Bursts of a timed call."""


@dataclass(frozen=True, eq=False)
class Delivery:
    """What is to be delivered.

    Attributes
    ----------
    targets : uint32 (N, K)
    weights : float32 (N, K)
        Negative for inhibitory sources.
    fired : tuple of uint32 (F,)
        Fired lists of some bursts.
    """

    targets: npt.NDArray[np.uint32]
    weights: npt.NDArray[np.float32]
    fired: tuple[npt.NDArray[np.uint32], ...]

    @property
    def neurons(self) -> int:
        """Number of neurons N."""
        return len(self.targets)

    def sums(self, burst: int) -> npt.NDArray[np.float32]:
        """What the fired list ``burst`` adds up to, (N,), exact."""
        ids = self.fired[burst]
        found = np.bincount(self.targets[ids].ravel(), self.weights[ids].ravel(), self.neurons)
        assert np.abs(found).max() < LARGEST_EXACT, "float32 would round these sums"
        return found.astype(np.float32)

    def padded(self) -> npt.NDArray[np.int32]:
        """The fired lists as rows of one length, filled up with N."""
        longest = max(len(ids) for ids in self.fired)
        rows = np.full((len(self.fired), longest), self.neurons, np.int32)
        for row, ids in zip(rows, self.fired, strict=True):
            row[: len(ids)] = ids
        return rows

    def spikes(self) -> npt.NDArray[np.bool_]:
        """The fired lists as rows of a bool for each neuron."""
        rows = np.zeros((len(self.fired), self.neurons), np.bool_)
        for row, ids in zip(rows, self.fired, strict=True):
            row[ids] = True
        return rows


def delivery_of(spec: SyntheticSpec, fired: tuple[npt.NDArray[np.uint32], ...]) -> Delivery:
    """The rows of ``spec``, of one delay, with these fired lists."""
    targets, weights = draw_rows(spec)
    return Delivery(targets, weights, fired)


@dataclass(frozen=True, eq=False)
class Ready:
    """A program with the network on the card.

    ``deliver(burst)`` returns the sums of a fired list as a NumPy array (N,); ``sample`` times ``TURNS`` bursts on the
    card and returns ms per burst.
    """

    deliver: Callable[[int], npt.NDArray[np.float32]]
    sample: Callable[[], float]


@dataclass(frozen=True)
class Peer:
    """A program: its name, the packages that it needs, how it is used, and what readies it."""

    name: str
    packages: tuple[str, ...]
    how: str
    ready: Callable[[Delivery], Ready]

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that are not installed."""
        return tuple(name for name in self.packages if importlib.util.find_spec(name) is None)

    @property
    def version(self) -> str:
        """Version of the first package."""
        names = {"cupy": ("cupy-cuda12x", "cupy-cuda13x")}.get(self.packages[0], self.packages[:1])
        for name in names:
            try:
                return metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        return "unknown"


def disagreement(delivery: Delivery, ready: Ready) -> str:
    """Where the sums of the first and the last fired list are not exact; empty if nowhere."""
    for burst in (0, len(delivery.fired) - 1):
        want, got = delivery.sums(burst), np.asarray(ready.deliver(burst))[: delivery.neurons]
        if not np.array_equal(want, got):
            return f"burst {burst}: {np.count_nonzero(want != got)} of {delivery.neurons} sums differ"
    return ""


def _jax() -> Any:
    """JAX, told not to take three quarters of the card's memory."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    return jax


def _looped(step: Callable[[Any, Any], Any], network: Any, bursts: Any, neurons: int) -> Ready:
    """``step(network, burst)`` on one row of ``bursts`` after the other inside a compiled loop.

    The arrays are arguments: those that a function closes over would be compiled into it.
    """
    jax = _jax()
    from jax import numpy as jnp

    count = bursts.shape[0]
    start = jnp.zeros(neurons, jnp.float32)
    one = jax.jit(step)

    def turns(network: Any, bursts: Any, sums: Any) -> Any:
        return jax.lax.fori_loop(0, TURNS, lambda turn, _: step(network, bursts[turn % count]), sums)

    loop = jax.jit(turns)
    loop(network, bursts, start).block_until_ready()
    timer = host_ms(lambda: loop(network, bursts, start).block_until_ready())
    return Ready(lambda burst: np.asarray(one(network, bursts[burst])), lambda: timer() / TURNS)


def _brainevent(delivery: Delivery) -> Ready:
    """Call what ``BinaryArray @ FixedNumPerPre`` calls; of the matrix itself, JAX would make the targets constants."""
    _jax()
    import brainevent
    from jax import numpy as jnp

    shape = (delivery.neurons, delivery.neurons)
    network = jnp.asarray(delivery.weights), jnp.asarray(delivery.targets.view(np.int32))

    def step(network: Any, spikes: Any) -> Any:
        return brainevent.binary_fcnmv(*network, spikes, shape=shape, transpose=True)

    return _looped(step, network, jnp.asarray(delivery.spikes()), shape[0])


def _jax_scatter(delivery: Delivery) -> Ready:
    _jax()
    from jax import numpy as jnp

    neurons = delivery.neurons
    network = jnp.asarray(delivery.targets.view(np.int32)), jnp.asarray(delivery.weights)

    def step(network: Any, ids: Any) -> Any:
        targets, weights = network
        rows = targets.at[ids].get(mode="fill", fill_value=neurons)
        values = weights.at[ids].get(mode="fill", fill_value=0.0)
        return jnp.zeros(neurons, jnp.float32).at[rows].add(values, mode="drop")

    return _looped(step, network, jnp.asarray(delivery.padded()), neurons)


def _cupy_scatter(delivery: Delivery) -> Ready:
    import cupy
    import cupyx

    targets, weights = cupy.asarray(delivery.targets.view(np.int32)), cupy.asarray(delivery.weights)
    fired = [cupy.asarray(ids.astype(np.int64)) for ids in delivery.fired]

    def deliver(burst: int) -> Any:
        sums, ids = cupy.zeros(delivery.neurons, cupy.float32), fired[burst]
        cupyx.scatter_add(sums, targets[ids].ravel(), weights[ids].ravel())
        return sums

    return _eager(deliver, len(fired))


def _cupy_sparse(delivery: Delivery) -> Ready:
    import cupy
    from cupyx.scipy import sparse

    neurons, fan = delivery.targets.shape
    by_source = sparse.csr_matrix(
        (
            cupy.asarray(delivery.weights.ravel()),
            cupy.asarray(delivery.targets.ravel().view(np.int32)),
            cupy.arange(0, neurons * fan + 1, fan, dtype=np.int32),
        ),
        shape=(neurons, neurons),
    )
    by_target = by_source.T.tocsr()
    del by_source
    spikes = cupy.asarray(delivery.spikes()).astype(cupy.float32)
    return _eager(lambda burst: by_target @ spikes[burst], len(spikes))


def _eager(deliver: Callable[[int], Any], bursts: int) -> Ready:
    """Calls of CuPy one after the other."""

    def turns() -> None:
        for turn in range(TURNS):
            deliver(turn % bursts)

    timer = device_ms(turns)
    return Ready(lambda burst: deliver(burst).get(), lambda: timer() / TURNS)


def _torch(delivery: Delivery) -> Ready:
    import torch

    targets = torch.from_numpy(delivery.targets.view(np.int32)).cuda()
    weights = torch.from_numpy(delivery.weights).cuda()
    fired = [torch.from_numpy(ids.astype(np.int64)).cuda() for ids in delivery.fired]
    sums = torch.zeros(delivery.neurons, device="cuda")

    def deliver(ids: Any) -> None:
        sums.zero_()
        sums.index_add_(0, targets[ids].ravel(), weights[ids].ravel())

    def shown(burst: int) -> npt.NDArray[np.float32]:
        deliver(fired[burst])
        found: npt.NDArray[np.float32] = sums.cpu().numpy()
        return found

    shown(0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for turn in range(TURNS):
            deliver(fired[turn % len(fired)])

    def sample() -> float:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / TURNS

    return Ready(shown, sample)


PEERS: Mapping[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("brainevent", ("brainevent", "jax"), "binary_fcnmv on rows of one length, compiled loop", _brainevent),
        Peer("JAX scatter", ("jax",), "rows of what fired, .at[].add, in a compiled loop", _jax_scatter),
        Peer("CuPy scatter", ("cupy",), "rows of what fired, cupyx.scatter_add, call by call", _cupy_scatter),
        Peer("CuPy sparse", ("cupy",), "CSR by target times the vector of spikes (cuSPARSE)", _cupy_sparse),
        Peer("PyTorch", ("torch",), "rows of what fired, index_add_, in a CUDA graph", _torch),
    )
}
