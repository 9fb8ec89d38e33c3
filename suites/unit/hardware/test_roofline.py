"""Profiles and the least time of a piece of work."""

from __future__ import annotations

from pathlib import Path

import pytest

from burstproof.errors import ConfigError
from hardware.roofline import Work, all_profiles, floor_us, profile_for, read_profile

pytestmark = pytest.mark.requirement("ST-6")


@pytest.mark.parametrize(
    ("gpu_name", "bandwidth"),
    [
        ("Tesla V100-SXM2-16GB", 900),
        ("Tesla V100-PCIE-32GB", 900),
        ("NVIDIA A100-SXM4-40GB", 1555),
        ("NVIDIA A100-SXM4-80GB", 2039),
        ("NVIDIA A100 80GB PCIe", 1935),
        ("NVIDIA H100 80GB HBM3", 3350),
        ("NVIDIA H100 PCIe", 2000),
        ("NVIDIA H100 NVL", 3938),
        ("NVIDIA H200", 4800),
        ("NVIDIA H200 NVL", 4800),
        ("NVIDIA B200", 8000),
        ("NVIDIA GeForce RTX 4090", 1008),
        ("NVIDIA L40S", 864),
        ("NVIDIA GeForce RTX 3080", 760),
    ],
)
def test_nvml_names_lead_to_one_profile(gpu_name: str, bandwidth: float) -> None:
    profile = profile_for(gpu_name)
    assert profile is not None
    assert profile.peak("memory_bandwidth_gb_per_s") == bandwidth


@pytest.mark.parametrize(
    "gpu_name",
    [None, "", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA L40", "NVIDIA GB200", "NVIDIA H100 80GB HBM3 MIG 1g.10gb"],
)
def test_a_model_without_a_profile_has_none(gpu_name: str | None) -> None:
    assert profile_for(gpu_name) is None


def test_profiles_do_not_overlap_and_carry_what_a_floor_needs() -> None:
    profiles = all_profiles()
    assert len({profile.name for profile in profiles}) == len(profiles) >= 14
    for profile in profiles:
        assert profile.peak("memory_bandwidth_gb_per_s")
        assert all(figure.source for figure in (*profile.peaks.values(), *profile.measured.values()))
    names = ["NVIDIA H100 80GB HBM3", "NVIDIA H100 NVL", "NVIDIA H200", "NVIDIA H200 NVL", "NVIDIA A100-SXM4-80GB"]
    assert len({profile_for(name).name for name in names}) == len(names)  # type: ignore[union-attr]


def test_measured_figures_stay_below_the_vendors_peaks() -> None:
    compared = 0
    for profile in all_profiles():
        copied, peak = profile.measured_value("copy_gb_per_s"), profile.peak("memory_bandwidth_gb_per_s")
        if copied is not None and peak is not None:
            assert copied < peak
            compared += 1
    assert compared >= 1


def test_the_floor_of_known_work_on_an_h200() -> None:
    h200 = profile_for("NVIDIA H200")
    assert h200 is not None
    assert floor_us(Work(), h200) == 0
    assert floor_us(Work(bytes=4.8e9), h200) == pytest.approx(1000)
    assert floor_us(Work(reductions=95e6), h200) == pytest.approx(1000)
    assert floor_us(Work(bytes=4.8e6, reductions=95e6, nodes=2), h200) == pytest.approx(1000 + 2 * 0.77)
    # The measured burst of 1 M neurons x 100 at 1 % (20 us) lies above the floor of its million reductions.
    assert floor_us(Work(reductions=1e6, nodes=2), h200) == pytest.approx(12.07, abs=0.01)


def test_what_a_profile_does_not_know_adds_nothing() -> None:
    v100 = profile_for("Tesla V100-SXM2-16GB")
    assert v100 is not None
    assert v100.measured_value("random_reductions_g_per_s") is None
    assert floor_us(Work(bytes=9e8, reductions=1e12, nodes=5), v100) == pytest.approx(1000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "cannot be read"),
        ("name = 'x'", "cannot be read"),
        ("name = 'x'\npattern = 'x'\n[peak]\nspeed = { value = 1, source = 's' }", "unknown figure"),
        ("name = 'x'\npattern = 'x'\n[peak]\nfp32_tflops = 3", "positive value and its source"),
        ("name = 'x'\npattern = 'x'\n[peak]\nfp32_tflops = { value = 0, source = 's' }", "positive value"),
        ("name = 'x'\npattern = 'x'\n[measured]\ngraph_node_us = { value = 1 }", "its source"),
    ],
    ids=["no TOML", "no pattern", "unknown figure", "no table", "zero", "no source"],
)
def test_a_bad_profile_names_the_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        read_profile(path)
    assert "bad.toml" in str(caught.value)
