"""Subnormal potentials are exact on every backend, on WGPU also where the adapter flushes them (BE-4, BE-16)."""

from __future__ import annotations

import re
from importlib import resources

import numpy as np
import pytest

from burstproof.engine.ask_machine import ask_wgpu
from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.wgpu import device as device_module
from burstproof.engine.wgpu.adapters import chosen_adapter
from burstproof.engine.wgpu.device import Device
from burstproof.engine.wgpu.engine import WgpuEngine
from burstproof.engine.wgpu.probe import expected_answers, make_probe, wrong_answers
from burstproof.engine.wgpu.probe_cases import small_cases
from burstproof.engine.wgpu.shaders import probe_shader
from burstproof.errors import BackendUnavailableError
from burstproof.network.features import AreaFeatures, Homeostat
from burstproof.network.model import Network
from suites.support.parity import backends
from suites.support.parity.builder import Case, network, run_case, stimulate, synapse
from suites.support.parity.cases import FEATURE_CASES
from suites.support.parity.cases.dynamics import dynamics_cases
from suites.support.parity.cases.feature_parameters import featured
from suites.support.parity.cases.subnormal import subnormal_cases
from suites.support.parity.cases.sums import sum_cases
from suites.support.parity.flushing import FLUSHINGS, Flushing
from suites.support.parity.subnormal import run_subnormal, subnormal_problems

pytestmark = pytest.mark.requirement("BE-4", "ST-5")

CASES = (*dynamics_cases(), *sum_cases(), *subnormal_cases())
RANDOM = 100_000
_SMALLEST_NORMAL = np.float32(2.0**-126)


@pytest.fixture(scope="module", params=FLUSHINGS, ids=lambda f: f.name)
def flushing(request: pytest.FixtureRequest) -> Device:
    """A device that flushes and has passed the probe."""
    return Device(chosen_adapter(ask_wgpu(), None), request.param.operations())


@pytest.mark.parametrize("backend", backends.ENGINES_AND_WGPU)
def test_a_network_of_subnormals_agrees(backend: backends.Backend) -> None:
    assert subnormal_problems(backend.create) == []


@pytest.mark.not_proof
def test_that_network_fires_from_subnormals_and_keeps_some() -> None:
    recording, state = run_subnormal(ReferenceEngine.create)
    for values in (recording.fired_potentials, state.membrane_potentials):
        assert np.count_nonzero((values != 0) & (np.abs(values) < _SMALLEST_NORMAL)) > 30


@backends.NEEDS_ADAPTER
@pytest.mark.requirement("BE-16")
def test_100_000_random_cases_are_exact_where_the_adapter_flushes(flushing: Device) -> None:
    cases = small_cases(RANDOM, 5)
    expected = expected_answers(cases)
    products = expected[:, 2] & 0x7FFFFFFF
    assert np.count_nonzero((products > 0) & (products < 0x800000)) > RANDOM // 4
    assert np.count_nonzero(products > 0x800000) > RANDOM // 4
    v, keep = (np.ascontiguousarray(cases[:, c]).view(np.float32).astype(np.float64) for c in (0, 3))
    assert np.count_nonzero(np.abs(v * keep * 2.0**150) % 2 == 1) > RANDOM // 100
    assert wrong_answers(flushing.answers(cases), expected).sum(axis=0).tolist() == [0] * 10


@backends.NEEDS_ADAPTER
@pytest.mark.requirement("BE-16")
def test_100_000_random_sums_are_exact_where_the_adapter_flushes(flushing: Device) -> None:
    """Of any two numbers: near each other, far apart, subnormal, infinite, halfway between two numbers."""
    rng = np.random.default_rng(6)
    a = rng.integers(0, 1 << 32, RANDOM, np.uint64).astype(np.uint32)
    near = a + rng.integers(-3, 4, RANDOM).astype(np.uint32) - (rng.integers(0, 30, RANDOM) << 23).astype(np.uint32)
    b = np.where(rng.random(RANDOM) < 0.8, near, rng.permutation(a))
    b ^= (rng.integers(0, 2, RANDOM) << 31).astype(np.uint32)
    b[::3] &= np.uint32(0xFFFF0000)
    for small in (a, b):
        small[::4] &= np.uint32(0x80FFFFFF)
    cases = small_cases(RANDOM, 5)
    cases[:, 0], cases[:, 3], cases[:, 4] = a, np.float32(1).view(np.uint32), b
    expected = expected_answers(cases)[:, 8]
    assert np.count_nonzero((expected & 0x7FFFFFFF) < 0x800000) > RANDOM // 20
    assert wrong_answers(flushing.answers(cases)[:, 8], expected).sum() == 0


