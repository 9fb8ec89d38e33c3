"""The options ``--stimulate`` and ``--force``: what is put into which neurons in which bursts.

``--stimulate BURSTS:NEURONS=AMOUNT`` adds AMOUNT to the fire candidate list, ``--force BURSTS:NEURONS`` makes neurons
fire (SEMANTICS section 4). BURSTS is a list of numbers and ranges, ``3,10-20,100-200/10`` (every tenth); the numbers
are those of the record. NEURONS is such a list of ids, or ``@AREA`` with the id or the name of a cortical area.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from burstproof.engine.stimulation import Part
from burstproof.errors import StimulusError
from burstproof.network.model import Network


def parse_stimulations(
    network: Network, bursts: int, stimulate: Sequence[str] = (), force: Sequence[str] = ()
) -> tuple[Part, ...]:
    """The options of one run of ``bursts`` bursts over ``network``.

    Raises
    ------
    StimulusError
        A text that is none of the forms, a burst outside the run, a neuron that does not exist.
    NetworkError
        An area that does not exist.
    """
    found = []
    for text in stimulate:
        when_who, _, amount = text.rpartition("=")
        found.append(_parse(network, bursts, "--stimulate", text, when_who, _amount(text, amount)))
    found += [_parse(network, bursts, "--force", text, text, None) for text in force]
    return tuple(found)


def _amount(text: str, amount: str) -> float:
    """The amount of ``--stimulate``."""
    try:
        value = float(amount)
    except ValueError:
        value = math.nan
    if not abs(value) <= float(np.finfo(np.float32).max):
        raise StimulusError(
            "no finite amount after the last '='", where="--stimulate", got=text, allowed="BURSTS:NEURONS=AMOUNT"
        )
    return value


def _parse(network: Network, bursts: int, option: str, text: str, when_who: str, amount: float | None) -> Part:
    when, colon, who = when_who.partition(":")
    if not colon:
        form = "BURSTS:NEURONS" if amount is None else "BURSTS:NEURONS=AMOUNT"
        raise StimulusError("no ':' between bursts and neurons", where=option, got=text, allowed=form)
    first = network.burst_count + 1
    numbers = _numbers(when, first, network.burst_count + bursts, f"{option}: burst")
    if who.startswith("@"):
        return Part(numbers, network.ids_of(who[1:], option), amount)
    ids = _numbers(who, 0, network.neuron_count - 1, f"{option}: neuron")
    return Part(numbers, ids.astype(np.uint32), amount)


def _numbers(text: str, least: int, most: int, where: str) -> npt.NDArray[np.int64]:
    """The numbers of a list like ``3,10-20,100-200/10``, ascending, each once."""
    parts = []
    for item in text.split(","):
        span, _, step_text = item.partition("/")
        low_text, dash, high_text = span.partition("-")
        texts = [low_text, high_text if dash else low_text, step_text or "1"]
        if not all(t.strip().isdecimal() and len(t) < 20 for t in texts):
            raise StimulusError("not a list of numbers", where=where, got=item, allowed="N, N-M or N-M/STEP")
        low, high, step = (int(t) for t in texts)
        if high < low or step < 1:
            raise StimulusError("an empty range", where=where, got=item, allowed="N-M/STEP with M >= N and STEP >= 1")
        if low < least or high > most:
            cure = "Change it, or --bursts" if where.endswith("burst") else None
            raise StimulusError("out of range", where=where, got=item, allowed=f"{least} to {most}", cure=cure)
        parts.append(np.arange(low, high + 1, step, dtype=np.int64))
    return np.unique(np.concatenate(parts))
