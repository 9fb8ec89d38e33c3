"""Every engine against the reference on networks in which everything is mixed, all state, bit for bit."""

from __future__ import annotations

import pytest
from _pytest.mark.structures import ParameterSet

from burstproof.engine.profile import FEAGI_BETA
from burstproof.engine.reference import ReferenceEngine
from suites.support.parity import backends
from suites.support.parity.backends import ONE_THREAD, own_kernels
from suites.support.parity.mixed import MIXES, Mix, compare_mix, compare_run, mixed_network, mixed_options, mixed_plan
from suites.support.plans import thinned

# the first of these files to run compiles the kernels that the other needs: side by side both would
pytestmark = [pytest.mark.requirement("BE-4", "BE-17", "ST-5"), pytest.mark.file_group("general kernels")]


def _on(backend: ParameterSet, mix: Mix) -> ParameterSet:
    """A mix on a backend; ``feagi-beta`` has kernels of its own."""
    marks = own_kernels(backend, ONE_THREAD) if mix.profile is FEAGI_BETA else []
    return pytest.param(*backend.values, mix, id=f"{mix.name}-{backend.id}", marks=[*backend.marks, *marks])


PLACES = [_on(backend, mix) for mix in MIXES for backend in backends.ENGINES_AND_WGPU]
FEWER = thinned(PLACES, "a mix of many", keep=lambda place, _: place // len(backends.ENGINES_AND_WGPU) % 4 == 0)


@pytest.mark.parametrize(("backend", "mix"), PLACES)
def test_mix(backend: backends.Backend, mix: Mix) -> None:
    """Bursts and whole state equal the reference after every burst."""
    problems = compare_mix(mix, backend.create)
    assert not problems, problems[0]


@pytest.mark.parametrize(("backend", "mix"), FEWER)
def test_train(backend: backends.Backend, mix: Mix) -> None:
    """A run in one go, begun from a state taken half-way from the reference, ends where the reference ends."""
    assert compare_run(mix, backend.create) == []


@pytest.mark.not_proof
@pytest.mark.thorough("runs every mix")
def test_mixes_exercise_what_they_name() -> None:
    """Each mix fires; those of the batch path reach its 10 000 candidates; those that clamp set the sticky flag."""
    for mix in MIXES:
        network = mixed_network(mix)
        reference = ReferenceEngine.create(network, mixed_options(mix))
        recording = reference.run(mix.bursts, mixed_plan(mix, network))
        assert recording.fired_counts.sum() > 100, mix.name
        assert (recording.candidate_counts.max() >= 10_000) == mix.emulate_batch_path, mix.name
        assert reference.state().clamped == mix.clamps, mix.name
