"""Tables and names as a terminal can show them."""

from __future__ import annotations

import pytest

from burstproof.analysis.text import printable, table

pytestmark = pytest.mark.requirement("BE-18")


def test_table_and_printable() -> None:
    assert table(("a", "b"), [("x", "10"), ("yy", "2")]) == "a    b\n--  --\nx   10\nyy   2"
    assert printable("a\nb\x1b" + "c" * 100, 10) == "a?b?ccc..."
