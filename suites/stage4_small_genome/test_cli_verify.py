"""``burstproof verify``: recorded traces replayed, the first disagreement in words (BE-18, BE-4)."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

from burstproof.engine.machine import CudaFacts, Machine, Obstacle
from burstproof.engine.trace import Trace, read_trace, write_trace
from suites.support.cli_door import SMALL, TRACES, Door, assert_one_error, door

__all__ = ["door"]

pytestmark = pytest.mark.requirement("BE-18", "BE-4")


def altered(folder: Path, name: str, **changes: object) -> Path:
    """A copy of a recorded trace with some attributes changed."""
    trace: Trace = dataclasses.replace(read_trace(TRACES / name), **changes)  # type: ignore[arg-type]
    write_trace(folder / name, trace)
    return folder / name


@pytest.mark.parametrize("ending", ["", ".npz", ".json"])
def test_a_recording_of_the_real_engine_agrees(door: Door, ending: str) -> None:
    answer = door("verify", "--backend", "reference", f"{TRACES / 'common'}{ending}")
    assert answer.code == 0, answer.err
    assert "agrees on reference (feagi-2.6)" in answer.out
    assert "fired lists 151 of 151 bursts, full state 151 of 151" in answer.out


def test_several_traces_as_json(door: Door) -> None:
    answer = door("verify", "--backend", "reference", "--json", TRACES / "stdp_w1", TRACES / "delays_frac")
    assert answer.code == 0, answer.err
    assert answer.document["agree"] is True
    assert [item["bursts"] for item in answer.document["traces"]] == [121, 101]
    for item in answer.document["traces"]:
        assert item["agrees"] is True
        assert item["fired_agree"] == item["state_agree"] == item["bursts"]
        assert item["first_disagreement"] is None


def test_without_emulation_the_batch_path_shows(door: Door) -> None:
    name = TRACES / "big_fcl12k"
    assert door("verify", "--backend", "reference", name).code == 0
    answer = door("verify", "--backend", "reference", "--no-emulate", "--json", name)
    assert answer.code == 1
    item = answer.document["traces"][0]
    assert item["state_agree"] < item["bursts"]
    assert item["first_disagreement"]["quantity"] == "refractory_countdowns"


def test_a_missing_firing_is_named_with_burst_neuron_expected_and_got(door: Door, tmp_path: Path) -> None:
    whole = read_trace(TRACES / "common")
    row = len(whole.fired_id) // 2
    kept = np.delete(np.arange(len(whole.fired_id)), row)
    name = altered(
        tmp_path,
        "common",
        fired_burst=whole.fired_burst[kept],
        fired_id=whole.fired_id[kept],
        fired_mp=whole.fired_mp[kept],
    )
    answer = door("verify", "--backend", "reference", name)
    assert answer.code == 1
    assert "DIFFERS" in answer.out
    assert "fired lists 150 of 151 bursts" in answer.out
    assert (
        f"first disagreement: burst {whole.fired_burst[row]}, neuron {whole.fired_id[row]}, fired list: "
        "expected does not fire, got fires"
    ) in answer.out


def test_a_wrong_potential_is_named(door: Door, tmp_path: Path) -> None:
    whole = read_trace(TRACES / "delays_frac")
    potentials = whole.states["membrane_potentials"].copy()
    potentials[7, 3] += 1.0
    name = altered(tmp_path, "delays_frac", states={**whole.states, "membrane_potentials": potentials})
    answer = door("verify", "--backend", "reference", "--json", name)
    first = answer.document["traces"][0]["first_disagreement"]
    assert answer.code == 1
    assert (first["burst"], first["item"], first["quantity"]) == (int(whole.bursts[7]), 3, "membrane_potentials")
    assert first["expected"] == str(potentials[7, 3])


def test_the_other_profile_disagrees_where_the_rules_differ(door: Door) -> None:
    assert door("verify", "--backend", "reference", "--profile", "feagi-beta", TRACES / "common").code == 0
    answer = door("verify", "--backend", "reference", "--profile", "feagi-beta", TRACES / "big_fcl12k")
    assert answer.code == 1
    assert "first disagreement" in answer.out


def test_a_record_is_replayed_under_its_own_rules_unless_others_are_named(door: Door, tmp_path: Path) -> None:
    record = tmp_path / "record"
    source = TRACES / "common.connectome"
    run = door("run", source, "--backend", "reference", "--bursts", 4, "--profile", "feagi-beta", "--record", record)
    assert run.code == 0, run.err
    answer = door("verify", "--backend", "reference", "--json", record)
    assert answer.code == 0
    assert answer.document["traces"][0]["profile"] == "feagi-beta"
    answer = door("verify", "--backend", "reference", "--json", "--profile", "feagi-2.6", record)
    assert answer.document["traces"][0]["profile"] == "feagi-2.6"


def test_a_backend_that_is_not_there_offers_no_option_that_verify_lacks(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(2, CudaFacts(Obstacle("no driver", "Install it")))
    monkeypatch.setattr("burstproof.session.this_machine", lambda: machine)
    answer = door("verify", "--backend", "cuda", TRACES / "common")
    assert_one_error(answer, 3, "--backend: the backend cuda cannot start: no driver. Install it")
    assert "--allow-fallback" not in answer.err


def test_an_unreadable_trace_does_not_hide_the_others(door: Door, tmp_path: Path) -> None:
    answer = door("verify", "--backend", "reference", tmp_path / "absent", TRACES / "stdp_w1")
    assert_one_error(answer, 4, "absent")
    assert "stdp_w1: agrees" in answer.out
    both = door("verify", "--backend", "reference", "--no-emulate", tmp_path / "absent", TRACES / "big_fcl12k")
    assert both.code == 1
    assert "absent" in both.err


@pytest.mark.parametrize("cut", [0, 100, 5000])
def test_a_trace_cut_short_is_one_clear_error(door: Door, tmp_path: Path, cut: int) -> None:
    shutil.copy(TRACES / "stdp_w1.json", tmp_path / "short.json")
    (tmp_path / "short.npz").write_bytes((TRACES / "stdp_w1.npz").read_bytes()[:cut])
    assert_one_error(door("verify", "--backend", "reference", tmp_path / "short"), 4, "short.npz")


def test_a_record_that_does_not_say_its_rules_is_refused(door: Door, tmp_path: Path) -> None:
    record = tmp_path / "record"
    door("run", SMALL, "--backend", "reference", "--bursts", 2, "--record", record)
    trace = read_trace(record)
    write_trace(record, dataclasses.replace(trace, settings={"profile": "feagi-2.6"}))
    assert_one_error(door("verify", "--backend", "reference", record), 4, "does not say how it was made")
