"""The requirements, with permanent ids, read from ``requirements.toml`` and checked."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from burstproof.errors import ConfigError
from reports.values.serialise import decode

_FILE = Path(__file__).parents[1] / "requirements.toml"


@dataclass(frozen=True)
class Requirement:
    """One requirement: permanent id, one line of text, and the stages that have to prove it.

    ``gap`` says what the suites lack to prove it; empty if they lack nothing.
    """

    id: str
    text: str
    stages: tuple[str, ...]
    gap: str = ""


@dataclass(frozen=True)
class _Contract:
    requirement: tuple[Requirement, ...]


@cache
def load_requirements(path: Path = _FILE) -> tuple[Requirement, ...]:
    """Read and check the list of requirements.

    Raises
    ------
    InputError
        A key is unknown or missing, a value is empty or of the wrong type, or an id occurs twice.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not valid TOML: {error}", where=path.name) from error
    requirements = decode(_Contract, document, path.name).requirement
    for requirement in requirements:
        if not (requirement.id and requirement.text and requirement.stages):
            raise ConfigError("a requirement has an id, a text and stages", where=path.name, got=requirement)
    ids = [requirement.id for requirement in requirements]
    if len(set(ids)) < len(ids):
        twice = sorted({name for name in ids if ids.count(name) > 1})
        raise ConfigError("requirements carry the same id", where=path.name, got=twice)
    return requirements
