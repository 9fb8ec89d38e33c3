"""``burstproof info``: what this machine can run and why not more, configuration with origins (BE-13, BE-14, BE-18)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from burstproof.cli import info as info_module
from burstproof.cli import plan as plan_module
from burstproof.engine.ask_machine import this_machine
from burstproof.engine.cuda.plan.budget import RESERVE_BYTES, plan_memory
from burstproof.engine.cuda.plan.choices import choices_of
from burstproof.engine.cuda.plan.packed import pack_network
from burstproof.engine.cuda.tuning.cache import Launch, Tuned, save
from burstproof.engine.machine import CudaDevice, CudaFacts, Machine, Obstacle, Usable, WgpuAdapter, WgpuFacts
from burstproof.engine.options import EngineOptions
from burstproof.sources import load
from suites.support.cli_door import BUSY, SMALL, Door, assert_one_error, door
from suites.support.homeless import leave_home

__all__ = ["door"]

pytestmark = pytest.mark.requirement("BE-13", "BE-14", "BE-18")


def test_every_backend_is_listed_with_a_reason(door: Door) -> None:
    answer = door("info", "--json")
    assert answer.code == 0
    backends = {item["backend"]: item for item in answer.document["backends"]}
    assert set(backends) == {"cuda", "wgpu", "cpu", "reference"}
    assert backends["cpu"]["available"] is backends["reference"]["available"] is True
    found = this_machine().cuda.found(0)
    assert backends["cuda"]["available"] is isinstance(found, Usable)
    for item in backends.values():
        assert item["why"]
        assert item["available"] or item["cure"]


def test_the_text_says_the_same(door: Door) -> None:
    answer = door("info")
    assert answer.code == 0
    document = door("info", "--json").document
    for item in document["backends"]:
        assert item["why"] in answer.out
    for item in document["configuration"]:
        assert item["key"] in answer.out


def test_a_user_without_a_home_is_answered(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_home(monkeypatch)
    answer = door("info", "--json")
    assert (answer.code, answer.document["tuned"]) == (0, [])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_damaged_launches_are_left_out(door: Door, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A sound one is shown all the same."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "burstproof"
    key = {"device": "card", "neurons": 7, "synapses": 9}
    save(folder, key, Tuned(Launch(512, 0, 4), 10.0, None, 8.0))
    (folder / "launch-deep.json").write_text("[" * 60_000)
    os.mkfifo(folder / "launch-pipe.json")
    (folder / "launch-zeros.json").symlink_to("/dev/zero")
    answer = door("info")
    assert answer.code == 0
    assert answer.out.count("tuned for") == 1
    assert "tuned for card, 7 neurons, 9 synapses: block 512" in answer.out


def test_a_gpu_is_shown_with_capability_and_memory(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    device = CudaDevice(0, "NVIDIA H100 80GB HBM3", (9, 0), 80 * 2**30)
    machine = Machine(16, CudaFacts(None, (device,), (12, 8), (12, 9)))
    monkeypatch.setattr(info_module, "this_machine", lambda: machine)
    answer = door("info")
    assert "device 0: NVIDIA H100 80GB HBM3, compute capability 9.0, 80.0 GiB" in answer.out
    assert "driver takes 12.8, installed tools are for 12.9" in answer.out


@pytest.mark.requirement("BE-16")
def test_a_wgpu_adapter_is_shown_with_its_limits(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = WgpuAdapter(0, "Radeon 780M", "IntegratedGPU", "Vulkan", 2**31, 2**27)
    none = Obstacle("no NVIDIA driver on this machine", "Install the NVIDIA driver")
    machine = Machine(16, CudaFacts(none), WgpuFacts(None, (adapter,)))
    monkeypatch.setattr(info_module, "this_machine", lambda: machine)
    shown = door("info").out
    assert "WGPU adapter 0: Radeon 780M, IntegratedGPU through Vulkan" in shown
    assert "buffers to 2048 MiB, 128 MiB of one given to a shader" in shown
    (described,) = door("info", "--json").document["wgpu"]
    assert (described["largest_binding_bytes"], described["software"]) == (2**27, False)


def test_where_each_value_came_from(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("feagi_configuration.toml").write_text("[cuda]\nstream_count = 2\ndevice_id = 1\n", "utf-8")
    monkeypatch.setenv("BURSTPROOF_CUDA_DEVICE_ID", "2")
    document = door("info", "--json", "--backend", "cpu").document
    origins = {item["key"]: (item["value"], item["origin"]) for item in document["configuration"]}
    assert origins["compute.backend"] == ("cpu", "command line --backend")
    assert origins["cuda.device_id"] == (2, "environment variable BURSTPROOF_CUDA_DEVICE_ID")
    assert origins["cuda.stream_count"][0] == 2
    assert origins["cuda.stream_count"][1].endswith("feagi_configuration.toml")
    assert origins["cuda.multi_gpu.num_gpus"] == (8, "default")
    assert document["config_file"].endswith("feagi_configuration.toml")


THRESHOLDS = ("compute.auto_selection.gpu_min_neurons", "compute.auto_selection.gpu_min_firing_rate")


def test_thresholds_are_shown_as_they_are_in_force(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them measured costs decide; one that is set puts the other in force, too."""

    def shown() -> list[tuple[float | None, str]]:
        found = {item["key"]: item for item in door("info", "--json").document["configuration"]}
        return [(found[key]["value"], found[key]["origin"]) for key in THRESHOLDS]

    costs = "measured costs decide; for WGPU"
    assert shown() == [(None, f"{costs} 50000"), (None, f"{costs} 0.15")]
    lines = [line.split(maxsplit=1) for line in door("info").out.splitlines() if line.startswith(THRESHOLDS)]
    assert [line[1].split("  ")[0] for line in lines] == ["not set", "not set"]
    variable = "BURSTPROOF_COMPUTE_AUTO_SELECTION_GPU_MIN_NEURONS"
    monkeypatch.setenv(variable, "1000")
    assert shown() == [(1000, f"environment variable {variable}"), (0.15, "default")]


