"""The columns of the neuron and the synapse table: the one list from which tables and files are made.

Names are those of the recorded traces. A column that a file does not have takes its default; one that is not listed
here is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

NO_LIMIT = np.float32(3.4028235e38)
"""Threshold limit that stands for *none* (the largest float32)."""

UNLIMITED_FIRES = 65535
"""Consecutive-fire limit that, like 0, stands for *unlimited*."""


@dataclass(frozen=True)
class ColumnSpec:
    """One column.

    Attributes
    ----------
    name : str
    dtype : type
    default : value of ``dtype``, or None
        ``None``: the column cannot be absent.
    meaning : str
        What it holds, with its unit.
    state : bool
        Whether bursts change it.
    width : int
        Numbers per row.
    """

    name: str
    dtype: type[np.generic]
    default: Any
    meaning: str
    state: bool = False
    width: int = 1


NEURONS = (
    ColumnSpec("membrane_potentials", np.float32, 0.0, "potential v", state=True),
    ColumnSpec("thresholds", np.float32, 1.0, "firing threshold, in units of v"),
    ColumnSpec("threshold_limits", np.float32, NO_LIMIT, "upper end of the firing window, in units of v"),
    ColumnSpec("leak_coefficients", np.float32, 0.0, "leak: v becomes v (1 - leak)"),
    ColumnSpec("resting_potentials", np.float32, 0.0, "stored, used by no rule"),
    ColumnSpec("neuron_types", np.int32, 0, "stored, used by no rule"),
    ColumnSpec("refractory_periods", np.uint16, 0, "bursts skipped after a fire"),
    ColumnSpec("refractory_countdowns", np.uint16, 0, "bursts that are still to be skipped", state=True),
    ColumnSpec("excitabilities", np.float32, 1.0, "probability to fire in the window"),
    ColumnSpec("cortical_areas", np.uint32, 7, "index of the area"),
    ColumnSpec("coordinates", np.uint32, 0, "voxel x, y, z inside the area", width=3),
    ColumnSpec("valid_mask", np.bool_, True, "whether the neuron takes part"),
    ColumnSpec("consecutive_fire_limits", np.uint16, UNLIMITED_FIRES, "fires in a row after which it pauses"),
    ColumnSpec("consecutive_fire_counts", np.uint16, 0, "fires in a row so far", state=True),
    ColumnSpec("snooze_periods", np.uint16, 0, "bursts added to the refractory period at the fire limit"),
    ColumnSpec("mp_charge_accumulation", np.bool_, True, "whether v lasts until the neuron fires"),
)

SYNAPSES = (
    ColumnSpec("source_neurons", np.uint32, None, "id of the neuron that sends"),
    ColumnSpec("target_neurons", np.uint32, None, "id of the neuron that receives"),
    ColumnSpec("weights", np.float32, 1.0, "weight", state=True),
    ColumnSpec("postsynaptic_potentials", np.float32, 1.0, "psp: a contribution is weight x psp, in units of v"),
    ColumnSpec("types", np.uint8, 0, "0 excitatory, otherwise inhibitory"),
    ColumnSpec("delay_bursts", np.uint8, 1, "bursts from firing to arrival, 1...255"),
    ColumnSpec("valid_mask", np.bool_, True, "whether the synapse takes part"),
    ColumnSpec("edge_flags", np.uint8, 0, "stored, used by no rule"),
    ColumnSpec("eligibility_traces", np.float32, 0.0, "last change of the weight", state=True),
)

NEURON_FIELDS: Mapping[str, type[np.generic]] = {column.name: column.dtype for column in NEURONS}
"""Columns of the neuron table and their dtypes."""

SYNAPSE_FIELDS: Mapping[str, type[np.generic]] = {column.name: column.dtype for column in SYNAPSES}
"""Columns of the synapse table and their dtypes."""
