"""Options that would do nothing where they are given are refused, and those that do something are not."""

from __future__ import annotations

import argparse

import pytest

from burstproof.cli.arguments import build_parser
from burstproof.cli.idle import BACKEND, NEEDS, SOURCE, refuse_idle
from burstproof.errors import InputError
from burstproof.sources import Kind
from suites.support.cli_door import BUSY, SMALL, TRACES, Door, assert_one_error, door

__all__ = ["door"]

pytestmark = pytest.mark.requirement("BE-18")

TRACE = TRACES / "lif_mix"
SYNTHETIC = ("--synthetic", "20K")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["run", BUSY, "--seed", 5], "--seed: only a genome"),
        (["run", BUSY, "--max-neurons", 5], "--max-neurons: only the growth"),
        (["run", BUSY, "--ignore-unmodelled"], "--ignore-unmodelled: only a genome"),
        (["run", BUSY, "--as-the-engine"], "--as-the-engine: only a genome"),
        (["run", SMALL, "--apply-flags"], "--apply-flags: only a connectome"),
        (["run", *SYNTHETIC, "--max-neurons", 5], "--max-neurons: only the growth"),
        (["run", *SYNTHETIC, "--max-synapses", 5], "--max-synapses: only the growth"),
        (["run", *SYNTHETIC, "--apply-flags"], "--apply-flags: only a connectome"),
        (["run", *SYNTHETIC, "--ignore-unmodelled"], "--ignore-unmodelled: only a genome"),
        (["run", SMALL, "--backend", "cpu", "--device", 0], "--device: only the backend cuda has devices"),
        (["run", SMALL, "--backend", "cpu", "--no-graphs"], "--no-graphs: only the backend cuda has graphs"),
        (["run", SMALL, "--backend", "cpu", "--autotune"], "--autotune: only the backend cuda"),
        (["run", SMALL, "--backend", "reference", "--threads", 2], "--threads: only the backend cpu has threads"),
        (["run", SMALL, "--shards", 2, "--autotune"], "--autotune: only the backend cuda"),
        (["run", SMALL, "--backend", "cpu", "--firing-rate", 0.5], "--firing-rate: only the backends auto and cuda"),
        (["info", "--firing-rate", 0.5], "--firing-rate: no plan was asked for, so it does nothing here (got 0.5)"),
        (["info", "--firing-rate", 0], "Add --plan FILE or --synthetic N"),
        (["info", "--plan", SMALL, "--backend", "cpu", "--firing-rate", 0.5], "--firing-rate: only the backends auto"),
        (["run", SMALL, "--rank-timeout", 5], "--rank-timeout: only ranks wait"),
        (["run", SMALL, "--mpi", "off"], "--mpi: no launcher"),
        (["convert", BUSY, "out.bpnet", "--seed", 3], "--seed: only a genome"),
        (["convert", SMALL, "out.bpnet", "--apply-flags"], "--apply-flags: only a connectome"),
        (["info", "--seed", 3], "--seed: only a genome"),
        (["info", "--max-neurons", 3], "--max-neurons: only the growth"),
        (["info", "--threads", 3], "--threads: no plan was asked for"),
        (["info", "--plan", SMALL, "--threads", 2], "--threads: only the backend cpu"),
        (["verify", TRACE, "--device", 1], "--device: only the backend cuda"),
        (["verify", TRACE, "--backend", "reference", "--threads", 2], "--threads: only the backend cpu"),
        (["fuzz", "--cases", 1, "--device", 1], "--device: only the backend cuda"),
        (["train", "--backend", "cpu", "--device", 1], "the CPU has no device number"),
    ],
)
def test_an_option_without_effect_is_refused(door: Door, arguments: list[object], part: str) -> None:
    assert_one_error(door(*arguments), 4, part)


@pytest.mark.thorough("compiles kernels")
def test_what_auto_chooses_counts(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the choice nobody knows; afterwards the option names what was chosen."""
    assert_one_error(door("run", SMALL, "--device", 0), 4, "--device: only the backend cuda", "here it is cpu")
    assert door("run", SMALL, "--threads", 2, "--bursts", 2).code == 0


@pytest.mark.parametrize("need", NEEDS, ids=lambda need: need.option)
def test_each_row_refuses_elsewhere_and_nowhere_else(need: object) -> None:
    (row,) = (row for row in NEEDS if row is need)
    given = argparse.Namespace(**{row.option: "given"})
    for value in row.values:
        refuse_idle(given, **{row.about: value})
    refuse_idle(given, **{"source" if row.about != SOURCE else BACKEND: Kind.NETWORK})
    refuse_idle(argparse.Namespace(**{row.option: row.default}), **{row.about: "elsewhere"})
    with pytest.raises(InputError, match="so it does nothing here"):
        refuse_idle(given, **{row.about: "elsewhere"})


@pytest.mark.parametrize("command", ["run", "verify", "fuzz", "convert", "info"])
def test_the_table_has_the_defaults_of_the_parser(command: str) -> None:
    needed = {"verify": ["trace"], "convert": ["in", "out"]}.get(command, [])
    options = vars(build_parser().parse_args([command, *needed]))
    for need in NEEDS:
        assert options.get(need.option, need.default) == need.default, need.option


@pytest.mark.parametrize("command", [["run", SMALL], ["verify", TRACE], ["fuzz", "--cases", 1]])
def test_more_threads_than_can_be_of_use_are_refused(
    door: Door, monkeypatch: pytest.MonkeyPatch, command: list[object]
) -> None:
    monkeypatch.setattr("burstproof.cli.settings.usable_cores", lambda: 2)
    assert_one_error(door(*command, "--threads", 57), 4, "too many threads for 2 cores", "got 57", "0...56")
    monkeypatch.setattr("burstproof.cli.settings.usable_cores", lambda: 128)
    assert_one_error(door(*command, "--threads", 4096), 4, "too many threads for 128 cores", "0...512")