def test_a_faulty_configuration_is_one_clear_error(door: Door) -> None:
    Path("mine.toml").write_text("[cuda]\nstream_cuont = 2\n", "utf-8")
    answer = door("info", "--config", "mine.toml")
    assert_one_error(answer, 4, "mine.toml: cuda.stream_cuont", "got 2", "Did you mean stream_count?")


@pytest.mark.requirement("BE-9")
def test_the_plan_lists_every_buffer_without_a_device(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "ask_cuda", lambda: CudaFacts(Obstacle("no driver", "Install it")))
    answer = door("info", "--plan", SMALL, "--json")
    assert answer.code == 0, answer.err
    document = answer.document
    plan = plan_memory(load(SMALL), EngineOptions())
    assert document["backend"] == "cuda"
    assert [one["name"] for one in document["buffers"]] == [spec.name for spec in plan.buffers]
    assert document["total_bytes"] == {"device": plan.total_bytes, "host": 0}
    assert document["per_gibibyte"]["neurons"] == int(document["neurons"] * 2**30 / plan.total_bytes)
    assert document["device"] is None
    text = door("info", "--plan", SMALL).out
    assert all(len(line) <= 80 for line in text.splitlines()[1:])
    assert str(plan.total_bytes) in text


@pytest.mark.requirement("BE-9")
def test_a_synthetic_network_may_follow_plan(door: Door) -> None:
    synthetic = ("--synthetic", "20K", "--json")
    assert door("info", "--plan", *synthetic).document == door("info", *synthetic).document


