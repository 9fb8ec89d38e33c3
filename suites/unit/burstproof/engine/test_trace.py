"""Traces on disk: no change of either file goes unnoticed, and two files of two runs are no trace."""

from __future__ import annotations

import dataclasses
import json
import struct
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.engine.trace import Trace, read_trace, trace_of_run, write_trace
from burstproof.errors import TraceError
from burstproof.sources import synthetic

pytestmark = pytest.mark.requirement("BE-18")


def record(folder: Path, name: str, seed: int = 0) -> tuple[Path, Path]:
    """Record two bursts of eight neurons."""
    network = synthetic(8, 2, seed, threshold=0.1)
    engine = ReferenceEngine.create(network, EngineOptions())
    plan = {network.burst_count + 1: Stimulus(forced=np.arange(3, dtype=np.uint32))}
    recording = engine.run(2, plan)
    return write_trace(folder / name, trace_of_run(network, engine.options, recording, plan, engine.state(), "run"))


def same(one: object, other: object) -> bool:
    """Whether two values are equal, arrays and those inside dataclasses and mappings included."""
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        names = (field.name for field in dataclasses.fields(one) if field.name != "name")
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(same, one, other))
    return one == other


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path, Trace]:
    npz, text = record(tmp_path, "run")
    return npz, text, read_trace(npz)


def flips(file: Path, step: int) -> Iterator[int]:
    """Flip one bit of ``file`` after the other, of every ``step``-th byte; yields where, and puts it right again."""
    whole = file.read_bytes()
    for at in range(0, len(whole), step):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        yield at
    file.write_bytes(whole)


def test_every_flipped_bit_of_the_text_is_noticed_or_changes_nothing(pair: tuple[Path, Path, Trace]) -> None:
    """A blank that becomes a tab or an end of line is the same JSON."""
    _, text, wanted = pair
    changed, harmless = [], 0
    for at in flips(text, 1):
        with suppress(TraceError):
            found = read_trace(text)
            harmless += 1
            if not same(wanted, found):
                changed.append(at)
    assert changed == []
    assert harmless < 10


def test_every_flipped_bit_of_the_arrays_is_noticed(pair: tuple[Path, Path, Trace]) -> None:
    npz, _, _ = pair
    accepted = []
    for at in flips(npz, 9):
        with suppress(TraceError):
            accepted.append((at, read_trace(npz)))
    assert accepted == []


def test_files_of_two_runs_are_no_trace(tmp_path: Path) -> None:
    record(tmp_path, "one")
    npz, _ = record(tmp_path, "other", seed=1)
    npz.replace(tmp_path / "one.npz")
    with pytest.raises(TraceError, match="belongs to another recording"):
        read_trace(tmp_path / "one")


def test_what_is_nested_too_deeply_is_refused(pair: tuple[Path, Path, Trace]) -> None:
    """A newer Python reads a thousand levels, and cannot write them again."""
    _, text, _ = pair
    without = undigested(text)

    def nested(levels: int) -> Path:
        text.write_text(json.dumps({**without, "note": json.loads("[" * levels + "]" * levels)}))
        return text

    assert same(read_trace(nested(63)), read_trace(nested(1)))
    for levels in (64, 600):
        with pytest.raises(TraceError, match="nested too deeply"):
            read_trace(nested(levels))


@pytest.mark.parametrize("header", ["{'descr': '<f4', (", "{'descr': (\n", "  {\n 1\n"])
def test_a_header_of_an_array_that_is_no_python_is_damage(pair: tuple[Path, Path, Trace], header: str) -> None:
    """NumPy reads headers with the tokenizer of Python, whose errors are its own."""
    npz, text, _ = pair
    with zipfile.ZipFile(npz, "a") as archive:
        raw = f"{header}\n".encode()
        archive.writestr("more.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(raw)) + raw)
    text.write_text(json.dumps(undigested(text)))
    with pytest.raises(TraceError, match="is damaged"):
        read_trace(text)


def undigested(text: Path) -> dict[str, Any]:
    """What the JSON file says, without its digests."""
    return {name: value for name, value in json.loads(text.read_text()).items() if "sha256" not in name}
