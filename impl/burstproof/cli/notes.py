"""What is to be said of a network whose genome was not grown as it stands, or holds what nobody examined."""

from __future__ import annotations

from collections.abc import Mapping

from burstproof.network.grow.unmodelled import listed

WORDS = {
    "unmodelled": "ignored, though the released engine acts on it: it may fire otherwise; BE-1, BE-4, BE-19 not proven",
    "as_the_engine": "growth ended early, as in the released engine",
    "skipped_areas": "skipped with their synapses: no family has the first letter of the id",
    "not_covered": "not under the checksum of the file: a change of it could not be noticed",
    "not_examined": "accepted; nobody examined what it does to a burst",
}
"""Keys of a network's provenance that hold such notes, and what each means."""


def notes_in(provenance: Mapping[str, str]) -> dict[str, str]:
    """The notes that a network's provenance holds, in the order in which they are said."""
    return {key: provenance[key] for key in WORDS if key in provenance}


def note_lines(notes: Mapping[str, str]) -> list[str]:
    """One line for each note; a long one names the first things and counts the others."""
    return [f"{key.replace('_', ' ')}: {WORDS[key]}: {listed(text.split('; '))}" for key, text in notes.items()]
