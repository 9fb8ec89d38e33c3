"""Targets: complete, checked on the way in, matched by what they hold for."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from burstproof.errors import ExitCode, InputError
from reports.command import main
from reports.judge.judging import targets_sha256
from reports.judge.summary import first_line
from reports.judge.targets import load_targets, match, mismatch, parse_targets
from reports.store import load_run, write_run
from reports.values.measurement import Measurement, Scalar
from reports.values.record import TARGETS_NAME
from suites.support.sample_record import latency, sample_record

pytestmark = pytest.mark.requirement("RE-2")
ROW: dict[str, object] = {
    "id": "x",
    "measurement": "burst.latency",
    "metric": "a burst",
    "comparison": "<=",
    "limit": 1.0,
    "unit": "ms",
    "source": "A",
    "status": "estimate",
    "date": "2026-11-20",
}


def test_every_source_has_its_rows() -> None:
    sources = Counter(target.source for target in load_targets())
    assert set(sources) == {"A", "B", "C", "D", "E", "F", "goal"}
    assert sources["B"] == 12
    assert sources["goal"] >= 10


def test_contradicting_notes_stand_side_by_side() -> None:
    figure = latency("cuda", 1_000_000, 12.0, scope="launch to download", device="NVIDIA H100 80GB HBM3")
    assert {(target.id, target.high) for target in match(figure)} == {
        ("A-burst-1m-h100", 20.0),
        ("B-burst-1m-h100", 15.0),
        ("C-burst-1m-h100", 10.0),
    }


@pytest.mark.parametrize(
    ("neurons", "limit_us"), [(100_000, 4.5), (500_000, 9.0), (1_000_000, 16.0), (5_000_000, 80.0), (20_000_000, 380.0)]
)
def test_goals_of_the_h200(neurons: int, limit_us: float) -> None:
    (target,) = match(latency("cuda", neurons, 1.0, device="NVIDIA H200"))
    assert (target.source, target.high, target.unit) == ("goal", limit_us, "us")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"device": "NVIDIA A10"}, "device"),
        ({"device": ""}, "device"),
        ({"neurons": 200_000}, "neurons"),
        ({"firing_rate": 0.02}, "firing_rate"),
        ({"scope": "step, downloaded"}, "scope"),
        ({"gpus": 8}, "gpus"),
    ],
)
def test_what_does_not_match_is_not_judged(change: dict[str, Scalar], word: str) -> None:
    figure = latency("cuda", 100_000, 1.0, scope="launch to download", device="NVIDIA H100 PCIe")
    assert match(figure)
    other = replace(figure, conditions={**figure.conditions, **change})
    assert match(other) == ()
    target = next(target for target in load_targets() if target.id == "A-burst-100k-h100")
    assert word in mismatch(other, target)


def test_a_number_may_lie_in_a_span() -> None:
    target = next(target for target in load_targets() if target.id == "C-scaling-latency-4")
    near = Measurement("scaling.latency", 3.0, "ms", conditions={"gpus": 4, "single_gpu_ms": 10.4})
    far = Measurement("scaling.latency", 3.0, "ms", conditions={"gpus": 4, "single_gpu_ms": 2.0})
    assert mismatch(near, target) == ""
    assert "9 to 11" in mismatch(far, target)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"limits": 1.0}, "limits"),
        ({"unit": "furlong"}, "furlong"),
        ({"limit": float("nan")}, "finite"),
        ({"limit": True}, "limit"),
        ({"comparison": "=="}, "=="),
        ({"comparison": "range"}, "high and low"),
        ({"source": "G"}, "source"),
        ({"status": "hope"}, "hope"),
        ({"marginal": 1.0}, "marginal"),
        ({"id": ""}, "id"),
        ({"conditions": {"neurons": {"least": 1}}}, "conditions.neurons"),
        ({"conditions": {"device": []}}, "conditions.device"),
        ({"conditions": {"neurons": {"min": 2, "max": 1}}}, "conditions.neurons"),
        ({"floor": float("inf")}, "finite"),
        ({"floor": 0.0}, "a floor lies above 0"),
        ({"floor": -1.0}, "a floor lies above 0"),
        ({"near_floor": 0.9}, "near_floor is a factor of the floor"),
        ({"near_floor": float("inf")}, "near_floor is a factor of the floor"),
        ({"note": 3}, "note"),
    ],
)
def test_a_faulty_row_is_named(change: dict[str, object], named: str) -> None:
    with pytest.raises(InputError, match=named) as caught:
        parse_targets({"target": [ROW | change]})
    assert "target 1" in str(caught.value)


def test_faults_between_rows_are_named() -> None:
    with pytest.raises(InputError, match="same id"):
        parse_targets({"target": [ROW, ROW]})
    with pytest.raises(InputError, match="limited in ms by x and in GB/s"):
        parse_targets({"target": [ROW, ROW | {"id": "y", "unit": "GB/s"}]})
    crossed = {key: value for key, value in ROW.items() if key != "limit"}
    crossed |= {"comparison": "range", "low": 2.0, "high": 1.0}
    with pytest.raises(InputError, match="low must lie below high"):
        parse_targets({"target": [crossed]})


OWN = """
[[target]]
id = "{id}"
measurement = "burst.latency"
metric = "a burst here"
comparison = "<="
limit = {limit}
unit = "us"
source = "own"
status = "goal"
date = "2026-11-22"
conditions = {{ backend = "cuda", neurons = 1_000_000, scope = "device-resident" }}
"""


def own_file(folder: Path, *targets: tuple[str, object]) -> Path:
    """A user's file of targets, by id and limit."""
    path = folder / "mine.toml"
    path.write_text("".join(OWN.format(id=name, limit=limit) for name, limit in targets), encoding="utf-8")
    return path


