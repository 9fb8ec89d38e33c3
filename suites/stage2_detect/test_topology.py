"""Topology facts on recorded machines: how pairs are joined and what line rate to expect (MG-6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hardware.nvml_codes import NvLinkRemote, NvmlCode, P2pStatus, TopologyLevel
from hardware.roofline import profile_for
from hardware.topology import NVLINK_GB_PER_S, Path, pcie_gb_per_s, topology_of
from suites.support.fake_nvml import H100, H200, FakeMachine, dgx_h100, h200_box, mig_box, no_nvml, v100_pair

pytestmark = pytest.mark.requirement("MG-6")


def test_a_dgx_is_a_full_mesh_of_eighteen_links() -> None:
    topology = topology_of(dgx_h100().inventory())
    for row in range(8):
        for column in range(8):
            itself = row == column
            assert topology.nvlinks[row][column] == (0 if itself else 18)
            assert topology.nvlink_versions[row][column] == (None if itself else "4.0")
            assert topology.paths[row][column] is (Path.SELF if itself else Path.NVLINK)
            assert topology.line_rates_gb_per_s[row][column] == (None if itself else 450.0)
            assert topology.read[row][column] == (None if itself else "ok")
            assert topology.atomics[row][column] == (None if itself else "ok")
            assert topology.levels[row][column] == (None if itself else "system")


def test_direct_links_join_neighbours_only() -> None:
    four = replace(v100_pair(), gpus=v100_pair().gpus * 2, level=TopologyLevel.NUMA_NODE)
    topology = topology_of(four.inventory())
    assert topology.nvlinks == ((0, 6, 0, 0), (6, 0, 0, 0), (0, 0, 0, 6), (0, 0, 6, 0))
    assert topology.paths[0] == (Path.SELF, Path.NVLINK, Path.PCIE, Path.PCIE)
    assert topology.line_rates_gb_per_s[0][1] == 150.0
    assert topology.line_rates_gb_per_s[0][2] == pytest.approx(15.76)
    assert topology.levels[0][1] == "numa node"


def test_links_without_granted_access_carry_nothing() -> None:
    topology = topology_of(replace(h200_box(2), p2p=P2pStatus.NOT_SUPPORTED).inventory())
    assert topology.nvlinks[0][1] == 0, "links to a switch count only where NVML grants peers over NVLink"
    assert topology.paths[0][1] is Path.HOST_STAGED
    assert topology.line_rates_gb_per_s[0][1] == pytest.approx(63.0, abs=0.1)
    assert topology.read[0][1] == "not supported"


def test_the_pair_counts_the_fewer_links() -> None:
    degraded = replace(H200, nvlinks=16)
    topology = topology_of(FakeMachine(gpus=(H200, degraded)).inventory())
    assert topology.nvlinks[0][1] == topology.nvlinks[1][0] == 16
    assert topology.line_rates_gb_per_s[0][1] == 400.0


def test_a_remote_that_nvml_does_not_know_counts_as_a_switch() -> None:
    hidden = replace(H100, nvlink_remote=NvLinkRemote.UNKNOWN)
    topology = topology_of(FakeMachine(gpus=(hidden, hidden)).inventory())
    assert topology.nvlinks[0][1] == 18


def test_an_unknown_version_has_no_line_rate() -> None:
    machine = replace(h200_box(2), failures={("nvlink_version", None): NvmlCode.UNKNOWN})
    topology = topology_of(machine.inventory())
    assert topology.paths[0][1] is Path.NVLINK
    assert topology.line_rates_gb_per_s[0][1] is None


def test_few_gpus_and_mig() -> None:
    assert topology_of(no_nvml().inventory()).indices == ()
    assert topology_of(h200_box(1).inventory()).nvlinks == ((0,),)
    assert topology_of(mig_box().inventory()).paths[0][1] is Path.HOST_STAGED


@pytest.mark.parametrize(
    ("generation", "width", "expected"),
    [(3, 16, 15.76), (5, 16, 63.0), (4, 8, 15.75), (None, 16, None), (4, None, None)],
)
def test_pcie_rates(generation: int | None, width: int | None, expected: float | None) -> None:
    rate = pcie_gb_per_s(generation, width)
    assert rate == (None if expected is None else pytest.approx(expected, abs=0.01))


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("Tesla V100-SXM2-16GB", "2.0"),
        ("NVIDIA A100-SXM4-80GB", "3.0"),
        ("NVIDIA H100 80GB HBM3", "4.0"),
        ("NVIDIA B200", "5.0"),
    ],
)
def test_profiles_and_versions_agree_on_the_rate_of_a_link(name: str, version: str) -> None:
    profile = profile_for(name)
    assert profile is not None
    assert profile.peak("nvlink_gb_per_s_per_link") == NVLINK_GB_PER_S[version]
