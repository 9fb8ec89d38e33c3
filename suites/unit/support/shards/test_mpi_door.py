"""What ranks wrote, without the colours of their launcher."""

from __future__ import annotations

import json

import pytest

from suites.support.shards.mpi_door import undecorated

pytestmark = pytest.mark.requirement("MG-5")


@pytest.mark.parametrize("escape", ["\x1b", r"\x1b"], ids=["byte", "text"])
def test_colours_of_a_launcher_are_left_out(escape: str) -> None:
    """Open MPI writes them as bytes, and on one machine wrote the escape as the four characters that stand for it."""
    document = {"spikes": 3, "name": "a[0m"}
    coloured = f"{escape}[1;32m{escape}[0m{json.dumps(document)}{escape}[0m\n"
    assert json.loads(undecorated(coloured)) == document
