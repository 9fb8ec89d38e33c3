"""Which genomes the released engine takes, by their version and their schema version."""

from __future__ import annotations

from burstproof.network.grow.fields import Field

SCHEMAS = (2, 7)
"""First and last schema version that is accepted."""

_SCHEMA_OF_VERSION = {"2.0": 2, "2.1": 2, "3.0": 3}


def genome_version(root: Field) -> tuple[str, int]:
    """The genome's ``version`` and its schema version 2...7, stated or taken from ``version``.

    Raises
    ------
    GenomeError
        The released engine rejects the genome.

    Notes
    -----
    Source: FEATURES section 10.
    """
    top = root.mapping()
    cure = "Convert the genome to one of these"
    if "version" not in top:
        raise root.error("the genome has no version", allowed="a text that begins with 2. or 3.", cure="Add it")
    field = root.item("version")
    version = field.text()
    if not version.startswith(("2.", "3.")):
        raise field.error("unknown genome version", allowed="2.x or 3.x", cure=cure)
    stated = top.get("genome_schema_version")
    if isinstance(stated, int) and not isinstance(stated, bool) and stated >= 0:
        if not SCHEMAS[0] <= stated <= SCHEMAS[1]:
            raise root.item("genome_schema_version").error("unknown schema version", allowed="2...7", cure=cure)
        return version, stated
    if version not in _SCHEMA_OF_VERSION:
        raise field.error(
            "no schema version is stated, and none is known for this version",
            allowed=", ".join(_SCHEMA_OF_VERSION),
            cure="State genome_schema_version, a whole number 2...7",
        )
    return version, _SCHEMA_OF_VERSION[version]
