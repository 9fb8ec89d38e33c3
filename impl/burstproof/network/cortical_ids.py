"""Cortical ids: 8 characters, which recordings, genomes and tables keep as base64."""

from __future__ import annotations

import base64
import binascii


def encode_id(raw: bytes) -> str:
    """The base64 text of the 8 bytes of a cortical id, as it appears in recordings and genomes."""
    return base64.b64encode(raw).decode("ascii")


def readable_id(cortical_id: str) -> str:
    """The 8 characters behind a base64 id without the padding at their end, or the id where they cannot be printed."""
    try:
        text = base64.b64decode(cortical_id).decode("latin-1")
    except binascii.Error:
        return cortical_id
    return text.rstrip("_") or text if text.isascii() and text.isprintable() else cortical_id
