"""The configuration: defaults, ``feagi_configuration.toml``, environment and command line, in rising order.

An environment variable is named ``BURSTPROOF_`` and the key with its table, in capitals, with underscores for
dots: ``cuda.multi_gpu.num_gpus`` is ``BURSTPROOF_CUDA_MULTI_GPU_NUM_GPUS``. Truth values are written
``true``, ``false``, ``1`` or ``0`` there.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from burstproof.engine.registry import AUTO, backend_names
from burstproof.engine.sharded.partition import STRATEGIES
from burstproof.errors import ConfigError
from burstproof.regular_file import check_regular

CONFIG_FILE = "feagi_configuration.toml"
"""Name of the file that is read from the working folder when no other is named."""

ENVIRONMENT_PREFIX = "BURSTPROOF_"

THRESHOLDS = ("compute.auto_selection.gpu_min_neurons", "compute.auto_selection.gpu_min_firing_rate")
"""Keys that decide about every GPU together once one of them is set; until then they decide about WGPU alone."""

Value = bool | int | float | str


def _between(default: Any, least: float, most: float = math.inf) -> Any:
    """A numeric key with its bounds, both included."""
    return field(default=default, metadata={"least": least, "most": most})


def _one_of(default: str, choices: Callable[[], tuple[str, ...]]) -> Any:
    """A text key with what gives its choices."""
    return field(default=default, metadata={"choices": choices})


@dataclass(frozen=True)
class AutoSelection:
    """Table ``[compute.auto_selection]``: from where on ``auto`` takes a GPU."""

    gpu_min_neurons: int = _between(50_000, 0, 10**12)
    gpu_min_firing_rate: float = _between(0.15, 0.0, 1.0)
    prefer_cuda_over_wgpu: bool = True


@dataclass(frozen=True)
class Compute:
    """Table ``[compute]``: the backend."""

    backend: str = _one_of(AUTO, backend_names)
    auto_selection: AutoSelection = field(default_factory=AutoSelection)


@dataclass(frozen=True)
class MultiGpu:
    """Table ``[cuda.multi_gpu]``: one network on several GPUs."""

    enabled: bool = False
    num_gpus: int = _between(8, 1, 1024)
    sharding_strategy: str = _one_of("round_robin", lambda: STRATEGIES)
    enable_p2p: bool = True
    use_nccl: bool = True


@dataclass(frozen=True)
class Cuda:
    """Table ``[cuda]``: the device and how it is driven."""

    device_id: int = _between(0, 0, 1023)
    enable_cuda_graphs: bool = True
    use_unified_memory: bool = False
    stream_count: int = _between(4, 1, 128)
    multi_gpu: MultiGpu = field(default_factory=MultiGpu)


@dataclass(frozen=True)
class Setting:
    """One effective value: its key with table (``cuda.device_id``) and where it came from, in words."""

    key: str
    value: Value
    origin: str


@dataclass(frozen=True)
class Configuration:
    """All effective values; ``origins`` says where each value came from, ``file`` which file was read."""

    compute: Compute = field(default_factory=Compute)
    cuda: Cuda = field(default_factory=Cuda)
    file: Path | None = None
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_thresholds(self) -> bool:
        """Whether ``THRESHOLDS`` are in force: one of them is set."""
        return any(key in self.origins for key in THRESHOLDS)

    def settings(self) -> tuple[Setting, ...]:
        """Every key with value and origin, in the order of the tables."""
        return tuple(Setting(key, self._value(key), self.origins.get(key, "default")) for key, _ in _walk_keys())

    def named(self, key: str) -> str:
        """``key`` as errors name it: the option that set it, or the key and where its value came from."""
        origin = self.origins.get(key, "default")
        option = origin.removeprefix("command line ")
        return option if option != origin else f"{key} ({origin})"

    def _value(self, key: str) -> Value:
        value: Any = self
        for name in key.split("."):
            value = getattr(value, name)
        checked: Value = value
        return checked


@dataclass(frozen=True)
class _Key:
    """Type and limits of one key."""

    kind: type
    metadata: Mapping[str, Any]

    @property
    def allowed(self) -> str:
        """What the key takes, in words."""
        if self.kind is str:
            return ", ".join(self.metadata["choices"]())
        if self.kind is bool:
            return "true, false"
        word = {int: "a whole number", float: "a number"}[self.kind]
        least, most = self.metadata["least"], self.metadata["most"]
        return f"{word} from {least:g} up" if most == math.inf else f"{word} from {least:g} to {most:g}"

    def objection(self, value: Any) -> str:
        """What is wrong with ``value``: its type, or that it lies outside the limits; empty if it is admitted."""
        kinds = (int, float) if self.kind is float else self.kind
        if not isinstance(value, kinds) or (isinstance(value, bool) and self.kind is not bool):
            return "ill-typed value"
        if self.kind is str:
            return "" if value in self.metadata["choices"]() else "unknown choice"
        if self.kind is bool or self.metadata["least"] <= value <= self.metadata["most"]:
            return ""
        return "value out of range"

    def parse(self, text: str) -> Any:
        """The value that ``text`` of an environment variable stands for; the text itself if it is none."""
        text = text.strip()
        if self.kind is bool:
            return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
        if self.kind is str:
            return text
        try:
            return self.kind(text)
        except ValueError:
            return text


_TABLES: Mapping[str, type] = {
    "compute": Compute,
    "compute.auto_selection": AutoSelection,
    "cuda": Cuda,
    "cuda.multi_gpu": MultiGpu,
}


def _walk_keys() -> Iterator[tuple[str, _Key]]:
    """Every key with its table, and its description."""
    for table, kind in _TABLES.items():
        hints = get_type_hints(kind)
        for item in dataclasses.fields(kind):
            name = f"{table}.{item.name}"
            if name not in _TABLES:
                yield name, _Key(hints[item.name], item.metadata)


def _table_of(key: str) -> str:
    """Table that a key, or a table inside another, stands in; empty for an outermost table."""
    return key.rpartition(".")[0]


def environment_name(key: str) -> str:
    """Environment variable of a key: ``cuda.device_id`` is ``BURSTPROOF_CUDA_DEVICE_ID``."""
    return ENVIRONMENT_PREFIX + key.upper().replace(".", "_")


def _closest(name: str, known: Iterable[str]) -> str | None:
    """The cure for an unknown name: the closest known one, if any is close."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"Did you mean {found[0]}?" if found else None


