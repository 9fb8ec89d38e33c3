"""The autotuner's choices, kept between runs: one JSON file per device, driver, version and network shape."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.rules import features_of
from burstproof.network.files.atomic import atomic_write
from burstproof.network.model import Network
from burstproof.regular_file import read_regular
from burstproof.version import __version__

_PREFIX, _ENDING = "launch-", ".json"
_MOST_BYTES = 1 << 16
_UNUSABLE = (OSError, ValueError, KeyError, TypeError, RecursionError)
"""What reading a damaged file may raise."""


@dataclass(frozen=True)
class Launch:
    """What the autotuner chooses, as in ``CudaOptions``; 0 is the engine's own choice."""

    block_size: int
    batch_length: int
    stream_count: int

    @classmethod
    def of(cls, options: CudaOptions) -> Launch:
        """The launch configuration in ``options``."""
        return cls(options.block_size, options.batch_length, options.stream_count)

    def __str__(self) -> str:
        return f"block {self.block_size}, batch {self.batch_length}, streams {self.stream_count}"


@dataclass(frozen=True)
class Tuned:
    """A choice, with microseconds per burst of the default, of the design notes' launch, and of the chosen one.

    ``notes_us`` is ``None`` if the notes' launch did not fit into memory beside the default.
    """

    launch: Launch
    default_us: float
    notes_us: float | None
    tuned_us: float
    cached: bool = False


def tuning_key(network: Network, options: EngineOptions, device: str, driver: str) -> dict[str, Any]:
    """What a choice is valid for: device, driver, package, the network's shape, and the options of the measurement."""
    synapses = network.synapses
    return {
        "device": device,
        "driver": driver,
        "burstproof": __version__,
        "neurons": network.neuron_count,
        "synapses": network.synapse_count,
        "longest_delay": int(synapses.delay_bursts.max(initial=1, where=synapses.valid_mask)),
        "plastic": len(network.plastic_mappings) > 0,
        "mp_driven": network.flags_registered and bool(network.area_flag("mp_driven_psp").any()),
        "variant": repr((features_of(network, options), options.profile, options.emulate_batch_path)),
        "options": repr(replace(options.cuda, autotune=False, device_id=0)),
    }


def _path(folder: Path, key: Mapping[str, Any]) -> Path:
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    return folder / f"{_PREFIX}{digest[:32]}{_ENDING}"


def load(folder: Path | None, key: Mapping[str, Any]) -> Tuned | None:
    """The choice kept for ``key``, or ``None``; an unusable file is ignored with a warning."""
    if folder is None:
        return None
    path = _path(folder, key)
    try:
        return _parsed(_document(path), key)
    except FileNotFoundError:
        return None
    except _UNUSABLE as error:
        warnings.warn(f"{path.name} in {folder} is ignored and measured anew: {error!r}", stacklevel=2)
        return None


def _document(path: Path) -> Any:
    return json.loads(read_regular(path, _MOST_BYTES))


def _parsed(document: Any, key: Mapping[str, Any]) -> Tuned:
    if document["key"] != key:
        raise ValueError("it belongs to another network or device")
    launch = Launch(**document["launch"])
    times = document["default_us"], document["notes_us"], document["tuned_us"]
    if not all(type(value) is int and value >= 0 for value in asdict(launch).values()):
        raise ValueError(f"not a launch configuration: {launch}")
    if not all(isinstance(value, float) and 0 < value < math.inf for value in (times[0], times[1] or 1.0, times[2])):
        raise ValueError(f"not times in microseconds: {times}")
    return Tuned(launch, *times, cached=True)


def _as_kept(key: Mapping[str, Any], tuned: Tuned) -> dict[str, Any]:
    document = asdict(tuned)
    del document["cached"]
    return {"key": dict(key), **document}


def save(folder: Path | None, key: Mapping[str, Any], tuned: Tuned) -> None:
    """Keep ``tuned``; if the folder cannot be written, a warning says so and the next run measures again."""
    try:
        if folder is None:
            raise OSError("this user has no home folder. Set XDG_CACHE_HOME to a folder of your own")
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(_path(folder, key)) as file:
            file.write(json.dumps(_as_kept(key, tuned), indent=1).encode())
    except OSError as error:
        warnings.warn(f"the tuned launch configuration is not kept: {error}", stacklevel=2)


def kept(folder: Path | None) -> list[dict[str, Any]]:
    """Every readable choice in ``folder``, with its key, to be shown to the user."""
    found = []
    for path in [] if folder is None else sorted(folder.glob(f"{_PREFIX}*{_ENDING}")):
        with suppress(*_UNUSABLE):
            document = _document(path)
            key = _checked_key(document["key"])
            found.append(_as_kept(key, _parsed(document, key)))
    return found


def _checked_key(key: Any) -> dict[str, Any]:
    """``key``, checked to have plain values alone, among them those that the user is shown."""
    shown = type(key["device"]), type(key["neurons"]), type(key["synapses"])
    if shown != (str, int, int) or not all(isinstance(value, (str, int)) for value in key.values()):
        raise ValueError("not the key of a launch configuration")
    return dict(key)
