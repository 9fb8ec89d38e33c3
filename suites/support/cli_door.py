"""The command called in this process, with what it printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from burstproof.cli.main import main

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
GENOMES = GOLDEN / "genomes"
TRACES = GOLDEN / "traces"
SMALL = GENOMES / "barebones_genome.json"
BUSY = TRACES / "lif_mix.connectome"


@dataclass(frozen=True)
class Answer:
    """Exit code and output of one call."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


Door = Callable[..., Answer]


@pytest.fixture
def door(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Door:
    """Call the command with the given arguments, in an empty folder and without its environment variables."""
    for name in ("BURSTPROOF_COMPUTE_BACKEND", "BURSTPROOF_CUDA_DEVICE_ID"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "working_folder"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def call(*arguments: object) -> Answer:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Answer(code, printed.out, printed.err)

    return call


@dataclass(frozen=True, eq=False)
class Recorded:
    """A run that was recorded: the path of its record without extension, its document, and the record's arrays."""

    path: Path
    document: Any
    arrays: Mapping[str, npt.NDArray[Any]]

    def differs(self, other: Recorded) -> list[str]:
        """Names of the arrays in which the two records differ."""
        names = sorted({*self.arrays, *other.arrays})
        both = ((name, self.arrays.get(name), other.arrays.get(name)) for name in names)
        return [name for name, a, b in both if a is None or b is None or not np.array_equal(a, b)]


def recorded(door: Door, backend: str, *arguments: object, bursts: int = 40) -> Recorded:
    """``burstproof run`` on ``backend`` with a record in the working folder."""
    path = Path(f"record-{len(list(Path().glob('record-*.npz')))}").absolute()
    answer = door("run", *arguments, "--backend", backend, "--bursts", bursts, "--record", path, "--json")
    assert answer.code == 0, answer.err
    with np.load(path.with_suffix(".npz")) as arrays:
        return Recorded(path, answer.document, dict(arrays))


def assert_one_error(answer: Answer, code: int, *parts: str) -> None:
    """The call ended with ``code`` and exactly one message on standard error that contains ``parts``."""
    assert answer.code == code, answer
    lines = answer.err.splitlines()
    assert len(lines) == 1, answer.err
    assert lines[0].startswith("burstproof: error: ")
    for part in parts:
        assert part in answer.err
    assert "Traceback" not in answer.err
