"""What a morphology is: its definition in the genome, the core ones that need none, and how a name is resolved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from burstproof.network.grow.fields import Field
from burstproof.network.grow.morphologies.bitmask import bitmask_decoder, bitmask_encoder
from burstproof.network.grow.morphologies.pattern import ANY, Pattern, PatternPair, patterns
from burstproof.network.grow.morphologies.projection import centered_projector, projector, tile, transpose
from burstproof.network.grow.morphologies.route import first_to_last, last_to_first, rotator_z, sweeper
from burstproof.network.grow.morphologies.vector import Vector, vectors
from burstproof.network.grow.morphologies.wiring import Dimensions, Wiring, nothing

_INT32 = 2**31 - 1

WiringRule = Callable[[Dimensions, Dimensions], Wiring]
"""From the dimensions of source and target area to the connected voxels."""


@dataclass(frozen=True)
class Morphology:
    """A morphology as the genome defines it.

    Attributes
    ----------
    kind : str
        ``vectors``, ``patterns``, ``functions``, ``composite`` or another word of the genome.
    vectors, patterns : tuple
        The parameters of those two kinds; the others have none that matter.
    """

    name: str
    kind: str
    vectors: tuple[Vector, ...] = ()
    patterns: tuple[PatternPair, ...] = ()

    @property
    def element_count(self) -> int:
        """Number of vectors or patterns."""
        return len(self.vectors) + len(self.patterns)


def _vector_rule(given: Sequence[Vector]) -> WiringRule:
    return lambda source, target: vectors(given, source, target)


def _pattern_rule(given: Sequence[PatternPair]) -> WiringRule:
    return lambda source, target: patterns(given, source, target)


def _nothing(source: Dimensions, target: Dimensions) -> Wiring:
    return nothing()


_EVERYWHERE: Pattern = (ANY, ANY, ANY)
_ORIGIN: Pattern = (0, 0, 0)

ORIGIN_TO_ORIGIN = _pattern_rule([(_ORIGIN, _ORIGIN)])
"""One synapse, between the first voxels."""

RANDOMIZER = "randomizer"
"""The one morphology whose published meaning is random; the recorded engine grows nothing from it."""

EPISODIC, REPLAY, ASSOCIATIVE = "episodic_memory", "memory_replay", "associative_memory"
"""Morphologies that connect memory areas; growth makes no synapse of them but the placeholders of the last."""

TWO_WAYS = "bi_directional_stdp"
"""A morphology that nobody examined: a genome that names it is refused, or grown without it (``unmodelled.py``)."""

GROWS_NOTHING = frozenset(
    {
        RANDOMIZER,
        "expander_x",
        "reducer_x",
        "lateral_pairs_x",
        EPISODIC,
        "episodic_scan",
        REPLAY,
        ASSOCIATIVE,
        TWO_WAYS,
    }
)
"""Core morphologies from which the recorded engine makes no synapse (RULES.md, last section)."""

CORE_MORPHOLOGIES: Mapping[str, WiringRule] = {
    "block_to_block": _vector_rule([(0, 0, 0)]),
    "lateral_+x": _vector_rule([(1, 0, 0)]),
    "lateral_-x": _vector_rule([(-1, 0, 0)]),
    "lateral_+y": _vector_rule([(0, 1, 0)]),
    "lateral_-y": _vector_rule([(0, -1, 0)]),
    "lateral_+z": _vector_rule([(0, 0, 1)]),
    "lateral_-z": _vector_rule([(0, 0, -1)]),
    "0-0-0_to_all": _pattern_rule([(_ORIGIN, _EVERYWHERE)]),
    "all_to_0-0-0": _pattern_rule([(_EVERYWHERE, _ORIGIN)]),
    "all_to_all": _pattern_rule([(_EVERYWHERE, _EVERYWHERE)]),
    "projector": projector,
    "centered_projector": centered_projector,
    "transpose_xy": transpose(0, 1),
    "transpose_xz": transpose(0, 2),
    "transpose_yz": transpose(1, 2),
    "tile": tile,
    "first_to_last": first_to_last,
    "last_to_first": last_to_first,
    "sweeper": sweeper,
    "rotator_z": rotator_z,
    "bitmask_decoder_x": bitmask_decoder(0),
    "bitmask_decoder_y": bitmask_decoder(1),
    "bitmask_decoder_z": bitmask_decoder(2),
    "bitmask_encoder_x": bitmask_encoder(0),
    "bitmask_encoder_y": bitmask_encoder(1),
    "bitmask_encoder_z": bitmask_encoder(2),
    **dict.fromkeys(sorted(GROWS_NOTHING), _nothing),
}
"""Morphologies that a rule may name without the genome defining them."""


def resolve(name: str, defined: Mapping[str, Morphology]) -> WiringRule | None:
    """The rule behind a morphology name, or ``None`` if nothing explains it.

    Parameters
    ----------
    name : str
        As the mapping's rule names it.
    defined : Mapping
        The genome's own morphologies. Their vectors and patterns win over core ones of the same name.
    """
    morphology = defined.get(name)
    if morphology is not None and morphology.kind == "vectors":
        return _vector_rule(morphology.vectors)
    if morphology is not None and morphology.kind == "patterns":
        return _pattern_rule(morphology.patterns)
    if name in CORE_MORPHOLOGIES:
        return CORE_MORPHOLOGIES[name]
    composite = morphology is not None and morphology.kind == "composite"
    return _nothing if composite else None


def is_core(name: str, defined: Mapping[str, Morphology]) -> bool:
    """Whether ``name`` stands for the core morphology and not for vectors or patterns that the genome calls so."""
    return name not in defined or defined[name].kind not in ("vectors", "patterns")


def parse_morphology(name: str, record: Field) -> Morphology:
    """Read one entry of ``neuron_morphologies``.

    Raises
    ------
    GenomeError
        The type is missing, or vectors or patterns are not what their kind demands.
    """
    fields = dict(record.items())
    if "type" not in fields:
        raise record.error(
            "the morphology lacks its type", allowed="vectors, patterns, functions, composite", cure="Add the type"
        )
    kind = fields["type"].text()
    if kind not in ("vectors", "patterns"):
        return Morphology(name, kind)
    parameters = dict(fields["parameters"].items()) if "parameters" in fields else {}
    if kind not in parameters:
        raise record.error(f"the morphology lacks parameters.{kind}", allowed="a list", cure="Add the list")
    elements = parameters[kind].elements()
    if kind == "vectors":
        return Morphology(name, kind, vectors=tuple(_vector(element) for element in elements))
    return Morphology(name, kind, patterns=tuple(_pattern_pair(element) for element in elements))


def _vector(field: Field) -> Vector:
    x, y, z = (axis.integer(-_INT32, _INT32) for axis in field.triple())
    return x, y, z


def _pattern_pair(field: Field) -> PatternPair:
    sides = list(field.elements())
    if len(sides) != 2:
        raise field.error("wrong length", allowed="[source pattern, target pattern]", cure="Give both patterns")
    return _pattern(sides[0]), _pattern(sides[1])


def _pattern(field: Field) -> Pattern:
    x, y, z = (_pattern_element(axis) for axis in field.triple())
    return x, y, z


def _pattern_element(field: Field) -> int | str:
    if isinstance(field.value, str):
        if field.value not in ("*", "?", "!"):
            raise field.error(
                "unknown pattern symbol", allowed='"*", "?", "!" or a whole number', cure="Use one of these"
            )
        return field.value
    return field.integer(-_INT32, _INT32)
