"""Which GPU a worker of a stage begins with."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from stages.gating import Gatekeeper
from suites.support.fake_nvml import LINUX_HOST, FakeGpu, FakeMachine

pytestmark = pytest.mark.requirement("ST-5", "ST-7")

HOPPER = FakeGpu("NVIDIA H200", (9, 0), 141.0, 132)
FOUR = FakeMachine((HOPPER,) * 4)


def order_of(monkeypatch: pytest.MonkeyPatch, machine: FakeMachine, worker: int, chosen: str | None = None) -> str:
    """``CUDA_VISIBLE_DEVICES`` after a worker has looked at its gates; empty if there is none."""
    if chosen is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    inventory = machine.inventory(replace(LINUX_HOST, visible_devices=chosen))
    monkeypatch.setattr("hardware.inventory.take_inventory", lambda: inventory)
    assert Gatekeeper(gpu_free=False, worker=worker).gates["nvml"].is_open == bool(machine.gpus)
    return os.environ.pop("CUDA_VISIBLE_DEVICES", "")


def test_workers_begin_with_different_gpus_and_see_all(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = [order_of(monkeypatch, FOUR, worker) for worker in range(6)]
    assert orders == ["", "1,2,3,0", "2,3,0,1", "3,0,1,2", "0,1,2,3", "1,2,3,0"]
    assert order_of(monkeypatch, FakeMachine((HOPPER,) * 2), 1) == "1,0"


def test_who_is_no_worker_changes_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    inventory = FOUR.inventory(replace(LINUX_HOST, visible_devices=None))
    monkeypatch.setattr("hardware.inventory.take_inventory", lambda: inventory)
    assert Gatekeeper(gpu_free=False).gates["gpu"].is_open
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


@pytest.mark.parametrize(
    ("machine", "chosen"),
    [
        (FOUR, "2,3"),
        (FOUR, ""),
        (FakeMachine(), None),
        (FakeMachine((HOPPER,)), None),
        (FakeMachine((HOPPER, replace(HOPPER, name="NVIDIA H100"))), None),
        (FakeMachine((HOPPER, replace(HOPPER, mig=True))), None),
    ],
    ids=["chosen", "none chosen", "no GPU", "one GPU", "unequal", "MIG"],
)
def test_what_somebody_has_chosen_stays(
    monkeypatch: pytest.MonkeyPatch, machine: FakeMachine, chosen: str | None
) -> None:
    assert order_of(monkeypatch, machine, 1, chosen) == (chosen or "")
