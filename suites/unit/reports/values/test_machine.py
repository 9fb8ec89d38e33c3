"""The identity of a machine: what tells two apart, and what makes two of one class."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hardware.host import take_host
from reports import store
from reports.values.machine import Machine, machine_of
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-8")
BASELINES = Path(store.__file__).parent / "baselines"
GPU = Machine(
    gpu_uuids=("GPU-1",),
    gpu_names=("NVIDIA H200",),
    gpu_memory_gib=(140,),
    gpu_clocks_mhz=((1980, 3201),),
    driver="580.1",
    host="a",
    machine_id="00ff",
    container=False,
    cpu="Xeon",
    cores=16,
    cpu_clock_mhz=None,
)
CPU = replace(GPU, gpu_uuids=(), gpu_names=(), gpu_memory_gib=(), gpu_clocks_mhz=(), driver=None)


def test_committed_records_of_two_cards_are_of_one_class_and_of_two_machines() -> None:
    one, other, four, cores = (
        machine_of(store.load_run(BASELINES / name)) for name in ("h200", "h200-rev2", "h200-x4", "h200-x4-cores")
    )
    assert one.same_machine(one)
    assert not one.same_machine(other)
    assert one.same_class(other)
    assert four.same_machine(cores)
    assert not one.same_class(four)
    assert one.label == ("NVIDIA H200 (GPU-476d0ca9), driver 580.159.04, Intel(R) Xeon(R) Processor, 16 cores")
    assert four.label.startswith("4 × NVIDIA H200 (GPU-8e0d22e5, ")


def test_a_record_of_three_cards_says_so_and_is_of_no_machine() -> None:
    made, alone = (machine_of(store.load_run(BASELINES / name)) for name in ("h200-owners", "h200-small-bins"))
    assert made.others == 2
    assert alone.others == 0
    assert made.label.endswith(", host vm, and on 2 more")
    assert not made.same_machine(replace(made, others=0))
    assert made.same_class(alone)


@pytest.mark.parametrize(
    "change",
    [
        {"gpu_uuids": ("GPU-2",)},
        {"gpu_clocks_mhz": ((1500, 3201),)},
        {"driver": "570.1"},
        {"cpu": "EPYC"},
        {"cores": 8},
        {"cpu_clock_mhz": 3000.0},
        {"host": "b"},
        {"machine_id": "0000"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_part_of_the_identity_tells_machines_apart(change: dict[str, object]) -> None:
    assert not GPU.same_machine(replace(GPU, **change))
    assert GPU.same_class(replace(GPU, **change)) == ("cpu" not in change)


@pytest.mark.parametrize("change", [{"gpu_names": ("NVIDIA H100",)}, {"gpu_memory_gib": (80,)}])
def test_another_model_is_another_class(change: dict[str, object]) -> None:
    assert not GPU.same_class(replace(GPU, **change))


def test_a_host_that_is_not_known_is_told_by_its_gpus_or_not_at_all() -> None:
    assert GPU.same_machine(replace(GPU, host=None, machine_id=None))
    assert CPU.same_machine(CPU)
    assert not replace(CPU, host=None).same_machine(replace(CPU, host=None))


def test_containers_of_one_host_have_the_gpus_in_common_and_not_the_name() -> None:
    first, second = (replace(GPU, container=True, machine_id=None, host=name) for name in ("3f2a", "99b1"))
    assert first.same_machine(second)
    assert not replace(first, gpu_uuids=(), gpu_names=()).same_machine(replace(second, gpu_uuids=(), gpu_names=()))


def test_a_record_without_an_inventory_has_a_machine_all_the_same() -> None:
    machine = machine_of(replace(sample_record(), hardware={"gpus": "none", "host": None}))
    assert machine.label == "no GPU, unknown CPU, 0 cores"


def test_the_inventory_names_host_and_hashes_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hardware.host._container", lambda: None)
    monkeypatch.setattr("hardware.host._read", lambda path: "0123abcd\n" if path == "/etc/machine-id" else "")
    host = take_host()
    assert host.name
    assert host.machine_id is not None
    assert len(host.machine_id) == 16
    assert "0123abcd" not in host.machine_id
    monkeypatch.setattr("hardware.host._container", lambda: "docker")
    assert take_host().machine_id is None
