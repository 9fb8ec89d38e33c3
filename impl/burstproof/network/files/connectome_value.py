"""A ``.connectome`` file as a value."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass

from burstproof.network.files.connectome_format import CONTAINER_VERSION
from burstproof.network.model import Network
from burstproof.version import __version__

SCHEMA_VERSION = 1
MANIFEST_TAG = "brain_artifact_manifest"

NEURON_ORDER = (
    "membrane_potentials",
    "thresholds",
    "leak_coefficients",
    "resting_potentials",
    "neuron_types",
    "refractory_periods",
    "refractory_countdowns",
    "excitabilities",
    "cortical_areas",
    "coordinates",
    "valid_mask",
    "threshold_limits",
    "consecutive_fire_counts",
    "consecutive_fire_limits",
    "snooze_periods",
    "mp_charge_accumulation",
)
"""Neuron columns in file order."""

SYNAPSE_ORDER = (
    "source_neurons",
    "target_neurons",
    "weights",
    "postsynaptic_potentials",
    "types",
    "delay_bursts",
    "valid_mask",
)
"""Synapse columns in front of the synapse index."""

SYNAPSE_EXTRAS = ("edge_flags", "eligibility_traces")
"""Synapse columns behind the synapse index."""


@dataclass(frozen=True)
class Metadata:
    """Who saved the file: ``timestamp`` as the engine writes it (u64), texts, and ``tags`` in file order."""

    timestamp: int = 0
    description: str = ""
    source: str = "burstproof"
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Connectome:
    """A ``.connectome`` file as a value: writing it gives the payload that was read, byte for byte.

    Attributes
    ----------
    network : Network
        Tables, areas in file order (no flags unless asked for; dimensions are the extent of the coordinates in
        use), burst count and power amount. The file does not hold plastic mappings.
    manifest : str
        JSON text of the container's manifest.
    fire_ledger_window : int
        Bursts that the engine's fire ledger keeps.
    neuron_capacity, synapse_capacity, synapse_count : int
        As the file states them. The stated synapse count may be stale: the vectors are what counts.
    metadata : Metadata
        Timestamp, description, source and tags.
    persist_mode : int
        0 is a full save.
    genome : str or None
        Text of the embedded genome.
    private_sections : bytes
        What follows the genome: sections private to the engine, kept verbatim.
    index_map : bytes or None
        The map source -> synapses in file order; ``None`` builds it from the table when written.
    compressed : bool
        Whether the payload is an LZ4 block.
    """

    network: Network
    manifest: str
    fire_ledger_window: int = 20
    neuron_capacity: int = 0
    synapse_capacity: int = 0
    synapse_count: int = 0
    metadata: Metadata = dataclasses.field(default_factory=Metadata)
    persist_mode: int = 0
    genome: str | None = None
    private_sections: bytes = b""
    index_map: bytes | None = None
    compressed: bool = True

    @classmethod
    def of(cls, network: Network, genome: str | None = None, description: str = "") -> Connectome:
        """A connectome of a network of any origin, with an empty tail or the ``genome`` text in it."""
        digest = hashlib.sha256(genome.encode("utf-8")).hexdigest() if genome is not None else ""
        manifest = json.dumps(
            {
                "contract_version": 1,
                "container_format_version": CONTAINER_VERSION,
                "connectome_schema_version": SCHEMA_VERSION,
                "genome_schema_version": 7,
                "genome_sha256": digest,
                "producer_version": f"burstproof {__version__}",
                "migration_steps": [],
            },
            separators=(",", ":"),
        )
        return cls(
            network,
            manifest,
            neuron_capacity=network.neuron_count,
            synapse_capacity=network.synapse_count,
            synapse_count=network.synapse_count,
            metadata=Metadata(description=description, tags=((MANIFEST_TAG, manifest),)),
            genome=genome,
        )


def connectome_losses(network: Network) -> tuple[str, ...]:
    """What ``network`` has and a ``.connectome`` cannot hold, one clause each; empty if nothing is lost."""
    losses = []
    if network.plastic_mappings:
        losses.append(f"{len(network.plastic_mappings)} plastic mappings")
    if network.flags_registered:
        losses.append("psp flags of the areas (only an embedded genome carries them)")
    losses += [f"the note {key}" for key in ("unmodelled", "as_the_engine") if key in network.provenance]
    return tuple(losses)
