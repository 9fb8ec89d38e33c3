"""What an engine refuses before it packs a network: delays of 0, faulty plastic mappings, a profile's limits."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from burstproof.burst.engine import EngineOptions
from burstproof.errors import NetworkError
from burstproof.network.model import Network, PlasticMapping

_BYTE_MAX = 255


def check_network(network: Network, options: EngineOptions) -> None:
    """Refuse what no engine can run, and what the profile of ``options`` excludes.

    Raises
    ------
    NetworkError
        A delay of 0; a power amount that is not finite; a plastic mapping whose window is below 1, whose step is
        not finite, or whose synapses do not exist or belong to another mapping too; under a profile with byte
        synapses a weight or psp that is fractional or above 255, a delay above 1, or a fractional plastic step.
    """
    synapses = network.synapses
    _refuse_first(network, synapses.delay_bursts == 0, "delay_bursts", "a delay of 0", "1...255")
    if not math.isfinite(np.float32(network.power_amount)):
        raise NetworkError("the power amount is not finite", where="power_amount", got=network.power_amount)
    _check_mappings(network)
    if options.profile.byte_synapses:
        _check_byte_synapses(network, options.profile.name)


def _refuse_first(
    network: Network,
    bad: npt.NDArray[np.bool_],
    column: str,
    problem: str,
    allowed: str,
    cure: str | None = None,
) -> None:
    """Raise for the first valid synapse that ``bad`` marks."""
    refused = bad & network.synapses.valid_mask
    if refused.any():
        row = int(np.argmax(refused))
        value = getattr(network.synapses, column)[row].item()
        raise NetworkError(problem, where=f"synapses.{column}[{row}]", got=value, allowed=allowed, cure=cure)


def _check_mappings(network: Network) -> None:
    owned = np.zeros(network.synapse_count, np.bool_)
    for number, mapping in enumerate(network.plastic_mappings):
        where = f"plastic_mappings[{number}]"
        if mapping.window < 1:
            raise NetworkError("a plasticity window below 1", where=where, got=mapping.window, allowed="1 or more")
        if not np.isfinite(steps(mapping)).all():
            raise NetworkError("a plastic step is not finite", where=where, got=steps(mapping).tolist())
        rows = mapping.synapses
        if len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= network.synapse_count):
            raise NetworkError(
                "a plastic synapse outside the table",
                where=where,
                got=(int(rows.min()), int(rows.max())),
                allowed=f"0...{network.synapse_count - 1}",
            )
        if owned[rows].any() or len(np.unique(rows)) != len(rows):
            raise NetworkError("a synapse is plastic twice", where=where, cure="Name each synapse in one mapping once")
        owned[rows] = True


def steps(mapping: PlasticMapping) -> npt.NDArray[np.float32]:
    """Potentiation and depression step of a plastic mapping, (2,) float32: constant * multiplier."""
    multipliers = np.array([mapping.ltp_multiplier, mapping.ltd_multiplier], np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        return multipliers * np.float32(mapping.constant)


def _check_byte_synapses(network: Network, profile: str) -> None:
    synapses = network.synapses
    cure = f"The profile {profile} cannot run this network; use feagi-2.6"
    for column in ("weights", "postsynaptic_potentials"):
        values = getattr(synapses, column)
        not_byte = ~((np.rint(values) == values) & (values >= 0) & (values <= _BYTE_MAX))
        _refuse_first(network, not_byte, column, "not an unsigned 8-bit number", "integers 0...255", cure)
    _refuse_first(network, synapses.delay_bursts > 1, "delay_bursts", "a delay above 1", "1", cure)
    for number, mapping in enumerate(network.plastic_mappings):
        if bool((np.rint(steps(mapping)) != steps(mapping)).any()):
            raise NetworkError(
                "a fractional plastic step",
                where=f"plastic_mappings[{number}]",
                got=steps(mapping).tolist(),
                allowed="integers",
                cure=cure,
            )
