"""``burstproof train`` from its door: the loss of a small GPT falls, as recorded; bad texts are refused (TO-9)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from burstproof.cli.main import main
from burstproof.errors import ExitCode
from burstproof.tensor.array.backend import default_device

pytestmark = pytest.mark.requirement("TO-9")

SMALL = [
    "--backend",
    "cpu",
    "--steps",
    "12",
    "--batch",
    "4",
    "--length",
    "32",
    "--width",
    "32",
    "--precision",
    "float64",
]
RECORDED = (
    3.7832244954790317,
    3.634781800776344,
    3.565053684151954,
    3.4910935481332537,
    3.4391506955697917,
    3.436975412012476,
    3.3149987365548212,
    3.3064468508223888,
    3.247346269701053,
    3.191891159348497,
    3.241201504502358,
    3.2698063814136313,
)
"""Losses of twelve steps in float64 with seed 0, computed once with this package on x86-64 and NumPy 2.4."""


def run(capsys, *arguments: str) -> dict:
    assert main(["train", *SMALL, "--json", *arguments]) == ExitCode.PASS
    return json.loads(capsys.readouterr().out)


@pytest.mark.measures("training.loss", backend="cpu", dtype="float64")
def test_loss_falls_as_recorded(capsys, measure) -> None:
    document = run(capsys)
    losses = document["losses"]
    conditions = {"backend": "cpu", "text": document["text"], "dtype": "float64", "steps": len(losses)}
    measure("training.loss", losses[-1], "1", samples=losses, conditions=conditions, note="nats per character, by step")
    assert losses == pytest.approx(RECORDED, rel=1e-7)
    assert losses[-1] < losses[0] - 0.4
    assert document["held_out_loss"] < losses[0] - 0.4


def test_text_says_what_was_trained(capsys) -> None:
    assert main(["train", *SMALL, "--steps", "2"]) == ExitCode.PASS
    shown = capsys.readouterr().out
    assert "sample_text.txt (3891 characters, 43 different) on cpu, float64" in shown
    assert "held out: " in shown


def test_what_was_done_is_shown_when_it_is_interrupted(capsys, monkeypatch) -> None:
    def stopped(*arguments: object, **options: object) -> Iterator[float]:
        yield from (3.5, 3.0)
        raise KeyboardInterrupt

    monkeypatch.setattr("burstproof.cli.train.train", stopped)
    assert main(["train", *SMALL, "--steps", "5"]) == 130
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("step   loss")
    assert [line.split()[:2] for line in lines[1:3]] == [["1", "3.500"], ["2", "3.000"]]
    assert lines[3] == "2 of 5 steps were done"


def test_own_text(capsys, tmp_path) -> None:
    path = tmp_path / "own.txt"
    path.write_text("abc äöü. " * 60, encoding="utf-8")
    document = run(capsys, str(path))
    assert document["text"] == "own.txt"
    assert document["alphabet"] == 8
    assert document["losses"][-1] < document["losses"][0]


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (b"too short", [], "too short to train on"),
        (b"a" * 9000, [], "9000 times the character 'a'"),
        (b"\xff\xfe" * 900, [], "cannot be read"),
        (None, [], "cannot be read"),
        (b"ab" * 900, ["--heads", "3"], "Take a width of 48, or other heads"),
    ],
    ids=["short", "one character", "not text", "no file", "heads"],
)
def test_refusals(capsys, tmp_path, content, options, said) -> None:
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    assert main(["train", *SMALL, str(path), *options]) == ExitCode.USAGE
    assert said in capsys.readouterr().err


def test_without_a_device_the_option_is_named(capsys, monkeypatch) -> None:
    monkeypatch.setattr("burstproof.tensor.array.backend.device_count", lambda: 0)
    default_device.cache_clear()
    assert main(["train", "--backend", "cuda", "--steps", "2"]) == ExitCode.INVALID_ENVIRONMENT
    assert "Use --backend cpu" in capsys.readouterr().err
