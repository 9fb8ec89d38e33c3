"""A run that its progress callback ends, side by side with the reference."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Record
from suites.support.parity.builder import CreateEngine
from suites.support.parity.mixed import Mix, mixed_network, mixed_options, mixed_plan

BATCH = 4
"""Bursts of a batch, of which several are under way when the callback raises."""


class _StopError(Exception):
    """What the callback raises."""


def interruption_differs(mix: Mix, create: CreateEngine, records: Iterable[Record] = Record) -> list[str]:
    """What is wrong after a run whose callback raises at its second call, for each of ``records``.

    The engine has to stand after a burst, at most a batch beyond those that the callback was told of, in the state that
    the reference has there, and the rest of the run has to be that of the reference.
    """
    return [f"{record.value}: {problem}" for record in records for problem in _problems(mix, create, record)]


def _problems(mix: Mix, create: CreateEngine, record: Record) -> list[str]:
    network, options = mixed_network(mix), mixed_options(mix)
    plan, begun, told = mixed_plan(mix, network), network.burst_count, list[int]()

    def stop(bursts: int) -> None:
        told.append(bursts)
        if len(told) == 2:
            raise _StopError

    reference, engine = ReferenceEngine.create(network, options), create(network, options)
    try:
        try:
            engine.run(mix.bursts, plan, record, stop)
            return ["what the callback raised did not come through"]
        except _StopError:
            done = engine.burst_count - begun
        if not sum(told) <= done <= sum(told) + BATCH:
            return [f"{done} bursts were done, the callback was told of {told}"]
        reference.run(done, plan)
        problems = [f"{name} of the state it stands in" for name in reference.state().differences(engine.state())]
        expected, got = reference.run(mix.bursts - done, plan), engine.run(mix.bursts - done, plan)
        for name in ("bursts", "fired_ids", "fired_potentials", "candidate_counts"):
            if not np.array_equal(getattr(expected, name), getattr(got, name)):
                problems.append(f"{name} of the rest")
        return problems + [f"{name} at the end" for name in reference.state().differences(engine.state())]
    finally:
        engine.close()