def _checked(key: str, value: Any, where: str) -> Value:
    """``value`` if ``key`` admits it, as the key's own type."""
    description = dict(_walk_keys())[key]
    if objection := description.objection(value):
        raise ConfigError(objection, where=where, got=value, allowed=description.allowed)
    return float(value) if description.kind is float else value


def _from_table(path: Path, table: str, content: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    """Keys and values of one table of the file and of the tables inside it."""
    prefix = f"{table}." if table else ""
    known = [name for name in (*_TABLES, *dict(_walk_keys())) if _table_of(name) == table]
    for name, value in content.items():
        key = prefix + name
        where = f"{path}: {key}"
        if key not in known:
            allowed = ", ".join(k[len(prefix) :] for k in known)
            cure = _closest(name, [k[len(prefix) :] for k in known]) or "Remove it or correct its name."
            what = "unknown table" if isinstance(value, dict) else "unknown key"
            raise ConfigError(what, where=where, got=value, allowed=allowed, cure=cure)
        if key not in _TABLES:
            yield key, _checked(key, value, where)
        elif isinstance(value, dict):
            yield from _from_table(path, key, value)
        else:
            raise ConfigError("this is a table, not a key", where=where, got=value, cure=f"Write [{key}]")


def _read_toml(path: Path) -> Mapping[str, Any]:
    """The file's content.

    Raises
    ------
    ConfigError
        The file cannot be opened or is not TOML.
    """
    try:
        check_regular(path)
        with path.open("rb") as stream:
            return tomllib.load(stream)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not a TOML file: {error}", where=str(path), cure="Correct that line") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"byte {error.start} is not UTF-8", where=str(path), cure="Save the file as UTF-8") from None
    except ValueError:  # a number of more digits than Python converts
        raise ConfigError("a number of too many digits", where=str(path), cure="Write fewer digits") from None
    except RecursionError:
        raise ConfigError("nested too deeply", where=str(path), cure="Keep to the four tables") from None
    except OSError as error:
        raise ConfigError(
            f"cannot be read: {error.strerror}", where=str(path), cure="Name a readable file with --config"
        ) from None


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, Value, str]]:
    """Key, value and variable for each variable set; one that looks like a key but is none is refused."""
    keys = {environment_name(key): (key, description) for key, description in _walk_keys()}
    families = tuple(ENVIRONMENT_PREFIX + table.upper() + "_" for table in _TABLES if "." not in table)
    for variable in sorted(environment):
        if variable in keys:
            key, description = keys[variable]
            where = f"environment variable {variable}"
            yield key, _checked(key, description.parse(environment[variable]), where), variable
        elif variable.startswith(families):
            raise ConfigError(
                "unknown key",
                where=f"environment variable {variable}",
                got=environment[variable],
                cure=_closest(variable, keys) or "Unset it; `burstproof info` lists the keys",
            )


def _assemble(values: Mapping[str, Value], file: Path | None, origins: Mapping[str, str]) -> Configuration:
    """The frozen configuration of the given values; keys not given keep their defaults."""

    def part(table: str) -> dict[str, Any]:
        return {key.rpartition(".")[2]: value for key, value in values.items() if _table_of(key) == table}

    return Configuration(
        Compute(**part("compute"), auto_selection=AutoSelection(**part("compute.auto_selection"))),
        Cuda(**part("cuda"), multi_gpu=MultiGpu(**part("cuda.multi_gpu"))),
        file,
        dict(origins),
    )


def load_configuration(
    file: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, tuple[str, Value]] | None = None,
    folder: Path | None = None,
) -> Configuration:
    """The effective configuration (requirement BE-14).

    Parameters
    ----------
    file : Path, optional
        File to read; without it ``feagi_configuration.toml`` in ``folder`` is read if there is one.
    environment : mapping, optional
        Environment variables; none by default.
    options : mapping, optional
        What the command line set: key with table (``compute.backend``) to (option, value).
    folder : Path, optional
        Working folder; without it only ``file`` is read.

    Raises
    ------
    ConfigError
        An unknown or ill-typed key, a value out of range, a file that cannot be read.
    """
    values: dict[str, Value] = {}
    origins: dict[str, str] = {}
    if file is None and folder is not None and (folder / CONFIG_FILE).exists():
        file = folder / CONFIG_FILE
    if file is not None:
        for key, value in _from_table(file, "", _read_toml(file)):
            values[key], origins[key] = value, f"file {file}"
    for key, value, variable in _from_environment(environment or {}):
        values[key], origins[key] = value, f"environment variable {variable}"
    for key, (option, value) in (options or {}).items():
        values[key], origins[key] = _checked(key, value, option), f"command line {option}"
    return _assemble(values, file, origins)
