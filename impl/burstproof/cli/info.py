"""``burstproof info``: what this machine can run and why not more, and the effective configuration."""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
from importlib import metadata
from typing import Any

from burstproof.analysis.text import gibibytes, printable, table
from burstproof.cli.idle import refuse_idle
from burstproof.cli.plan import plan
from burstproof.cli.settings import configuration_of
from burstproof.config import CONFIG_FILE, THRESHOLDS, Configuration, Setting, environment_name
from burstproof.engine.ask_machine import this_machine
from burstproof.engine.cuda.tuning.cache import Launch, kept
from burstproof.engine.features.support import MODELLED, NOTHING, Section
from burstproof.engine.machine import Machine
from burstproof.engine.registry import BACKENDS
from burstproof.engine.select import consider
from burstproof.errors import ExitCode, InputError
from burstproof.user_cache import cache_folder
from burstproof.version import __version__

_CUDA_PACKAGES = ("numba-cuda", "cuda-core", "cuda-bindings", "cupy-cuda12x", "cupy-cuda13x")
_PACKAGES = ("numpy", "numba", *_CUDA_PACKAGES, "wgpu", "mpi4py", "pymetis")


def info(options: argparse.Namespace) -> ExitCode:
    """Print what was found; a missing GPU is a finding, not an error."""
    if options.plan is not None or options.synthetic is not None:
        return plan(options)
    refuse_idle(options, source=None)
    _refuse_unplanned(options)
    config = configuration_of(options)
    document = describe(config, this_machine())
    print(json.dumps(document, indent=1) if options.json else _as_text(document))
    return ExitCode.PASS


def _refuse_unplanned(options: argparse.Namespace) -> None:
    """Refuse what only the plan of a network takes into account."""
    for option, given, default in (("--threads", options.threads, 0), ("--firing-rate", options.firing_rate, None)):
        if given != default:
            cure = "Add --plan FILE or --synthetic N"
            raise InputError("no plan was asked for, so it does nothing here", where=option, got=given, cure=cure)


def describe(config: Configuration, machine: Machine) -> dict[str, Any]:
    """Everything that ``info`` knows, as plain values."""
    backends = [
        {**dataclasses.asdict(item), "summary": BACKENDS[item.backend].summary}
        for item in consider(machine, config.cuda.device_id)
    ]
    return {
        "burstproof": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu_cores": machine.cpu_cores,
        "packages": {name: _version(name) for name in _PACKAGES},
        "cuda": {
            "driver": _dotted(machine.cuda.driver_version),
            "tools": _dotted(machine.cuda.tools_version),
            "devices": [dataclasses.asdict(device) for device in machine.cuda.devices],
        },
        "wgpu": [{**dataclasses.asdict(adapter), "software": adapter.software} for adapter in machine.wgpu.adapters],
        "backends": backends,
        "features": {
            section.value: [name for name in BACKENDS if section in MODELLED.get(name, NOTHING)] for section in Section
        },
        "tuned": kept(cache_folder()),
        "config_file": str(config.file) if config.file else None,
        "configuration": [_in_force(item, config) for item in config.settings()],
    }


def _in_force(item: Setting, config: Configuration) -> dict[str, Any]:
    """A value with its origin and its environment variable; ``None`` for thresholds of which none is set."""
    found = {**dataclasses.asdict(item), "environment": environment_name(item.key)}
    if item.key in THRESHOLDS and not config.has_thresholds:
        found |= {"value": None, "origin": f"measured costs decide; for WGPU {item.value}"}
    return found


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _dotted(version: tuple[int, int] | None) -> str | None:
    return f"{version[0]}.{version[1]}" if version else None


def _versions(driver: str | None, tools: str | None) -> str:
    takes = f"driver takes {driver}" if driver else "no answer from a driver"
    return f"{takes}, " + (f"installed tools are for {tools}" if tools else "no tools installed")


def _adapter_line(adapter: dict[str, Any]) -> str:
    whole, given = (adapter[key] // 2**20 for key in ("largest_buffer_bytes", "largest_binding_bytes"))
    buffers = f"buffers to {whole} MiB, {given} MiB of one given to a shader"
    name = f"{printable(adapter['name'], 100)}, {adapter['kind']} through {adapter['api']}"
    return f"WGPU adapter {adapter['number']}: {name}; {buffers}"


def _tuned_line(item: dict[str, Any]) -> str:
    key = item["key"]
    network = f"{key['neurons']} neurons, {key['synapses']} synapses"
    times = f"{item['tuned_us']:.2f} us per burst, default {item['default_us']:.2f}"
    return f"  tuned for {printable(key['device'])}, {network}: {Launch(**item['launch'])} ({times})"


def _as_text(document: dict[str, Any]) -> str:
    cuda = document["cuda"]
    packages = ", ".join(f"{name} {version}" for name, version in document["packages"].items() if version)
    lines = [
        f"burstproof {document['burstproof']}, Python {document['python']}, {document['system']}",
        f"{document['cpu_cores']} CPU cores; {packages}",
        f"CUDA: {_versions(cuda['driver'], cuda['tools'])}",
    ]
    for device in cuda["devices"]:
        major, minor = device["capability"]
        memory = f", {gibibytes(device['memory_bytes'])}" if device["memory_bytes"] else ""
        lines.append(f"  device {device['number']}: {device['name']}, compute capability {major}.{minor}{memory}")
    lines += [_adapter_line(adapter) for adapter in document["wgpu"]]
    rows = [(item["backend"], "yes" if item["available"] else "no", item["why"]) for item in document["backends"]]
    lines += ["", table(("backend", "runs here", "why"), rows, left=3)]
    lines += [f"  {item['backend']}: {item['cure']}" for item in document["backends"] if item["cure"]]
    names = [item["backend"] for item in document["backends"]]
    modelled = [
        (name, *("yes" if backend in having else "no" for backend in names))
        for name, having in document["features"].items()
    ]
    lines += ["", table(("feature of genomes (docs/features.md)", *names), modelled, left=1 + len(names))]
    lines += [_tuned_line(item) for item in document["tuned"]]
    lines += ["", f"configuration (file: {document['config_file'] or 'no ' + CONFIG_FILE + ' here'})"]
    settings = [
        (item["key"], printable(_toml(item["value"])), printable(item["origin"], 100))
        for item in document["configuration"]
    ]
    lines.append(table(("key", "value", "from"), settings, left=3))
    return "\n".join(lines)


def _toml(value: bool | int | float | str | None) -> str:
    """A value as the configuration file writes it; ``None`` is not set."""
    if value is None:
        return "not set"
    return json.dumps(value) if isinstance(value, (bool, str)) else str(value)
