"""Profiles: the rules that apply, as one frozen value for all backends (SEMANTICS section 6)."""

from __future__ import annotations

from dataclasses import dataclass

from burstproof.errors import InputError

BATCH_PATH_CANDIDATES = 10_000
"""Candidates in one burst from which the real engine takes its batch path (SEMANTICS section 3b)."""

LARGE_NETWORK_NEURONS = 1_000_000
"""Least neurons for which ``feagi-beta`` restarts only those that fired."""


@dataclass(frozen=True)
class Profile:
    """The switches between the released engine and its February 2026 sources.

    Attributes
    ----------
    name : str
        ``feagi-2.6`` (recorded) or ``feagi-beta`` (read in sources).
    byte_synapses : bool
        Weights and psp must be integers 0...255 and delays 1; anything else is refused.
    countdown_only_candidates : bool
        The refractory countdown ticks only while the neuron is a candidate.
    negative_sum_lowers : bool
        A net negative sum lowers the potential of an accumulating neuron (otherwise it counts as 0).
    restart_all : bool
        Every non-accumulating neuron restarts from 0 each burst (from ``LARGE_NETWORK_NEURONS`` on: only those
        that fired, whose potential is 0 already); otherwise only the candidates of the last burst do.
    round_mp_driven : bool
        mp-driven psp is rounded half away from zero and capped to 0...255.
    batch_ignores_limit_and_zeroes : bool
        With ``emulate_batch_path``: the batch path also ignores the threshold limit and zeroes blocked potentials.
    plastic_all_window : bool
        Potentiation needs both sides to have fired in all W bursts, any other firing depresses, and weights stay
        within 0...255; otherwise one firing per side suffices and weights have no upper bound.
    """

    name: str
    byte_synapses: bool
    countdown_only_candidates: bool
    negative_sum_lowers: bool
    restart_all: bool
    round_mp_driven: bool
    batch_ignores_limit_and_zeroes: bool
    plastic_all_window: bool


FEAGI_2_6 = Profile("feagi-2.6", False, False, False, False, False, False, False)
FEAGI_BETA = Profile("feagi-beta", True, True, True, True, True, True, True)
PROFILES = {profile.name: profile for profile in (FEAGI_2_6, FEAGI_BETA)}


def profile_named(name: str) -> Profile:
    """The profile of that name.

    Raises
    ------
    InputError
        Unknown name.
    """
    found = PROFILES.get(name) if isinstance(name, str) else None
    if found is None:
        raise InputError("unknown profile", where="profile", got=name, allowed=", ".join(PROFILES))
    return found
