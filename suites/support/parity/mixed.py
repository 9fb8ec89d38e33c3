"""Random networks in which everything is mixed, run side by side with the reference and compared bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np

from burstproof.engine.options import EngineOptions
from burstproof.engine.precision import Precision
from burstproof.engine.profile import FEAGI_2_6, FEAGI_BETA, Profile
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Burst, EngineState, Recording, Stimulus, StimulusPlan
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.schema import NO_LIMIT
from suites.support.parity.builder import CreateEngine

HUGE_WEIGHT = 1e13
"""A weight whose contribution no fixed-point scale of these networks holds."""


@dataclass(frozen=True)
class Mix:
    """What goes into a mixed network; the name is the id of its case.

    ``plain`` neurons draw nothing and may fire as often as they can.
    """

    name: str
    seed: int
    neurons: int = 150
    synapses: int = 1500
    bursts: int = 40
    profile: Profile = FEAGI_2_6
    integers: bool = False
    flags: bool = True
    mp_driven: bool = False
    largest_delay: int = 1
    windows: tuple[int, ...] = ()
    emulate_batch_path: bool = False
    invalid: bool = True
    inhibition: bool = True
    clamps: bool = False
    negative: bool = False
    full_counts: bool = False
    plain: bool = False
    precision: Precision = Precision.FP32


MIXES = (
    Mix("integers", 1, integers=True, flags=False),
    Mix("integers, all excitatory", 2, integers=True, flags=False, inhibition=False, invalid=False),
    Mix("fractions", 3),
    Mix("fractions, delays to 7", 4, largest_delay=7),
    Mix("mp-driven", 5, mp_driven=True),
    Mix("plastic, window 1", 6, windows=(1,)),
    Mix("plastic, windows 3 and 2, delays to 4, mp-driven", 7, windows=(3, 2), largest_delay=4, mp_driven=True),
    Mix("plastic integers, window 2", 8, windows=(2,), integers=True, flags=False),
    Mix("delays to 255", 9, largest_delay=255, bursts=280, neurons=60, synapses=500),
    Mix("beta", 10, profile=FEAGI_BETA, integers=True),
    Mix(
        "beta, mp-driven, plastic, windows 1 and 3",
        11,
        profile=FEAGI_BETA,
        integers=True,
        mp_driven=True,
        windows=(1, 3),
    ),
    Mix("batch path", 12, neurons=12000, synapses=40000, bursts=8, emulate_batch_path=True),
    Mix(
        "beta batch path",
        13,
        neurons=12000,
        synapses=40000,
        bursts=8,
        integers=True,
        profile=FEAGI_BETA,
        emulate_batch_path=True,
    ),
    Mix("no synapses", 14, synapses=0),
    Mix("clamped contributions", 15, mp_driven=True, clamps=True),
    Mix("negative weights, counts near 65535", 16, negative=True, full_counts=True),
    Mix("negative integers, plastic, windows 2 and 1", 17, integers=True, flags=False, negative=True, windows=(2, 1)),
    Mix("neither draws nor limits", 18, plain=True),
    Mix("neither draws nor limits, delays to 3", 19, plain=True, largest_delay=3),
)


def mixed_network(mix: Mix) -> Network:
    """The network of ``mix``; the same mix gives the same network."""
    rng = np.random.default_rng(mix.seed)
    count, links = mix.neurons, mix.synapses
    areas = rng.integers(7, 11, count)
    areas[0] = 1
    scale = 1.0 if mix.integers else 0.37
    neurons = NeuronTable.build(
        count,
        membrane_potentials=rng.integers(-3, 6, count) * np.float32(scale),
        thresholds=rng.integers(-1, 12, count) * np.float32(scale),
        threshold_limits=np.where(rng.random(count) < 0.3, rng.integers(8, 40, count), NO_LIMIT),
        leak_coefficients=rng.choice([0, 0, 0.1, 0.5, 1, 1.25, -0.25], count),
        resting_potentials=rng.integers(-5, 5, count),
        refractory_periods=rng.choice([0, 0, 1, 2, 5], count),
        refractory_countdowns=rng.choice([0, 0, 0, 1, 3], count),
        excitabilities=rng.choice([1, 1, 0.999, 0.7, 0.2, 0, -1, 100], count),
        cortical_areas=areas,
        coordinates=rng.integers(0, 9, (count, 3)),
        valid_mask=(rng.random(count) > 0.05) | ~np.bool_(mix.invalid),
        consecutive_fire_limits=rng.choice([0, 65535, 1, 2, 3], count),
        consecutive_fire_counts=rng.integers(0, 3, count),
        snooze_periods=rng.choice([0, 0, 3, 70], count),
        mp_charge_accumulation=rng.random(count) < 0.6,
    )
    if mix.plain:
        certain, unlimited = np.ones(count, np.float32), np.zeros(count, np.uint16)
        neurons = replace(neurons, excitabilities=certain, consecutive_fire_limits=unlimited)
    least = -2 if mix.negative else 0
    weights = least + (rng.integers(0, 6, links) if mix.integers else rng.random(links) * 3)
    if mix.clamps:
        weights[::50] = HUGE_WEIGHT
    if mix.full_counts:
        counts = np.where(rng.random(count) < 0.5, neurons.consecutive_fire_counts, rng.integers(65530, 65536, count))
        neurons = replace(neurons, consecutive_fire_counts=counts.astype(np.uint16))
    synapses = SynapseTable.build(
        rng.integers(0, count, links),
        rng.integers(0, count, links),
        weights=weights + (0 if mix.inhibition else 1),
        postsynaptic_potentials=rng.integers(0 if mix.inhibition else 1, 4, links)
        * np.float32(1 if mix.integers else 0.71),
        types=(rng.random(links) < (0.3 if mix.inhibition else 0)) * rng.choice([1, 2], links),
        delay_bursts=rng.integers(1, mix.largest_delay + 1, links),
        valid_mask=(rng.random(links) > 0.05) | ~np.bool_(mix.invalid),
    )
    network = Network(neurons, synapses, areas=_areas(mix), burst_count=5, power_amount=2.0)
    return network.replace(plastic_mappings=tuple(_mappings(mix, network, rng)))


def _areas(mix: Mix) -> tuple[Area, ...]:
    if not mix.flags:
        return tuple(Area(i, f"area{i}") for i in (1, 7, 8, 9, 10))
    return (
        Area(1, "power", psp_uniform_distribution=True, mp_driven_psp=False),
        Area(7, "uniform", psp_uniform_distribution=True, mp_driven_psp=False),
        Area(8, "divided", psp_uniform_distribution=False, mp_driven_psp=False),
        Area(9, "driven", psp_uniform_distribution=True, mp_driven_psp=mix.mp_driven),
        Area(10, "divided and driven", psp_uniform_distribution=False, mp_driven_psp=mix.mp_driven),
    )


def _mappings(mix: Mix, network: Network, rng: np.random.Generator) -> Iterator[PlasticMapping]:
    """A rule for each window; which pairs of areas it governs is drawn, and that it made half of their synapses.

    Of the pairs that a later rule governs it made some synapses too.
    """
    if not mix.windows:
        return
    areas, synapses = network.neurons.cortical_areas, network.synapses
    rule_of_pair = rng.integers(-1, len(mix.windows), (areas.max() + 1,) * 2)
    rule = rule_of_pair[areas[synapses.source_neurons], areas[synapses.target_neurons]]
    drawn = rng.random(mix.synapses)
    for number, window in enumerate(mix.windows):
        made = ((rule == number) & (drawn < 0.5)) | ((rule > number) & (drawn > 0.8))
        constant = 1.0 if mix.integers else 1.3  # 0.3 would be truncated to 0
        yield PlasticMapping(np.flatnonzero(made), window, constant, 2.0, 1.0)


def mixed_options(mix: Mix) -> EngineOptions:
    """The options of ``mix``."""
    return EngineOptions(
        profile=mix.profile,
        emulate_batch_path=mix.emulate_batch_path,
        max_stimulus=64.0,
        fractional_stimulus=not mix.integers,
        precision=mix.precision,
    )


def mixed_plan(mix: Mix, network: Network) -> StimulusPlan:
    """Amounts (negative and 0 too) for some neurons and forced firings, in most bursts."""
    rng = np.random.default_rng(mix.seed + 1000)
    valid = np.flatnonzero(network.neurons.valid_mask)
    plan: dict[int, Stimulus] = {}
    for burst in range(network.burst_count + 1, network.burst_count + mix.bursts + 1):
        if rng.random() < 0.2:
            continue
        # the batch path needs 10 000 candidates in a burst
        chosen = valid if mix.emulate_batch_path and burst % 2 else rng.choice(valid, len(valid) // 4)
        amounts = rng.integers(-2 if mix.inhibition else 1, 8, len(chosen)) * np.float32(1 if mix.integers else 0.9)
        forced = rng.choice(valid, rng.integers(0, 6))
        plan[burst] = Stimulus(chosen.astype(np.uint32), amounts.astype(np.float32), forced.astype(np.uint32))
    return plan


@cache
def _expected(mix: Mix) -> tuple[Network, FixedPoint, EngineState, tuple[tuple[Burst, EngineState], ...]]:
    """The network of ``mix``, and what the reference makes of it: scale, state at the start, bursts and states.

    Kept for each mix: a test that patches the reference needs a mix of its own.
    """
    network = mixed_network(mix)
    reference, plan = ReferenceEngine.create(network, mixed_options(mix)), mixed_plan(mix, network)
    start = reference.state()
    numbers = range(network.burst_count + 1, network.burst_count + mix.bursts + 1)
    done = tuple((reference.step(plan.get(number, Stimulus())), reference.state()) for number in numbers)
    return network, reference.fixed_point, start, done


def compare_mix(mix: Mix, create: CreateEngine) -> list[str]:
    """Where an engine and the reference part in the run of ``mix``: the first burst and the fields that differ."""
    network, fixed_point, start, done = _expected(mix)
    plan = mixed_plan(mix, network)
    engine = create(network, mixed_options(mix))
    try:
        if engine.fixed_point != fixed_point:
            return [f"scale {engine.fixed_point}, expected {fixed_point}"]
        found = start.differences(engine.state())
        if found:
            return [f"at the start: {', '.join(found)}"]
        for expected, state in done:
            got = engine.step(plan.get(expected.number, Stimulus()))
            differs = [
                name
                for name in ("number", "fired_ids", "fired_potentials", "candidates")
                if np.asarray(getattr(expected, name)).tobytes() != np.asarray(getattr(got, name)).tobytes()
            ]
            differs += state.differences(engine.state())
            if differs:
                return [f"burst {expected.number}: {', '.join(differs)}"]
        return []
    finally:
        engine.close()


def compare_run(mix: Mix, create: CreateEngine) -> list[str]:
    """What differs in a run in one go, from a state taken half-way from the reference, and in the state after it."""
    network, options = mixed_network(mix), mixed_options(mix)
    plan, half = mixed_plan(mix, network), mix.bursts // 2
    reference = ReferenceEngine.create(network, options)
    reference.run(half, plan)
    engine = create(network, options)
    try:
        engine.restore(reference.state())
        expected, got = reference.run(mix.bursts - half, plan), engine.run(mix.bursts - half, plan)
        names = [item.name for item in fields(Recording)]
        found = [name for name in names if getattr(expected, name).tobytes() != getattr(got, name).tobytes()]
        return [*found, *reference.state().differences(engine.state())]
    finally:
        engine.close()
