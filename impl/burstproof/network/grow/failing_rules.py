"""Mapping rules at which the released engine fails: why, and what growth loses by it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from burstproof.errors import GenomeError
from burstproof.network.features import ModulatorKind
from burstproof.network.grow.blueprint import AreaSpec, MappingSpec, RuleSpec
from burstproof.network.grow.fields import Field, is_number

STEPS = ("plasticity_constant", "ltp_multiplier", "ltd_multiplier")
"""Keys without which a plastic rule fails."""

STDP, R_STDP, OFF = "stdp", "rstdp", "off"
"""Modes of a plastic rule."""


def plasticity_mode(fields: Mapping[str, Field]) -> str:
    """The mode of a plastic rule in lower case: ``stdp`` where none is stated, for null and for what is no string;
    ``rstdp`` in either spelling.

    Source: FEATURES section 4.
    """
    mode = fields["plasticity_mode"].value if "plasticity_mode" in fields else None
    lower = mode.lower() if isinstance(mode, str) else STDP
    return R_STDP if lower == "r-stdp" else lower


def why_delay_fails(delay_bursts: int) -> str:
    """Why a rule with this delay fails; empty if it does not."""
    return "synaptic_delay_bursts is 0" if delay_bursts == 0 else ""


def why_plasticity_fails(
    fields: Mapping[str, Field], modulator_kinds: Mapping[str, ModulatorKind], *, migrated: bool = False
) -> str:
    """Why the released engine fails at a plastic rule.

    Parameters
    ----------
    fields : Mapping
        The rule's values under their v3 names.
    modulator_kinds : Mapping
        Modulator id to kind.
    migrated : bool
        Migration adds a synaptic modulator to those that the rule lists.

    Returns
    -------
    str
        One clause; empty if the engine accepts the rule.

    Notes
    -----
    Source: FEATURES section 4; golden/growth/RULES.md, "A rule of a mapping".
    """

    def given(key: str) -> Any:
        return fields[key].value if key in fields else None

    if given("plasticity_window") in (None, 0) and not isinstance(given("plasticity_window"), bool):
        return "plasticity_window is 0" if "plasticity_window" in fields else "plasticity_window is missing"
    for key in STEPS:
        if key not in fields:
            return f"{key} is missing"
        if not is_number(given(key)):
            return f"{key} is not a number"
        if key != STEPS[0] and not -128 <= given(key) <= 127:
            return f"{key} is outside -128...127"
    mode = plasticity_mode(fields)
    if mode not in (STDP, R_STDP, OFF):
        return f"plasticity_mode {mode!r} is unknown"
    heaviest, eta = given("max_weight"), given("plasticity_eta")
    if heaviest is not None and not (is_number(heaviest) and heaviest > 0):
        return "max_weight is not a number above 0"
    if is_number(eta) and eta <= 0:
        return "plasticity_eta is not above 0"
    if mode == OFF and (heaviest is not None or eta is not None):
        return "max_weight or plasticity_eta is set, and plasticity_mode is off"
    if mode != R_STDP and given("eligibility_decay_bursts") is not None:
        return f"eligibility_decay_bursts is set, and plasticity_mode is {mode}"
    named = given("modulators")
    if isinstance(named, list) and named and not migrated:
        kinds = [modulator_kinds.get(one) for one in named if isinstance(one, str)]
        if not any(kind is not None and kind.synaptic for kind in kinds):
            return "no modulator that the plastic rule lists is a synaptic one"
    return ""


def without_failing(area: AreaSpec) -> tuple[AreaSpec, RuleSpec | None, int]:
    """The area with the rules that the released engine grows, the rule at which its growth ends, and rules lost.

    The engine takes the targets in ascending order of their ids as the genome writes them, and the rules of a target
    in their order. The first failing rule makes nothing and ends the growth of its source area.
    """
    order = sorted(area.mappings, key=lambda mapping: mapping.key)
    kept: dict[str, tuple[RuleSpec, ...]] = {}
    failed = None
    for mapping in order:
        failing = next((place for place, rule in enumerate(mapping.rules) if rule.failure), None)
        kept[mapping.key] = mapping.rules[:failing]
        if failing is not None:
            failed = mapping.rules[failing]
            break
    if failed is None:
        return area, None, 0
    mappings = tuple(
        MappingSpec(mapping.target, kept[mapping.key], mapping.key) for mapping in area.mappings if mapping.key in kept
    )
    lost = sum(len(mapping.rules) for mapping in area.mappings) - sum(len(mapping.rules) for mapping in mappings)
    return dataclasses.replace(area, mappings=mappings), failed, lost


def failing_rule_error(rule: RuleSpec, more: int) -> GenomeError:
    """The refusal of a genome whose growth would end early; ``more`` areas have such a rule besides."""
    others = f"; {more} more areas have a rule that fails" if more else ""
    return GenomeError(
        f"the released engine fails at this rule and ends the growth of its source area: {rule.failure}{others}",
        where=rule.place,
        cure="Correct the rule, or grow what the engine grows with --as-the-engine (as_the_engine=True)",
    )