def test_a_users_file_adds_targets_and_takes_the_place_of_ours(tmp_path: Path) -> None:
    path = own_file(tmp_path, ("mine", 1.0), ("goal-h200-burst-1m", 2.0))
    merged = {target.id: target for target in load_targets(path)}
    ours = {target.id: target for target in load_targets()}
    assert set(merged) == {*ours, "mine"}
    assert (merged["goal-h200-burst-1m"].high, ours["goal-h200-burst-1m"].high) == (2.0, 16.0)
    assert (merged["mine"].source_text, merged["mine"].is_goal) == ("own target", True)
    assert targets_sha256(load_targets(path)) != targets_sha256()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("limit = " + "9" * 5000, ["not valid TOML"]),
        ('[[target]]\nid = "x"\nlimit = ' + "9" * 4000, ["target 1 (x)", "limit", "a number that float64 holds"]),
        ("a = " + "[" * 5000, ["not valid TOML"]),
        ("[[target]", ["not valid TOML", "line 1"]),
        ('[target]\nid = "x"', ["[[target]]"]),
        (OWN.format(id="x", limit=1.0).replace('"us"', '"furlong"'), ["target 1 (x).unit", "'furlong'", "allowed: ns"]),
        (OWN.format(id="x", limit=1.0).replace("metric", "metrik"), ["target 1 (x)", "'metrik'", "allowed: id"]),
        (OWN.format(id="x", limit=1.0).replace("limit", "limt"), ["target 1 (x)", "'limt'", "allowed: id"]),
        (OWN.format(id="x", limit='"low"'), ["target 1 (x).limit", "'low'", "a number"]),
        (OWN.format(id="x", limit=1.0).replace('"goal"', '"hope"'), ["target 1 (x).status", "'hope'", "'estimate' or"]),
        (OWN.format(id="x", limit=1.0).replace('"us"', '"GB/s"'), ["(x)", "GB/s", "a unit of time"]),
    ],
    ids=["digits", "number", "depth", "brackets", "table", "unit", "key", "limit", "type", "status", "dimension"],
)
def test_what_is_wrong_in_a_users_file_is_one_sentence_with_a_cure(
    text: str, named: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through the command: file, row, key, value, what is allowed, and what to do; exit code 4."""
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    write_run(tmp_path / "run", sample_record())
    arguments = ["render", str(tmp_path / "run"), "--targets", str(path), "--out", str(tmp_path / "page.html")]
    assert main(arguments) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("error: mine.toml")
    assert len(said) < 700
    assert all(word in said for word in named), said
    assert re.search(r"(Correct|Convert|Write) ", said)


def test_what_is_no_file_of_targets_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.toml: no file of targets"):
        load_targets(tmp_path / "absent.toml")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="not a regular file"):
        load_targets(pipe)


def test_a_page_is_judged_by_a_users_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The record stays as it is; the page says which targets it was judged by, and misses the stricter one."""
    write_run(tmp_path / "run", sample_record(faults=False))
    path = own_file(tmp_path, ("mine", 1.0))
    render = ["render", str(tmp_path / "run"), "--targets", str(path)]
    assert main(render) == ExitCode.USAGE
    assert "--out" in capsys.readouterr().err
    assert main([*render, "--out", str(tmp_path / "page.html")]) == ExitCode.PASS
    before = int(first_line(load_run(tmp_path / "run")).removeprefix("FAIL: ").split()[0])
    assert f"FAIL: {before + 1} goals missed" in capsys.readouterr().out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Judged for this page with the targets of mine.toml" in page
    assert "a burst here" in page
    assert not any(judged.target == "mine" for judged in load_run(tmp_path / "run").judgements)
    (tmp_path / "run" / TARGETS_NAME).write_bytes(path.read_bytes())
    assert main(["goals", str(tmp_path / "run"), "--all"]) == ExitCode.PASS
    assert "a burst here" in capsys.readouterr().out


def test_a_users_target_that_judges_nothing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "run", sample_record())
    path = own_file(tmp_path, ("mine", 1.0))
    path.write_text(path.read_text(encoding="utf-8").replace("burst.latency", "burst.latncy"), encoding="utf-8")
    assert main(["render", str(tmp_path / "run"), "--targets", str(path), "--out", str(tmp_path / "page.html")]) == 0
    assert "Your target mine judged nothing: nothing here measures it." in capsys.readouterr().out
