"""Which backend runs, why, and what happens where it cannot start (BE-13, BE-15)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from burstproof.cli.main import main
from burstproof.config import load_configuration
from burstproof.engine import ask_machine
from burstproof.engine.ask_machine import ask_cuda
from burstproof.engine.costs import cpu_threads, cpu_us, cuda_us
from burstproof.engine.machine import CudaDevice, CudaFacts, Machine, Obstacle, Usable, WgpuAdapter, WgpuFacts
from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.registry import BACKENDS, Backend, backend_names, create_sharded, engine_factory, load
from burstproof.engine.select import choose_backend, consider, start_engine
from burstproof.engine.sharded.partition import make_partition
from burstproof.errors import (
    BackendUnavailableError,
    ExitCode,
    InputError,
    NetworkError,
    OutOfMemoryError,
    UnmodelledError,
)
from burstproof.network.model import Network, NeuronTable, SynapseTable
from suites.support.parity.faults import NoSnooze

H100 = CudaDevice(0, "NVIDIA H100 80GB HBM3", (9, 0), 80 * 2**30)
WITH_GPU = Machine(8, CudaFacts(None, (H100,), (12, 8), (12, 9)))
NO_DRIVER = Machine(2, CudaFacts(Obstacle("no NVIDIA driver on this machine", "Install the NVIDIA driver")))
SOFTWARE = WgpuAdapter(0, "llvmpipe", "CPU", "Vulkan", 2**31 - 1, 2**27)
INTEGRATED = WgpuAdapter(1, "Radeon 780M", "IntegratedGPU", "Vulkan", 2**31, 2**31)
CONFIG = load_configuration()


def machine_with(*adapters: WgpuAdapter) -> Machine:
    """No CUDA, and these adapters of wgpu."""
    return replace(NO_DRIVER, wgpu=WgpuFacts(None, adapters))


def configured(**values: Any) -> Any:
    return load_configuration(options={f"compute.auto_selection.{k}": ("test", v) for k, v in values.items()})


@pytest.mark.requirement("BE-13")
@pytest.mark.parametrize(
    ("neurons", "rate", "expected", "reason"),
    [
        (500_000, 0.01, "cuda", "500000 contributions takes about 576 us on 8 cores, 29 on CUDA"),
        (1_000_000, 0.01, "cuda", "a GPU pays off"),
        (100_000, 0.01, "cuda", "a GPU pays off"),
        (10_000, 0.01, "cuda", "a GPU pays off: a burst of 10000 neurons with 10000 contributions"),
        (3000, 0.01, "cpu", "hardly pays off: a burst of 3000 neurons with 3000 contributions"),
        (55_363, 0.0, "cuda", "with 0 contributions takes about 158 us on 1 core"),
        (50_000, None, "cuda", "firing rate unknown, taken as 1 %"),
        (7, None, "cpu", "hardly pays off"),
    ],
)
def test_auto_follows_measured_costs(neurons: int, rate: float | None, expected: str, reason: str) -> None:
    """500 K neurons at 1 %, which a CPU takes 16 times as long for, run on the GPU; what takes 35 us does not."""
    choice = choose_backend("auto", neurons, rate, CONFIG, WITH_GPU)
    assert choice.backend == expected
    assert reason in choice.reason
    assert choice.fallback == ""


@pytest.mark.requirement("BE-13")
def test_auto_counts_synapses_and_cores() -> None:
    """Ten synapses each are a tenth of the contributions; threads are as many as there are cores and work for them."""
    few = choose_backend("auto", 5000, 0.01, CONFIG, WITH_GPU, synapses=50_000)
    assert (few.backend, "500 contributions" in few.reason) == ("cpu", True)
    for cores, said in ((8, "on 4 cores,"), (1, "on 1 core,")):
        choice = choose_backend("auto", 100_000, 0.01, CONFIG, replace(WITH_GPU, cpu_cores=cores), synapses=1_000_000)
        assert (choice.backend, said in choice.reason) == ("cuda", True)


@pytest.mark.requirement("BE-13")
@pytest.mark.parametrize(
    ("neurons", "events", "step_us", "cuda"),
    [
        (100_000, 100_000, 102, 19.7),
        (500_000, 500_000, 361, 37.2),
        (1_000_000, 1_000_000, 650, 37.0),
        (1_000_000, 10_000_000, 4454, 200.9),
    ],
)
def test_the_costs_are_those_of_the_record(neurons: int, events: int, step_us: float, cuda: float) -> None:
    """Within a factor of 1.6 of every row of ``h200-rev2`` that timed both, on 16 cores."""
    assert 1 / 1.6 < cpu_us(neurons, events, cpu_threads(neurons, events, 16)) / step_us < 1.6
    assert 1 / 1.6 < cuda_us(events) / cuda < 1.6


@pytest.mark.requirement("BE-13")
@pytest.mark.parametrize(("neurons", "burst_us"), [(10_000, 68.6), (20_000, 121.1), (55_363, 211.0), (204_867, 642.8)])
def test_a_thread_alone_takes_what_the_record_says(neurons: int, burst_us: float) -> None:
    """Within a factor of 1.6 of ``h200-acceptance``: uniform networks at 1 %, and genomes in which hardly any fires."""
    events = neurons if neurons < 50_000 else 0
    assert 1 / 1.6 < cpu_us(neurons, events, 1) / burst_us < 1.6


@pytest.mark.requirement("BE-13", "BE-16")
def test_wgpu_takes_the_thresholds_since_nothing_was_measured() -> None:
    found = machine_with(INTEGRATED)
    assert choose_backend("auto", 100_000, 0.01, CONFIG, found).backend == "cpu"
    assert choose_backend("auto", 100_000, 0.15, CONFIG, found).backend == "wgpu"
    both = replace(WITH_GPU, wgpu=WgpuFacts(None, (INTEGRATED,)))
    assert choose_backend("auto", 3000, None, CONFIG, both, synapses=60_000).backend == "cpu"


@pytest.mark.requirement("BE-13", "BE-14")
def test_auto_follows_the_configured_thresholds() -> None:
    assert choose_backend("auto", 1000, 0.5, configured(gpu_min_neurons=1000), WITH_GPU).backend == "cuda"
    assert choose_backend("auto", 60_000, 0.15, configured(gpu_min_firing_rate=0.5), WITH_GPU).backend == "cpu"
    assert choose_backend("auto", 60_000, 0.0, configured(gpu_min_firing_rate=0.0), WITH_GPU).backend == "cuda"
    assert choose_backend("auto", 500_000, 0.01, configured(gpu_min_neurons=50_000), WITH_GPU).backend == "cpu"


@pytest.mark.requirement("BE-13")
def test_auto_follows_the_hardware_and_says_what_is_missing() -> None:
    choice = choose_backend("auto", 1_000_000, None, CONFIG, NO_DRIVER)
    assert choice.backend == "cpu"
    assert "cuda is not available: no NVIDIA driver on this machine" in choice.reason
    assert "wgpu is not available" in choice.reason


@pytest.mark.requirement("BE-13")
def test_preferring_wgpu_passes_to_cuda_with_the_reason() -> None:
    choice = choose_backend("auto", 1_000_000, None, configured(prefer_cuda_over_wgpu=False), WITH_GPU)
    assert choice.backend == "cuda"
    assert "wgpu is not available" in choice.reason


@pytest.mark.requirement("BE-13")
@pytest.mark.parametrize("backend", ["cpu", "cuda", "reference"])
def test_what_is_asked_for_and_available_is_taken(backend: str) -> None:
    choice = choose_backend(backend, 10, 0.0, CONFIG, WITH_GPU)
    assert (choice.backend, choice.reason, choice.fallback) == (backend, "asked for", "")
    assert {item.backend: item.available for item in choice.considered} == {
        "cuda": True,
        "wgpu": False,
        "cpu": True,
        "reference": True,
    }


@pytest.mark.requirement("BE-13", "BE-16")
def test_wgpu_without_its_package_is_refused_with_the_cure() -> None:
    with pytest.raises(BackendUnavailableError, match="wgpu cannot start: not installed: wgpu") as caught:
        choose_backend("wgpu", 10, None, CONFIG, WITH_GPU)
    assert "'.[wgpu]'" in str(caught.value)


@pytest.mark.requirement("BE-13", "BE-16")
def test_wgpu_without_an_adapter_is_refused_with_the_cure() -> None:
    with pytest.raises(BackendUnavailableError, match="no Vulkan, Metal or DX12 adapter") as caught:
        choose_backend("wgpu", 10, None, CONFIG, machine_with())
    assert "mesa-vulkan-drivers" in str(caught.value)


@pytest.mark.requirement("BE-13", "BE-16")
def test_auto_takes_a_wgpu_device_but_no_software_adapter() -> None:
    found = choose_backend("auto", 1_000_000, None, CONFIG, machine_with(SOFTWARE, INTEGRATED))
    assert (found.backend, "Radeon 780M through Vulkan" in found.reason) == ("wgpu", True)
    passed = choose_backend("auto", 1_000_000, None, CONFIG, machine_with(SOFTWARE))
    assert passed.backend == "cpu"
    assert "a software adapter" in passed.reason
    assert choose_backend("wgpu", 10, None, CONFIG, machine_with(SOFTWARE)).backend == "wgpu"
    allowed = choose_backend("cuda", 10, None, CONFIG, machine_with(SOFTWARE), allow_fallback=True)
    assert allowed.backend == "cpu"


@pytest.mark.requirement("BE-13", "BE-14", "BE-16")
@pytest.mark.parametrize(("prefer_cuda", "expected"), [(True, "cuda"), (False, "wgpu")])
def test_the_preferred_kind_of_gpu_is_taken(prefer_cuda: bool, expected: str) -> None:
    both = replace(WITH_GPU, wgpu=WgpuFacts(None, (INTEGRATED,)))
    choice = choose_backend("auto", 1_000_000, None, configured(prefer_cuda_over_wgpu=prefer_cuda), both)
    assert choice.backend == expected


@pytest.mark.requirement("BE-13", "BE-16")
def test_auto_goes_on_where_wgpu_refuses_and_says_so() -> None:
    choice = choose_backend("auto", 1_000_000, None, CONFIG, machine_with(INTEGRATED))
    factory = failing_on({"wgpu"}, BackendUnavailableError("its float32 is not exact"))
    engine, after = start_engine(choice, one_neuron(), EngineOptions(), factory=factory)
    engine.close()
    assert (choice.backend, after.backend) == ("wgpu", "cpu")
    assert after.fallback == "wgpu could not start: its float32 is not exact"
    asked = choose_backend("wgpu", 10, None, CONFIG, machine_with(INTEGRATED))
    with pytest.raises(BackendUnavailableError, match="not exact"):
        start_engine(asked, one_neuron(), EngineOptions(), factory=factory)


@pytest.mark.requirement("BE-13", "BE-16")
def test_auto_goes_on_where_a_backend_does_not_model_the_features() -> None:
    choice = choose_backend("auto", 1_000_000, None, CONFIG, machine_with(INTEGRATED))
    factory = failing_on({"wgpu"}, UnmodelledError("features that this engine does not model"))
    engine, after = start_engine(choice, one_neuron(), EngineOptions(), factory=factory)
    engine.close()
    assert (after.backend, after.fallback) == (
        "cpu",
        "wgpu could not start: features that this engine does not model",
    )
    asked = choose_backend("wgpu", 10, None, CONFIG, machine_with(INTEGRATED))
    with pytest.raises(UnmodelledError):
        start_engine(asked, one_neuron(), EngineOptions(), factory=factory)


@pytest.mark.requirement("BE-13")
@pytest.mark.parametrize(("requested", "rate"), [("gpu", None), ("auto", 1.5), ("auto", float("nan"))])
def test_nonsense_is_refused(requested: str, rate: float | None) -> None:
    with pytest.raises(InputError):
        choose_backend(requested, 10, rate, CONFIG, WITH_GPU)


@pytest.mark.requirement("BE-15")
def test_without_fallback_the_error_says_why_and_what_to_do() -> None:
    with pytest.raises(BackendUnavailableError) as caught:
        choose_backend("cuda", 10, None, CONFIG, NO_DRIVER)
    message = str(caught.value)
    assert "no NVIDIA driver on this machine" in message
    assert "Install the NVIDIA driver" in message
    assert "--allow-fallback" in message
    assert caught.value.exit_code is ExitCode.INVALID_ENVIRONMENT


@pytest.mark.requirement("BE-15")
@pytest.mark.parametrize(
    ("requested", "machine", "expected"),
    [("cuda", NO_DRIVER, "cpu"), ("wgpu", NO_DRIVER, "cpu"), ("wgpu", WITH_GPU, "cpu")],
)
def test_with_fallback_the_choice_says_what_could_not_start(requested: str, machine: Machine, expected: str) -> None:
    choice = choose_backend(requested, 10, None, CONFIG, machine, allow_fallback=True)
    assert (choice.requested, choice.backend) == (requested, expected)
    assert f"{requested} could not start: " in choice.fallback
    assert choice.reason == f"fallback from {requested}"


@pytest.mark.requirement("BE-13")
@pytest.mark.parametrize(
    ("facts", "device", "why", "cure"),
    [
        (CudaFacts(None, (), (12, 8), (12, 9)), 0, "no CUDA device", "CUDA_VISIBLE_DEVICES"),
        (WITH_GPU.cuda, 1, "no CUDA device 1", "one of: 0"),
        (CudaFacts(None, (CudaDevice(0, "GTX 1080", (6, 1)),), (12, 8), (12, 9)), 0, "6.1", "another device"),
        (CudaFacts(None, (CudaDevice(0, "V100", (7, 0)),), (13, 0), (13, 1)), 0, "7.0", "'.[cuda12]'"),
        (CudaFacts(None, (H100,), (12, 8), (13, 1)), 0, "takes CUDA 12.8 at most", "'.[cuda12]'"),
        (CudaFacts(None, (H100,), (11, 4), (12, 9)), 0, "takes CUDA 11.4 at most", "Update the driver"),
    ],
)
def test_a_device_that_cannot_run_is_named_with_the_cure(facts: CudaFacts, device: int, why: str, cure: str) -> None:
    obstacle = facts.found(device)
    assert isinstance(obstacle, Obstacle)
    assert why in obstacle.why
    assert cure in obstacle.cure


@pytest.mark.requirement("BE-13")
@pytest.mark.parametrize(
    ("device", "driver", "tools"),
    [(H100, (12, 0), (12, 9)), (H100, (13, 0), (12, 9)), (CudaDevice(0, "V100", (7, 0)), (12, 8), (12, 9))],
)
def test_a_device_that_can_run_has_no_obstacle(
    device: CudaDevice, driver: tuple[int, int], tools: tuple[int, int]
) -> None:
    assert isinstance(CudaFacts(None, (device,), driver, tools).found(0), Usable)
    assert consider(Machine(1, CudaFacts(None, (device,), driver, tools)))[0].available


@pytest.mark.requirement("BE-13")
@pytest.mark.parametrize("missing", ["numba_cuda", "cuda.core", "cupy"])
def test_a_missing_package_is_named_with_the_extra_to_install(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(ask_machine, "_importable", lambda name: name != missing)
    obstacle = ask_cuda().found(0)
    assert isinstance(obstacle, Obstacle)
    assert obstacle.why == f"not installed: {missing}"
    assert "'.[cuda12]'" in obstacle.cure


class DynamicLibNotFoundError(RuntimeError):
    """Named like the error that cuda.core raises without a driver."""


def fake_cuda_core(monkeypatch: pytest.MonkeyPatch, devices: Callable[[], list[Any]]) -> None:
    """Put a cuda.core and a driver in place whose devices are ``devices()``."""
    driver = SimpleNamespace(
        cuDeviceGet=lambda number: (0, number),
        cuDeviceTotalMem=lambda _handle: (0, 2**30),
        cuDriverGetVersion=lambda: (0, 12080),
    )
    monkeypatch.setattr(ask_machine, "_importable", lambda _name: True)
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.core", SimpleNamespace(Device=SimpleNamespace(get_all_devices=devices)))
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=driver))


@pytest.mark.requirement("BE-13")
def test_the_driver_is_asked_through_cuda_core(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cuda_core(monkeypatch, lambda: [SimpleNamespace(name="T4", compute_capability=(7, 5))])
    facts = ask_cuda()
    assert facts.obstacle is None
    assert facts.devices == (CudaDevice(0, "T4", (7, 5), 2**30),)
    assert facts.driver_version == (12, 8)


@pytest.mark.requirement("BE-13")
@pytest.mark.parametrize(
    ("error", "why"),
    [
        (DynamicLibNotFoundError("cuda"), "no NVIDIA driver on this machine"),
        (RuntimeError("CUDA_ERROR_NO_DEVICE: no CUDA-capable device"), "the driver shows no CUDA device"),
        (
            RuntimeError("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
            "the CUDA driver failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        ),
    ],
)
def test_a_driver_that_fails_is_a_reason_and_no_crash(
    monkeypatch: pytest.MonkeyPatch, error: Exception, why: str
) -> None:
    def fail() -> list[Any]:
        raise error

    fake_cuda_core(monkeypatch, fail)
    obstacle = ask_cuda().found(0)
    assert isinstance(obstacle, Obstacle)
    assert obstacle.why == why
    assert obstacle.cure


def one_neuron() -> Network:
    return Network(NeuronTable.build(1), SynapseTable.build([], []))


def failing_on(broken: set[str], error: Exception) -> Callable[[str], Callable[[Network, EngineOptions], Engine]]:
    """A factory whose engines of the ``broken`` backends raise ``error``; the others are references."""

    def factory(backend: str) -> Callable[[Network, EngineOptions], Engine]:
        def refuse(network: Network, options: EngineOptions) -> Engine:
            raise error

        return refuse if backend in broken else engine_factory("reference")

    return factory


@pytest.mark.requirement("BE-15")
def test_an_engine_that_cannot_start_falls_back_only_when_allowed() -> None:
    choice = choose_backend("auto", 60_000, None, CONFIG, WITH_GPU)
    factory = failing_on({"cuda"}, OutOfMemoryError("the network does not fit"))
    with pytest.raises(OutOfMemoryError):
        start_engine(choice, one_neuron(), EngineOptions(), factory=factory)
    engine, after = start_engine(choice, one_neuron(), EngineOptions(), allow_fallback=True, factory=factory)
    engine.close()
    assert (choice.backend, after.backend) == ("cuda", "cpu")
    assert after.fallback == "cuda could not start: the network does not fit"


@pytest.mark.requirement("BE-15")
def test_falling_back_twice_keeps_both_reasons_and_ends_in_an_error() -> None:
    choice = choose_backend("cuda", 10, None, CONFIG, WITH_GPU)
    error = OutOfMemoryError("too large")
    factory = failing_on({"cuda", "cpu"}, error)
    engine, after = start_engine(choice, one_neuron(), EngineOptions(), allow_fallback=True, factory=factory)
    engine.close()
    assert after.backend == "reference"
    assert after.fallback == "cuda could not start: too large; cpu could not start: too large"
    nothing_works = failing_on({"cuda", "cpu", "reference"}, error)
    with pytest.raises(BackendUnavailableError, match="no backend is left"):
        start_engine(choice, one_neuron(), EngineOptions(), allow_fallback=True, factory=nothing_works)


@pytest.mark.requirement("BE-15")
def test_a_bad_network_is_no_reason_to_fall_back() -> None:
    choice = choose_backend("cuda", 10, None, CONFIG, WITH_GPU)
    factory = failing_on({"cuda"}, NetworkError("a delay of 0"))
    with pytest.raises(NetworkError):
        start_engine(choice, one_neuron(), EngineOptions(), allow_fallback=True, factory=factory)


@pytest.mark.requirement("BE-11", "BE-13")
@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: EngineOptions(precision="fp16"), r"^precision: not a Precision .*Precision\.FP16"),
        (lambda: EngineOptions(profile="feagi-beta"), r"^profile: not a Profile .*engine\.profile"),
        (lambda: CudaOptions(synapse_memory="host"), r"^synapse_memory: not a SynapseMemory .*\.HOST"),
    ],
)
def test_a_name_is_not_taken_for_an_option(build: Callable[[], object], message: str) -> None:
    """A string would be compared with members of an enumeration and silently mean none of them."""
    with pytest.raises(InputError, match=message):
        build()


@pytest.mark.requirement("BE-13")
def test_a_backend_is_its_row_in_the_registry(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Listed, named in errors and the configuration, chosen, created and shown, by nothing but the row."""
    fake = Backend(
        "fake",
        "a GPU made of paper",
        "suites.support.parity.faults:NoSnooze",
        lambda machine, _: Usable(f"paper beside {machine.cpu_cores} cores"),
        gpu=True,
    )
    monkeypatch.setitem(BACKENDS, "fake", fake)
    monkeypatch.setattr("burstproof.cli.info.this_machine", lambda: NO_DRIVER)
    assert backend_names() == ("auto", "cuda", "wgpu", "cpu", "reference", "fake")
    with pytest.raises(InputError, match="reference, fake"):
        choose_backend("faek", 10, None, CONFIG, NO_DRIVER)
    assert load_configuration(options={"compute.backend": ("test", "fake")}).compute.backend == "fake"
    choice = choose_backend("auto", 1_000_000, None, CONFIG, NO_DRIVER)
    assert (choice.backend, "paper beside 2 cores" in choice.reason) == ("fake", True)
    with start_engine(choice, one_neuron(), EngineOptions())[0] as engine:
        assert isinstance(engine, NoSnooze)
        assert engine.step().number == 1
    assert main(["info", "--backend", "fake"]) == 0
    assert "fake       yes        paper beside 2 cores" in capsys.readouterr().out
    with pytest.raises(InputError, match=r"no sharded engine .*cuda, cpu"):
        create_sharded(one_neuron(), EngineOptions(), make_partition(one_neuron(), 1, "contiguous"), "fake")


@pytest.mark.requirement("BE-13")
@pytest.mark.parametrize(
    "home", [home for row in BACKENDS.values() for home in (row.engine, row.shards, row.plan) if home]
)
def test_a_home_in_the_registry_leads_somewhere(home: str) -> None:
    assert callable(load(home))
