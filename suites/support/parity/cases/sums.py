"""Cases for negative contributions, exact sums, clamps and NaN (SEMANTICS 2 and 7); expectations worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Stimulus
from suites.support.parity.builder import Case, flags, network, stimulate, synapse

MP_DRIVEN = flags(9, uniform=True, mp_driven=True)


def sum_cases() -> Iterator[Case]:
    """All cases of this module."""
    yield from _negative()
    yield from _fan_outs()
    yield from _rounded()
    yield from _wide()
    yield from _converted()
    yield from _outside()
    yield from _stimulus()


def _negative() -> Iterator[Case]:
    """Contributions of -6 or +6 in all spellings onto v = 8: neuron 1 accumulates, neuron 2 does not."""
    table = (
        ("a negative weight", {"weight": -2, "psp": 3}, -1),
        ("a negative psp", {"weight": 2, "psp": -3}, -1),
        ("a negative weight and a negative psp", {"weight": -2, "psp": -3}, 1),
        ("an inhibitory synapse of negative weight", {"weight": -2, "psp": 3, "type": 1}, 1),
        ("an inhibitory synapse of negative psp", {"weight": 2, "psp": -3, "type": 1}, 1),
        ("an inhibitory synapse of negative weight and psp", {"weight": -2, "psp": -3, "type": 1}, -1),
    )
    for name, values, sign in table:
        for area, amount in (((), 6.0), ((flags(uniform=False),), 3.0)):
            signed = sign * amount
            yield Case(
                f"{name}{', divided' if area else ''}",
                network(
                    3,
                    [synapse(0, 1, **values), synapse(0, 2, **values)],
                    thresholds=99,
                    membrane_potentials=[0, 8, 8],
                    leak_coefficients=0.5,
                    mp_charge_accumulation=[True, True, False],
                    areas=area,
                ),
                plan={1: stimulate({}, 0)},
                fired=[[0], []],
                states={2: {"membrane_potentials": {1: (8 + max(signed, 0)) / 2, 2: (8 + signed) / 2}}},
            )
    yield Case(
        "a negative weight cancels a positive one, and their target is a candidate",
        network(
            3,
            [synapse(0, 2, weight=2.5), synapse(1, 2, weight=-2.5)],
            thresholds=99,
            membrane_potentials=[0, 0, 8],
            leak_coefficients=0.5,
        ),
        plan={1: stimulate({}, 0, 1)},
        fired=[[0, 1], []],
        states={2: {"membrane_potentials": {2: 4.0}}},
    )


def _fan_outs() -> Iterator[Case]:
    """Sources that divide 2.0 among n targets, which receive n such parts: n x float32(2 / n), rounded once."""
    for fan_out in (3, 5, 6, 7, 9, 10, 11):
        part = np.float32(2.0) / np.float32(fan_out)
        whole = float(np.float32(float(part) * fan_out))  # 24 + 4 digits: the float64 product is exact
        sources, targets = range(fan_out), range(fan_out, 2 * fan_out)
        every_pair = [synapse(s, t, psp=2.0) for s in sources for t in targets]
        for beside in (False, True):
            areas = (flags(uniform=False), *([MP_DRIVEN] if beside else []))
            extra = [synapse(2 * fan_out, 2 * fan_out)] if beside else []
            yield Case(
                f"{fan_out} parts of 2.0 divided by {fan_out} add up{' beside an mp-driven area' if beside else ''}",
                network(
                    2 * fan_out + 1,
                    every_pair + extra,
                    thresholds=[1] * fan_out + [whole] * fan_out + [1],
                    cortical_areas=[7] * (2 * fan_out) + [9],
                    areas=areas,
                ),
                plan={1: stimulate({}, *sources)},
                fired=[list(sources), dict.fromkeys(targets, whole), []],
            )


def _rounded() -> Iterator[Case]:
    """Thirds beside an mp-driven area; a declared stimulus of 2^29 leaves them no more than 20 binary digits."""
    third, coarse = np.float32(1) / np.float32(3), 349525 / 2**20
    for name, options, parts in (
        ("36 binary digits hold", EngineOptions(), float(third)),
        ("20 binary digits round down", EngineOptions(max_stimulus=2.0**29), coarse),
    ):
        total = float(np.float32(3 * parts))
        yield Case(
            f"beside an mp-driven area {name} three thirds",
            network(
                7,
                [synapse(s, t) for s in (0, 1, 2) for t in (3, 4, 5)] + [synapse(6, 6)],
                thresholds=1,
                cortical_areas=[7] * 6 + [9],
                areas=(flags(uniform=False), MP_DRIVEN),
            ),
            plan={1: stimulate({}, 0, 1, 2)},
            fired=[[0, 1, 2], {3: total, 4: total, 5: total} if total >= 1 else []],
            states={2: {"membrane_potentials": {3: 0.0 if total >= 1 else total}}},
            options=options,
        )


def _wide() -> Iterator[Case]:
    table: tuple[tuple[str, Sequence[float], float], ...] = (
        ("units beside 2^24 are not lost one by one", (2.0**24, 1, 1), 2.0**24 + 2),
        ("a sum of integers above 2^31 is exact", (2.0**31, 128, 128), 2.0**31 + 256),
        ("a sum carries into its upper 32 bits", (3 * 2.0**30, 3 * 2.0**30), 6 * 2.0**30),
        ("a sum just above the middle of two floats goes up, in one rounding", (2.0**24, 1, 2.0**-30), 2.0**24 + 2),
        ("a contribution of 2^-40 remains of 200 - 200", (200, -200, 2.0**-40), 2.0**-40),
        ("a contribution of 2^-40 decides beside 200", (200, 2.0**-17, 2.0**-40), 200 + 2.0**-16),
        ("contributions of 2^-62 are exact by themselves", (2.0**-62, 2.0**-62), 2.0**-61),
    )
    for name, weights, total in table:
        last = len(weights)
        options = EngineOptions(max_stimulus=0.0)
        yield Case(
            name,
            network(
                last + 1,
                [synapse(i, last, weight=w) for i, w in enumerate(weights)],
                thresholds=[1] * last + [total],
            ).replace(power_amount=0.0),
            plan={1: stimulate({}, *range(last))},
            fired=[list(range(last)), {last: total}],
            options=options,
        )


def _converted() -> Iterator[Case]:
    """Sums beside the middle of two floats, onto a neuron that does not accumulate, so that negative ones are kept."""
    table: tuple[tuple[str, Sequence[float], float], ...] = (
        ("just beyond the middle, where float64 would end in it", (2.0**24, 1, 2.0**-30), 2.0**24 + 2),
        ("in the middle, the lower one even", (2.0**24, 1), 2.0**24),
        ("in the middle, the upper one even", (2.0**24, 3), 2.0**24 + 4),
    )
    for name, weights, total in table:
        for sign in (1, -1):
            last = len(weights)
            yield Case(
                f"a sum {name}, times {sign}",
                network(
                    last + 1,
                    [synapse(i, last, weight=sign * w) for i, w in enumerate(weights)],
                    thresholds=[1] * last + [1e9],
                    mp_charge_accumulation=[True] * last + [False],
                ).replace(power_amount=0.0),
                plan={1: stimulate({}, *range(last))},
                fired=[list(range(last)), []],
                states={2: {"membrane_potentials": {last: sign * total}}},
                options=EngineOptions(max_stimulus=0.0),
            )


def _stimulus() -> Iterator[Case]:
    """What comes from outside becomes integers like contributions do; neurons with odd ids do not accumulate."""
    unit = 2.0**-30
    table: tuple[tuple[str, EngineOptions, list[tuple[int, float]], dict[int, float], bool], ...] = (
        (
            "amounts in any order, several to a neuron, add up",
            EngineOptions(),
            [(2, 3), (0, 5), (2, 4), (1, -2)],
            {0: 5, 1: -2, 2: 7, 3: 0},
            False,
        ),
        (
            "fractions are rounded half to even",
            EngineOptions(max_stimulus=1.0, fractional_stimulus=True),
            [(0, 0.5 * unit), (2, 1.5 * unit), (4, 2.5 * unit), (1, -0.5 * unit), (3, -1.5 * unit), (5, -2.5 * unit)],
            {0: 0, 2: 2 * unit, 4: 2 * unit, 1: 0, 3: -2 * unit, 5: -2 * unit},
            False,
        ),
        (
            "each amount is rounded by itself",
            EngineOptions(max_stimulus=1.0, fractional_stimulus=True),
            [*[(0, 0.5 * unit), (1, -1.5 * unit)] * 2, (2, 1.5 * unit), (2, 0.75 * unit)],
            {0: 0, 1: -4 * unit, 2: 3 * unit},
            False,
        ),
        (
            "beyond all scales an amount is clamped at floor(2^62 / 2)",
            EngineOptions(max_stimulus=1e19),
            [(0, 1e19), (1, -1e19)],
            {0: 2.0**61, 1: -(2.0**61)},
            True,
        ),
        (
            "beyond all scales the sum of a neuron's amounts is clamped as one amount is",
            EngineOptions(max_stimulus=1e19),
            [*[(0, 2.4e18), (1, -2.4e18)] * 4, (2, 2e18), (2, 1e18), (3, -2e18), (3, -1e18), (4, 2e18), (4, -1e18)],
            {0: 2.0**61, 1: -(2.0**61), 2: 2.0**61, 3: -(2.0**61), 4: 1e18},
            True,
        ),
    )
    for name, options, amounts, potentials, clamped in table:
        yield Case(
            f"stimulus: {name}",
            network(6, thresholds=3e38, mp_charge_accumulation=[True, False] * 3).replace(power_amount=0.0),
            plan={1: Stimulus(np.array([i for i, _ in amounts], np.uint32), np.array([a for _, a in amounts], "f4"))},
            fired=[[]],
            states={1: {"membrane_potentials": potentials}},
            options=options,
            clamped=clamped,
        )


def _outside() -> Iterator[Case]:
    """What no scale holds."""
    inf = float("inf")
    for sign in (1, -1):
        yield Case(
            f"with no room at any scale a contribution is clamped at {sign} x floor(2^62 / 3)",
            network(2, [synapse(0, 1, weight=sign * 1e19)], thresholds=9e18, mp_charge_accumulation=False),
            plan={1: stimulate({}, 0)},
            fired=[[0], []],
            states={2: {"membrane_potentials": {1: sign * float(np.float32(2**62 // 3))}}},
            clamped=True,
        )
    driven = {"areas": [flags(uniform=True, mp_driven=True)], "leak_coefficients": [0, 0.5], "threshold_limits": inf}
    kept = float(np.float32(2**62 // 3) * np.float32(2.0**-36))
    for potential, sign in ((1e30, 1), (inf, 1), (inf, -1)):
        yield Case(
            f"an mp-driven potential of {potential} times {sign} is clamped",
            network(
                2,
                [synapse(0, 1, weight=sign)],
                thresholds=[1, inf],
                membrane_potentials=[potential, 0],
                mp_charge_accumulation=[True, sign > 0],
                **driven,
            ),
            plan={1: stimulate({0: 0})},
            fired=[{0: float(np.float32(potential))}, []],
            states={2: {"membrane_potentials": {1: sign * kept / 2}}},
            clamped=True,
        )
    yield Case(
        "a weight of 0 times an infinite mp-driven potential counts as 0, and its target is a candidate",
        network(2, [synapse(0, 1, weight=0)], thresholds=[1, inf], membrane_potentials=[inf, 8], **driven),
        plan={1: stimulate({0: 0})},
        fired=[{0: inf}, []],
        states={2: {"membrane_potentials": {1: 4.0}}},
    )