@backends.NEEDS_ADAPTER
@pytest.mark.requirement("BE-16")
def test_averages_of_homeostats_fade_through_the_subnormals(flushing: Device) -> None:
    """Each burst leaves a seventh of the average: it is subnormal from burst 45 on, and 0 after burst 55."""
    areas = {7: AreaFeatures(Homeostat(target=0.0, tau=0.5, gain=1e-30, leak_min=0.0, leak_max=1.0))}
    fading = featured(network(2, thresholds=9, leak_coefficients=0.0), areas)
    engine, reference = WgpuEngine(fading, EngineOptions(), flushing), ReferenceEngine.create(fading)
    subnormal = 0
    for _ in range(60):
        for each in (engine, reference):
            each.run(1, {1: stimulate({1: 1}, 0)})
        state = reference.state()
        assert state.differences(engine.state()) == ()
        assert state.features is not None
        subnormal += int(0 < state.features.firing_rates[0] < _SMALLEST_NORMAL)
    assert subnormal > 5
    engine.close()


@pytest.mark.thorough("seconds on a software adapter")
@backends.NEEDS_ADAPTER
@pytest.mark.requirement("BE-16")
def test_bursts_are_exact_where_the_adapter_flushes(flushing: Device) -> None:
    def create(network: Network, options: EngineOptions) -> WgpuEngine:
        return WgpuEngine(network, options, flushing)

    featured_cases = [case for case in FEATURE_CASES if not backends.WGPU.refuses(case.network)]
    problems = {case.name: run_case(case, create) for case in (*CASES, *featured_cases)}
    assert {name: found for name, found in problems.items() if found} == {}
    assert subnormal_problems(create) == []


def one_subnormal_contribution() -> Case:
    """Without power and stimulus nothing keeps the scale from 2^149."""
    least = network(2, [synapse(0, 1, weight=2.0**-149)], thresholds=[1, 2.0**-149]).replace(power_amount=0.0)
    options = EngineOptions(max_stimulus=0.0)
    return Case("", least, [[0], {1: 2.0**-149}], plan={1: stimulate({}, 0)}, options=options)


@pytest.mark.parametrize("backend", [b for b in backends.ALL if b.id != "wgpu"])
def test_a_subnormal_contribution_is_exact(backend: backends.Backend) -> None:
    assert run_case(one_subnormal_contribution(), backend.create) == []


@backends.NEEDS_ADAPTER
@pytest.mark.requirement("BE-16")
def test_sums_finer_than_the_engine_holds_are_refused(flushing: Device) -> None:
    case = one_subnormal_contribution()
    with pytest.raises(BackendUnavailableError, match="no sums as fine"):
        WgpuEngine(case.network, case.options, flushing)


@backends.NEEDS_ADAPTER
@pytest.mark.requirement("BE-16")
@pytest.mark.parametrize("flushes", FLUSHINGS, ids=lambda f: f.name)
def test_the_probe_refuses_rules_that_leave_products_to_such_an_adapter(
    flushes: Flushing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plain(operations: str) -> str:
        return probe_shader(operations).replace("return product(", "return times(")

    monkeypatch.setattr(device_module, "probe_shader", plain)
    with pytest.raises(BackendUnavailableError, match="not exact: a potential times the leak factor"):
        Device(chosen_adapter(ask_wgpu(), None), flushes.operations())


@pytest.mark.not_proof
def test_the_probe_has_subnormals_in_every_place() -> None:
    """Potentials, factors, thresholds, excitabilities and results; and a draw of 0 that only a subnormal exceeds."""
    probe = make_probe()
    places = [probe.cases[:, 0], probe.cases[:, 3], probe.cases[:, 4], probe.cases[:, 5], *probe.expected[:, :3].T]
    for words in places:
        subnormal = ((words & 0x7FFFFFFF) > 0) & ((words & 0x7FFFFFFF) < 0x800000)
        assert np.count_nonzero(subnormal & (words < 0x80000000)) > 20
        assert np.count_nonzero(subnormal) > np.count_nonzero(subnormal & (words < 0x80000000))
    of_zero = probe.expected[probe.expected[:, 5] == 0]
    assert set(of_zero[:, 6].tolist()) == {0, 1}


@pytest.mark.requirement("BE-16")
@pytest.mark.parametrize("name", ["small", "rules", "features", "burst", "probe"])
def test_only_the_operations_handle_floats(name: str) -> None:
    """What flushing is emulated in is all that there is: no other shader has a float type or a float literal."""
    text = resources.files("burstproof.engine.wgpu").joinpath(f"{name}.wgsl").read_text("utf-8")
    code = re.sub(r"//.*", "", text)
    assert re.findall(r"\bf(?:16|32)\b|\d\.\d|\d[fh]\b", code) == []
