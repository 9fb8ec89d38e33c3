"""How a process finds out that it is one of several ranks (MG-5)."""

from __future__ import annotations

import sys

import pytest

from burstproof.engine.cluster.launch import Place, place_of
from burstproof.engine.cluster.mpi import load_mpi
from burstproof.errors import EnvironmentInvalidError, InputError

pytestmark = pytest.mark.requirement("MG-5", "ST-7")


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, None),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, Place(2, 4)),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, Place(0, 2)),
        ({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "3"}, Place(1, 3)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, None),
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, None),
    ],
    ids=["no launcher", "mpich", "Open MPI", "srun", "a batch script outside srun", "one rank"],
)
def test_a_rank_knows_its_place(variables: dict[str, str], place: Place | None) -> None:
    assert place_of(variables) == place


def test_a_launcher_that_counts_in_words_is_refused() -> None:
    with pytest.raises(InputError, match="PMI_RANK, PMI_SIZE"):
        place_of({"PMI_RANK": "one", "PMI_SIZE": "2"})


def test_mpi_that_is_not_installed_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(EnvironmentInvalidError, match=r"pip install '\.\[cluster\]'"):
        load_mpi()
