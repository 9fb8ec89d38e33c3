"""From parsed options to the effective configuration and the options of an engine."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from burstproof.config import Configuration, Value, load_configuration
from burstproof.engine.cores import usable_cores
from burstproof.engine.cpu.threads import check_threads
from burstproof.engine.options import CpuOptions, CudaOptions, EngineOptions, SynapseMemory
from burstproof.engine.precision import Precision
from burstproof.engine.profile import Profile
from burstproof.network.synthetic.kinds import DEFAULT_RATE, MICROCIRCUIT
from burstproof.network.synthetic.microcircuit import microcircuit_spec

_KEYS = {
    "backend": "compute.backend",
    "device": "cuda.device_id",
    "no_graphs": "cuda.enable_cuda_graphs",
    "multi_gpu": "cuda.multi_gpu.enabled",
    "num_gpus": "cuda.multi_gpu.num_gpus",
    "strategy": "cuda.multi_gpu.sharding_strategy",
}
"""Options of the command and the keys that they set."""


def configuration_of(options: argparse.Namespace) -> Configuration:
    """The configuration under command line, environment and file."""
    given: dict[str, tuple[str, Value]] = {}
    for name, key in _KEYS.items():
        value = getattr(options, name, None)
        if value is not None and value is not False:
            given[key] = f"--{name.replace('_', '-')}", name != "no_graphs" and value
    return load_configuration(options.config, environment=os.environ, options=given, folder=Path.cwd())


def engine_options(
    options: argparse.Namespace,
    config: Configuration,
    profile: Profile,
    *,
    emulate_batch_path: bool = False,
    stimulus_bounds: tuple[float, bool] | None = None,
    precision: Precision = Precision.FP32,
    autotune: bool = False,
) -> EngineOptions:
    """Options of the engine; ``stimulus_bounds`` are ``max_stimulus`` and ``fractional_stimulus``."""
    check_threads(options.threads, usable_cores())
    default = EngineOptions()
    largest, fractional = stimulus_bounds or (default.max_stimulus, default.fractional_stimulus)
    return EngineOptions(
        profile=profile,
        emulate_batch_path=emulate_batch_path,
        max_stimulus=largest,
        fractional_stimulus=fractional,
        precision=precision,
        cpu=CpuOptions(threads=options.threads),
        cuda=CudaOptions(
            device_id=config.cuda.device_id,
            graphs=config.cuda.enable_cuda_graphs,
            stream_count=config.cuda.stream_count,
            synapse_memory=SynapseMemory.HOST if config.cuda.use_unified_memory else SynapseMemory.AUTO,
            autotune=autotune,
            firing_rate=expected_rate(options) or 0.0,
        ),
    )


def expected_rate(options: argparse.Namespace) -> float | None:
    """The firing rate that was asked for, else that with which a synthetic network is made, if there is one."""
    asked: float | None = getattr(options, "firing_rate", None)
    made: float | None = getattr(options, "rate", None)
    if getattr(options, "synthetic", None) is not None and made is None:
        made = microcircuit_spec().initial_firing if options.kind == MICROCIRCUIT else DEFAULT_RATE
    return made if asked is None else asked
