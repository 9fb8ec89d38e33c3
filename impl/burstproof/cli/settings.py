"""From parsed options to the effective configuration and the options of an engine."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from burstproof.config import Configuration, Value, load_configuration
from burstproof.engine.options import CpuOptions, CudaOptions, EngineOptions, SynapseMemory
from burstproof.engine.precision import Precision
from burstproof.engine.profile import Profile


def configuration_of(options: argparse.Namespace) -> Configuration:
    """The configuration under command line, environment and file."""
    given: dict[str, tuple[str, Value]] = {}
    if options.backend is not None:
        given["compute.backend"] = ("--backend", options.backend)
    if options.device is not None:
        given["cuda.device_id"] = ("--device", options.device)
    if options.no_graphs:
        given["cuda.enable_cuda_graphs"] = ("--no-graphs", False)
    if getattr(options, "multi_gpu", False):
        given["cuda.multi_gpu.enabled"] = ("--multi-gpu", True)
    if getattr(options, "num_gpus", None) is not None:
        given["cuda.multi_gpu.num_gpus"] = ("--num-gpus", options.num_gpus)
    if getattr(options, "strategy", None) is not None:
        given["cuda.multi_gpu.sharding_strategy"] = ("--strategy", options.strategy)
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
        ),
    )
