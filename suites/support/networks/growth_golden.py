"""The recorded growth cases and how a grown network is looked at by area."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.network.grow.genome import GenomePolicy, read_genome
from burstproof.network.grow.growth import grow
from burstproof.network.grow.links import Progress
from burstproof.network.model import Network

GOLDEN = Path(__file__).parents[2] / "data" / "golden"
GENOMES = GOLDEN / "genomes"
GROWTH = GOLDEN / "growth"

LENIENT = GenomePolicy(ignore_unmodelled=True)

MORPHOLOGY_CASES = (
    "equal",
    "from_one",
    "larger",
    "npv2",
    "npv_mixed",
    "odd",
    "patterns",
    "psc_frac",
    "psc_neg",
    "scalar",
    "self",
    "smaller",
    "to_one",
)

SHIPPED = ("barebones", "essential", "test", "vision")


def grown_case(case: str, progress: Progress | None = None) -> Network:
    """The network of a recorded case; some name memory morphologies or state keys that do not bear on growth."""
    return grow(read_genome(case_genome(case), LENIENT), progress=progress)


def case_genome(case: str) -> Path:
    return GROWTH / f"growth_{case}.genome.json.gz"


def case_description(case: str) -> dict[str, Any]:
    return json.loads((GROWTH / f"growth_{case}.json").read_text())


def case_tables(case: str) -> dict[str, npt.NDArray[Any]]:
    with np.load(GROWTH / f"growth_{case}.npz") as tables:
        return dict(tables)


def genome_tree(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def area_starts(network: Network) -> dict[str, int]:
    """First neuron id of each area that has neurons, by base64 id."""
    indices, first = np.unique(network.neurons.cortical_areas, return_index=True)
    starts = dict(zip(indices.tolist(), first.tolist(), strict=True))
    return {area.cortical_id: starts[area.index] for area in network.areas if area.index in starts}


def area_neurons(network: Network, cortical_id: str) -> npt.NDArray[np.int64]:
    """Ids of the neurons of an area, ascending."""
    index = next(area.index for area in network.areas if area.cortical_id == cortical_id)
    return np.flatnonzero(network.neurons.cortical_areas == index)


def synapse_rows(network: Network, source: str, target: str) -> npt.NDArray[np.float64]:
    """Synapses between two areas as sorted rows (src local, dst local, weight, psp, type, delay)."""
    return sorted_rows(*synapse_columns(network, source, target))


def synapse_columns(network: Network, source: str, target: str) -> tuple[npt.NDArray[Any], ...]:
    table, areas = network.synapses, network.neurons.cortical_areas
    index = {area.cortical_id: area.index for area in network.areas}
    chosen = (areas[table.source_neurons] == index[source]) & (areas[table.target_neurons] == index[target])
    starts = area_starts(network)
    return (
        table.source_neurons[chosen] - starts[source],
        table.target_neurons[chosen] - starts[target],
        table.weights[chosen],
        table.postsynaptic_potentials[chosen],
        table.types[chosen],
        table.delay_bursts[chosen],
    )


def sorted_rows(*columns: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Rows of exact float64 copies of the columns, sorted by the first column, then the second and so on."""
    rows = np.stack([column.astype(np.float64) for column in columns], axis=1)
    return rows[np.lexsort(rows.T[::-1])]
