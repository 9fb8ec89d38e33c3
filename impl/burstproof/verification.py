"""Replay of a trace on a backend, in one call."""

from __future__ import annotations

import os

from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import profile_named
from burstproof.engine.registry import engine_factory
from burstproof.engine.replay import Replay, replay
from burstproof.engine.trace import read_trace
from burstproof.session import resolved


def verify(
    path: str | os.PathLike[str], backend: str = "cpu", *, profile: str = "feagi-2.6", emulate: bool = True
) -> Replay:
    """Replay a recording of the real engine, or a record of ``burstproof run``, and compare every burst.

    Parameters
    ----------
    path : path
        NAME of NAME.npz and NAME.json, with or without an ending.
    backend : str
        ``auto``, ``cpu``, ``cuda``, ``wgpu`` or ``reference``.
    profile : str
        Rules for a recording of the real engine; a record says itself how it was made.
    emulate : bool
        Reproduce the defect of the real engine that its recordings contain.

    Returns
    -------
    Replay
        ``agrees``, ``bursts``, ``fired_agree``, ``state_agree``, ``first`` (a ``Disagreement`` or ``None``).

    Raises
    ------
    TraceError
        A trace that is missing, damaged, without a burst or contradicts itself.
    EnvironmentInvalidError
        The backend cannot start here.
    """
    trace = read_trace(path)
    chosen = resolved(backend, trace.network.neuron_count).backend
    return replay(trace, engine_factory(chosen), EngineOptions(profile=profile_named(profile)), emulate=emulate)
