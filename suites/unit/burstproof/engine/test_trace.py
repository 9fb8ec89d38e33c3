"""Traces on disk: no change of either file goes unnoticed, and two files of two runs are no trace."""

from __future__ import annotations

import dataclasses
import json
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burstproof.cli.main import main
from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.engine.trace import Trace, read_trace, trace_of_run, write_trace
from burstproof.errors import ExitCode, TraceError
from burstproof.sources import synthetic
from burstproof.verification import verify
from suites.support.parity.recordings import GOLDEN

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


Change = Callable[[dict[str, Any], dict[str, Any]], object]
"""Of what the JSON file says, and of the arrays."""


def at_start(**values: Any) -> Change:
    return lambda info, _: info["fired_at_start"].update(values)


def array(name: str, change: Callable[[Any], Any]) -> Change:
    return lambda _, arrays: arrays.update({name: change(arrays[name])})


PLASTIC, REMEMBERING = "traces/stdp_w3", "features/mem4_11"
CONTRADICTIONS: dict[str, tuple[str, Change, str]] = {
    "a candidate beyond": (PLASTIC, lambda info, _: info.update(fcl_at_start=[10**6]), r"fcl_at_start.*0\.\.\.38"),
    "a candidate below": (PLASTIC, lambda info, _: info.update(fcl_at_start=[-1]), r"fcl_at_start.*0\.\.\.38"),
    "one that fired beyond": (PLASTIC, at_start(ids=[10**6], mps=[1.0]), r"fired_at_start\.ids: not neurons"),
    "one that fired twice": (PLASTIC, at_start(ids=[1, 1], mps=[1.0, 1.0]), "fired_at_start.*each once"),
    "part of an id": (PLASTIC, at_start(ids=[1.5], mps=[1.0]), r"fired_at_start\.ids: not neurons"),
    "ids without an end": (PLASTIC, at_start(ids=1, mps=[1.0]), r"fired_at_start\.ids: not neurons"),
    "a potential short": (PLASTIC, at_start(ids=[1, 2], mps=[1.0]), r"fired_at_start\.mps.*allowed: 2 numbers"),
    "one potential for all": (PLASTIC, at_start(mps=1.0), r"fired_at_start\.mps"),
    "NaN that fired": (PLASTIC, at_start(ids=[1], mps=[float("nan")]), r"fired_at_start\.mps"),
    "power": (PLASTIC, lambda info, _: info.update(power_amount=float("nan")), "power_amount: .* not finite"),
    "bytes": (PLASTIC, array("t_eligibility_traces", lambda values: values.astype("V4")), "t_elig.*V4.*float32"),
    "text": (PLASTIC, array("t_membrane_potentials", lambda values: values.astype("U5")), "t_membrane.*U5"),
    "numbers as text": (REMEMBERING, array("mem_lifespan", lambda values: values.astype("U5")), "mem_lifespan.*U5"),
    "bursts as floats": (REMEMBERING, array("mem_burst", lambda values: values.astype(float)), "mem_burst"),
    **{
        f"no {name}": (REMEMBERING, lambda _, arrays, name=name: arrays.pop(name), f"{name}'].*Record it again")
        for name in ("mem_area", "mem_activation_count", "mem_lifespan", "mem_id", "mem_burst")
    },
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_recording_that_contradicts_itself_is_refused_when_it_is_read(name: str, tmp_path: Path) -> None:
    source, change, said = CONTRADICTIONS[name]
    with pytest.raises(TraceError, match=said):
        read_trace(changed(source, change, tmp_path))


def changed(source: str, change: Change, folder: Path) -> Path:
    """A golden recording with ``change`` made to its JSON file and its arrays."""
    for file in GOLDEN.glob(f"{source}.*"):
        (folder / file.name).write_bytes(file.read_bytes())
    text = folder / f"{Path(source).name}.json"
    info, arrays = json.loads(text.read_text()), dict(np.load(text.with_suffix(".npz")))
    change(info, arrays)
    text.write_text(json.dumps(info))
    np.savez(text.with_suffix(".npz"), **arrays)
    return text


@pytest.mark.parametrize("source", [PLASTIC, REMEMBERING])
def test_a_recording_of_no_burst_is_not_compared(source: str, tmp_path: Path) -> None:
    per_burst = ("t_", "mem_", "dyn_", "newn_", "bursts", "fired_")

    def emptied(_: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays.update({name: values[:0] for name, values in arrays.items() if name.startswith(per_burst)})

    path = changed(source, emptied, tmp_path)
    with pytest.raises(TraceError, match="holds no burst"):
        verify(path)
    assert main(["verify", str(path)]) == ExitCode.USAGE
