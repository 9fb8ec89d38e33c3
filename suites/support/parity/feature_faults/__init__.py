"""Faulty engines for features: the reference with one rule of FEATURES.md changed, by section.

Each must fail a case worked out by hand. A fault in a part of the reference replaces that part of the engine.
"""

from __future__ import annotations

from burstproof.engine.reference import ReferenceEngine
from suites.support.parity.feature_faults import appearing, learning, signals

FEATURE_FAULTS: tuple[type[ReferenceEngine], ...] = (*signals.FAULTS, *learning.FAULTS, *appearing.FAULTS)
"""Every faulty engine; the number in its text is the section."""