@pytest.mark.requirement("BE-9")
def test_a_network_that_the_host_cannot_hold_names_what_the_command_can_do(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only Python can have it made on the device; a plan can be scaled."""

    def full(*_: object) -> None:
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("burstproof.network.synthetic.build._synthesize", full)
    assert_one_error(door("info", "--plan", "--synthetic", "20K"), 3, "2000000 synapses", "Plan a smaller one")
    assert_one_error(door("run", "--synthetic", "20K"), 3, "from Python, CudaEngine.from_spec makes them on the device")


@pytest.mark.requirement("BE-9", "BE-13")
@pytest.mark.parametrize(("gpus", "backend", "words"), [(1, "cuda", "a GPU pays off"), (0, "cpu", "cuda is not")])
def test_auto_plans_what_it_chooses_here_and_says_why(
    door: Door, monkeypatch: pytest.MonkeyPatch, gpus: int, backend: str, words: str
) -> None:
    devices = (CudaDevice(0, "H100", (9, 0), 2**34),) * gpus
    facts = CudaFacts(None if gpus else Obstacle("no driver", "Install it"), devices, (13, 0), (13, 0))
    monkeypatch.setattr(plan_module, "ask_cuda", lambda: facts)
    monkeypatch.setattr(plan_module, "this_machine", lambda: Machine(1, facts))
    arguments = ("info", "--plan", "--synthetic", "20K", "--backend", "auto")
    document = door(*arguments, "--json").document
    assert document["backend"] == backend
    assert words in document["chosen_by_auto"]
    text = door(*arguments).out
    assert f"auto chooses {backend} here: " in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "auto" not in door(*arguments[:-2]).out


@pytest.mark.requirement("BE-9", "MG-4")
def test_a_plan_for_several_gpus_says_that_it_is_for_one(door: Door, tmp_path: Path) -> None:
    config = tmp_path / "several.toml"
    config.write_text('[compute]\nbackend = "cuda"\n[cuda.multi_gpu]\nenabled = true\n')
    arguments = ("info", "--plan", "--synthetic", "20K", "--config", config)
    assert "Planned as on one GPU" in door(*arguments).out
    assert door(*arguments, "--json").document["as_on_one_gpu"]
    on_cpu = (*arguments, "--backend", "cpu")
    assert "one GPU" not in door(*on_cpu).out
    assert not door(*on_cpu, "--json").document["as_on_one_gpu"]
    assert "one GPU" not in door(*arguments[:-2]).out


@pytest.mark.thorough("packs networks of 20 M synapses")
@pytest.mark.requirement("BE-9", "BE-12")
def test_the_plan_says_how_contributions_are_delivered_and_why(door: Door) -> None:
    """In the words of a run's record; the CPU has no choice."""
    arguments = ("info", "--plan", BUSY)
    choices = door(*arguments, "--json").document["choices"]
    assert choices == choices_of(pack_network(load(BUSY), EngineOptions()))
    assert "since" in choices
    text = door(*arguments).out
    assert all(len(line) <= 80 for line in text.splitlines()[1:])
    assert choices.replace("; ", " - ") in " ".join(text.split())
    on_cpu = (*arguments, "--backend", "cpu")
    assert door(*on_cpu, "--json").document["choices"] == ""
    assert "and why" not in door(*on_cpu).out
    quiet = ("info", "--synthetic", "200K", "--synapses", "100", "--json")
    for more, queued in (((), False), (("--rate", 0.1), True), (("--rate", 0.1, "--firing-rate", 0.01), False)):
        assert ("queues for" in door(*quiet, *more).document["choices"]) is queued


@pytest.mark.requirement("BE-9", "BE-10")
@pytest.mark.parametrize(
    ("memory_bytes", "fits", "words"),
    [
        (2**30, True, "1.0 GiB: fits"),
        (RESERVE_BYTES + 10_000_000, True, "fits, its synapses in host memory"),
        (2**20, False, "does not fit"),
    ],
)
def test_the_plan_says_what_the_device_here_holds(
    door: Door, monkeypatch: pytest.MonkeyPatch, memory_bytes: int, fits: bool, words: str
) -> None:
    facts = CudaFacts(None, (CudaDevice(0, "H100", (9, 0), memory_bytes),), (13, 0), (13, 0))
    monkeypatch.setattr(plan_module, "ask_cuda", lambda: facts)
    arguments = ("info", "--synthetic", "20K", "--synapses", "100")
    document = door(*arguments, "--json").document
    assert document["synapses"] == 2_000_000
    assert document["device"]["fits"] is fits
    assert words in door(*arguments).out


@pytest.mark.requirement("BE-9")
def test_the_plan_of_the_cpu_is_what_its_engine_holds(door: Door) -> None:
    document = door("info", "--plan", BUSY, "--backend", "cpu", "--json").document
    sizes = {one["name"]: one["bytes"] for one in document["buffers"]}
    assert sizes["neurons.membrane_potentials"] == 4 * document["neurons"]
    assert sizes["static.targets"] == 4 * load(BUSY).synapse_count
    assert document["total_bytes"] == {"device": 0, "host": sum(sizes.values())}
