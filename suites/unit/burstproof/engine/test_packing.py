"""A stimulus in the units of the sums: the usual one, packed in few steps, equals what all steps make of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from burstproof.engine import packing
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.options import EngineOptions
from burstproof.engine.packing import PackedStimulus, Packer
from burstproof.engine.state import Stimulus
from burstproof.errors import StimulusError
from burstproof.network.model import Network, NeuronTable, SynapseTable

pytestmark = pytest.mark.requirement("BE-4")

NEURONS = 50
IDS = np.array([0, 3, 7, 20, 49], np.uint32)


def network(invalid: int = -1) -> Network:
    synapses = SynapseTable.build([0, 1], [1, 2], weights=0.3)
    return Network(NeuronTable.build(NEURONS, valid_mask=np.arange(NEURONS) != invalid), synapses)


def packed(given: Stimulus, options: EngineOptions, invalid: int = -1) -> PackedStimulus:
    made = network(invalid)
    return Packer(made, options, plan_fixed_point(made, options))(given)


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("amounts", [[1, 2, 3, 4, 5], [-1, 0, 255, -255, 7], [0.25, -0.5, 3.75, 1, 2]])
@pytest.mark.parametrize("forced", [[], [5], [1, 2, 30]])
def test_all_ways_make_the_same(
    fractional: bool, amounts: list[float], forced: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is, put in order first, and step by step."""
    if not fractional and amounts[0] == 0.25:
        pytest.skip("these amounts are refused without fractions")
    options = EngineOptions(fractional_stimulus=fractional)
    given = Stimulus(IDS, np.array(amounts, np.float32), np.array(forced, np.uint32))
    back = Stimulus(IDS[::-1].astype(np.int64), given.amounts[::-1], given.forced[::-1].astype(np.int64))
    one, ordered = packed(given, options), packed(back, options)
    monkeypatch.setattr(Packer, "_usual", lambda *_: None)
    for other in (ordered, packed(back, options)):
        for name in ("ids", "amounts", "forced"):
            assert getattr(one, name).dtype == getattr(other, name).dtype
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert (one.clamped, one.may_cancel) == (other.clamped, other.may_cancel)
    assert one.ids is not given.ids


def test_the_usual_stimulus_goes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(packing, "check_stimulus")
    made = packed(Stimulus(IDS, np.ones(5, np.float32), IDS[:2]), EngineOptions())
    assert made.forced.tolist() == [0, 3]
    unordered = Stimulus(np.flip(IDS).astype(np.int64), np.arange(5, dtype=np.float32), np.array([9, 4]))
    made = packed(unordered, EngineOptions())
    assert (made.ids.tolist(), made.forced.tolist()) == (IDS.tolist(), [4, 9])
    assert (np.diff(made.amounts) < 0).all()


def _read_only(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    values.flags.writeable = False
    return values


@pytest.mark.parametrize(
    "form",
    [
        _read_only,
        lambda values: np.repeat(values, 2)[::2],
        lambda values: values.astype(values.dtype.newbyteorder()),
        np.ma.array,
        np.ndarray.tolist,
    ],
    ids=["read-only", "strided", "other bytes", "masked", "list"],
)
@pytest.mark.parametrize("which", ["ids", "amounts", "forced"])
def test_arrays_of_any_form_are_packed_alike(form: Callable[[npt.NDArray[Any]], Any], which: str) -> None:
    given = Stimulus(IDS.copy(), np.arange(5, dtype=np.float32), IDS[:2].copy())
    usual = packed(given, EngineOptions())
    other = packed(dataclasses.replace(given, **{which: form(getattr(given, which))}), EngineOptions())
    for one, two in zip(usual[:3], other[:3], strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)
    assert usual[3:] == other[3:] == (False, True, None)


@pytest.mark.parametrize("wrong", [-1, 2**32, 2**32 + 3])
@pytest.mark.parametrize("forced", [False, True])
def test_an_id_that_32_bits_would_change_is_refused(wrong: int, forced: bool) -> None:
    ids = np.array([7, wrong])
    given = Stimulus(forced=ids) if forced else Stimulus(ids, np.ones(2, np.float32))  # type: ignore[arg-type]
    with pytest.raises(StimulusError, match="outside the network"):
        packed(given, EngineOptions())


@pytest.mark.parametrize(
    ("ids", "amounts", "forced", "said"),
    [
        ([50], [1], [], "outside the network.*ids_of"),
        ([9], [1], [], "not valid"),
        ([], [], [9], "not valid"),
        ([], [], [50], "outside the network.*ids_of"),
        ([1, 2], [1], [], "differ in length.*one amount for each id"),
        ([1], [np.nan], [], "not finite.*Give finite"),
        ([1], [np.inf], [], "not finite"),
        ([1], [0.5], [], "fractional"),
        ([1], [256], [], "exceed the declared bound"),
        ([2, 2], [200, 200], [], "exceed the declared bound"),
    ],
)
def test_the_short_way_takes_nothing_that_is_refused(
    ids: list[int], amounts: list[float], forced: list[int], said: str
) -> None:
    given = Stimulus(np.array(ids, np.uint32), np.array(amounts, np.float32), np.array(forced, np.uint32))
    with pytest.raises(StimulusError, match=said):
        packed(given, EngineOptions(), invalid=9)
