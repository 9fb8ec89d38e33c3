"""Brain regions of a genome: where the released engine takes a replay of memories."""

from __future__ import annotations

from burstproof.errors import GenomeError
from burstproof.network.cortical_ids import encode_id
from burstproof.network.grow.areas import IdReader
from burstproof.network.grow.blueprint import Genome, label
from burstproof.network.grow.fields import Field
from burstproof.network.grow.genome_features import acting_twins


def check_replays(genome: Genome, root: Field, read_id: IdReader) -> None:
    """Refuse a genome that replays memories from or into the root region, as the released engine does.

    Raises
    ------
    GenomeError
        A memory area with a replay, or a twin of it, is in no region below the root.

    Notes
    -----
    Source: FEATURES section 7.6.
    """
    replaying = [(area, twin) for area in genome.areas for _, twin in acting_twins(genome, area)]
    if not replaying:
        return
    below = _below_the_root(root, read_id)
    by_id = {area.cortical_id: area for area in genome.areas}
    for area, twin in replaying:
        outside = [one for one in (area, by_id[twin]) if one.cortical_id not in below]
        if outside:
            raise GenomeError(
                f"the released engine replays no memories in the root region, where area {label(outside[0])} lies",
                where=outside[0].place,
                allowed="a memory area and its twins in regions below the root",
                cure="List both areas under cortical_areas of another region of brain_regions",
            )


def _below_the_root(root: Field, read_id: IdReader) -> set[str]:
    """The areas (base64) of all regions but the root region."""
    top = root.mapping()
    regions = dict(root.item("brain_regions").items()) if top.get("brain_regions") is not None else {}
    stated = top.get("brain_regions_root")
    found = set()
    for name, region in regions.items():
        members = region.mapping()
        is_root = name == stated if isinstance(stated, str) else members.get("parent_region_id") is None
        if not is_root and "cortical_areas" in members:
            found |= {encode_id(read_id(one.text(), one)) for one in region.item("cortical_areas").elements()}
    return found
