"""The commands that a user runs, on every backend: records equal to the reference's, losses near the CPU's (BE-18)."""

from __future__ import annotations

import pytest

from suites.support.cli_door import GENOMES, TRACES, Door, door, recorded
from suites.support.parity.backends import NEEDS_ADAPTER
from suites.support.plans import only, thinned

__all__ = ["door"]

BACKENDS = [
    "cpu",
    pytest.param("wgpu", marks=NEEDS_ADAPTER),
    pytest.param("cuda", marks=pytest.mark.gate("gpu")),
]
SOURCES = {
    "essential": ("--genome", GENOMES / "essential_genome.json"),
    "20K": ("--synthetic", "20K", "--synapses", "50", "--rate", "0.02", "--seed", "3"),
}
TRAINING = ("--steps", "12", "--batch", "4", "--length", "32", "--width", "64", "--precision", "float32")


@pytest.mark.requirement("BE-18", "BE-4")
@pytest.mark.parametrize("source", thinned(SOURCES, "compiles kernels for a genome", keep=only("20K")))
@pytest.mark.parametrize("backend", BACKENDS)
def test_run_records_what_the_reference_records(door: Door, backend: str, source: str) -> None:
    """``burstproof run --backend B --record R``: array by array the record of the reference, no fallback taken."""
    expected = recorded(door, "reference", *SOURCES[source])
    found = recorded(door, backend, *SOURCES[source])
    assert expected.document["firings"] > 0
    assert found.differs(expected) == []
    assert (found.document["backend"]["backend"], found.document["backend"]["fallback"]) == (backend, "")


@pytest.mark.requirement("BE-18", "BE-4")
@pytest.mark.parametrize("backend", BACKENDS)
def test_verify_agrees_with_the_real_engine(door: Door, backend: str) -> None:
    """``burstproof verify --backend B``: three recordings of the real engine and one of the reference's own runs."""
    own = recorded(door, "reference", *SOURCES["20K"])
    names = [TRACES / name for name in ("common", "stdp_w1", "delays_frac")]
    answer = door("verify", "--backend", backend, "--json", *names, own.path)
    assert answer.code == 0, answer.err
    assert [one["state_agree"] for one in answer.document["traces"][:3]] == [151, 121, 101]
    assert all(one["agrees"] and one["backend"].startswith(backend) for one in answer.document["traces"])


@pytest.mark.requirement("TO-9")
@pytest.mark.gate("gpu")
def test_train_follows_the_losses_of_the_cpu(door: Door) -> None:
    """``burstproof train --backend cuda`` in float32: twelve losses, each within a thousandth of the CPU's."""
    answers = {backend: door("train", "--backend", backend, *TRAINING, "--json") for backend in ("cpu", "cuda")}
    assert all(answer.code == 0 for answer in answers.values()), answers
    losses = {backend: answer.document["losses"] for backend, answer in answers.items()}
    assert answers["cuda"].document["backend"].startswith("cuda")
    assert losses["cuda"] == pytest.approx(losses["cpu"], rel=1e-3)
    assert losses["cuda"][-1] < losses["cuda"][0] - 0.4
