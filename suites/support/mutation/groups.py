"""What is mutated, which cases have to notice, and which mutants nobody can tell from the original."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True)
class Group:
    """Modules and the cases that decide about their mutants.

    Attributes
    ----------
    name : str
    modules : tuple of str
        Files relative to the checkout.
    cases : tuple of str
        Arguments of pytest: few and quick ones, since they run once for each mutant; what notices most comes first.
    parts : int
        The nightly plan tries the mutants in so many cases, of 34 to 60 mutants each.
    """

    name: str
    modules: tuple[str, ...]
    cases: tuple[str, ...]
    parts: int = 1


_JUDGE = "suites/unit/reports/judge"
_QUICK = "--bp-plan=quick"
_FEATURES = (
    "suites/stage5_parity/test_features.py::test_feature_case",
    "suites/stage5_parity/test_feature_states.py",
    "suites/stage5_parity/test_features.py::test_a_run_goes_on_from_any_burst",
    "suites/stage5_parity/test_features.py::test_recording_of_features_agrees",
    "-k",
    "reference or specification",
    _QUICK,
)

GROUPS = (
    Group("verdict", ("reports/judge/verdict.py",), (f"{_JUDGE}/test_verdict.py", _QUICK), parts=3),
    Group(
        "statistics",
        ("reports/judge/statistics.py", "reports/judge/difference.py"),
        (
            f"{_JUDGE}/test_statistics.py",
            f"{_JUDGE}/test_difference.py",
            f"{_JUDGE}/test_shared_spread.py::test_few_figures_and_such_without_noise_keep_their_own_p_values",
            f"{_JUDGE}/test_compare.py::test_three_runs_a_side_are_enough_for_a_large_change",
        ),
        parts=5,
    ),
    Group(
        "compare",
        (
            "reports/judge/compare.py",
            "reports/judge/findings.py",
            "reports/judge/parts.py",
            "reports/judge/direction.py",
            "reports/judge/variation.py",
        ),
        (
            f"{_JUDGE}/test_compare.py",
            "-k",
            "not command and not markdown and not two_cards",
        ),
        parts=7,
    ),
    Group(
        "seal",
        ("reports/judge/admit.py", "reports/values/seal.py"),
        (f"{_JUDGE}/test_admit.py", "suites/unit/reports/values/test_seal.py", "-k", "not folder_counts"),
        parts=3,
    ),
    Group(
        "gating",
        ("hardware/gates.py", "stages/gating.py"),
        (
            "suites/unit/stages/test_gating.py",
            "suites/stage2_detect/test_fake_machines.py",
            "suites/harness/test_plugin.py",
            "-k",
            "machines or gate or gating",
        ),
        parts=2,
    ),
    Group(
        "results",
        ("stages/collected.py", "stages/results.py"),
        (
            "suites/unit/stages/test_results.py",
            "suites/unit/stages/test_collected.py::test_a_file_of_results_is_continued_after_a_crash",
        ),
        parts=2,
    ),
    Group(
        "recovery",
        ("stages/recovery.py",),
        ("suites/unit/stages/test_recovery.py",),
    ),
    Group(
        "rules",
        ("impl/burstproof/engine/rules.py",),
        ("suites/unit/burstproof/engine/test_rules.py",),
        parts=2,
    ),
    Group(
        "dynamics",
        ("impl/burstproof/engine/cpu/dynamics.py",),
        (
            "suites/unit/burstproof/engine/cpu/test_dynamics.py::test_candidates_are_counted_over_all_blocks",
            "suites/unit/burstproof/engine/cpu/test_dynamics.py::test_blocks_rest_where_a_burst_changes_nothing",
            "suites/unit/burstproof/engine/cpu/test_dynamics.py::test_a_block_rests_whatever_its_neighbours_do",
            "suites/unit/burstproof/engine/cpu/test_dynamics.py::test_waiting_countdowns_let_a_block_rest",
            "suites/stage5_parity/test_cases.py",
            "suites/unit/burstproof/engine/cpu/test_dynamics.py::test_a_clamped_potential_of_minus_zero_stays",
            "suites/unit/burstproof/engine/cpu/test_dynamics.py::test_full_counts_block",
            "suites/unit/burstproof/engine/cpu/test_dynamics.py::test_specialised_kernels_without_countdowns_agree",
            "suites/stage5_parity/test_cpu_engine.py::test_specialised_kernels_agree",
            "suites/stage5_parity/test_cpu_engine.py::test_batch_path_is_emulated_from_ten_thousand_candidates",
            "suites/stage5_parity/test_features.py::test_recording_of_features_agrees",
            "-k",
            "are_counted or feagi-2.6-1 or neighbours or waiting_countdowns or zero_stays or counts_block or "
            "specialised or emulated_from or (thread and not threads and (not recording or int8))",
        ),
        parts=4,
    ),
    Group(
        "reference",
        ("impl/burstproof/engine/reference.py", "impl/burstproof/engine/reference_state.py"),
        (
            "suites/unit/burstproof/engine/test_reference.py",
            "suites/unit/burstproof/engine/test_interruption.py",
            "suites/unit/burstproof/engine/test_admission.py",
            "suites/stage5_parity/test_cases.py",
            *_FEATURES,
            "suites/unit/burstproof/engine/test_rules.py",
        ),
        parts=5,
    ),
    Group(
        "sections",
        (
            "impl/burstproof/engine/reference_features.py",
            "impl/burstproof/engine/reference_plasticity.py",
            "impl/burstproof/engine/reference_associative.py",
            "impl/burstproof/engine/reference_appearing.py",
            "impl/burstproof/engine/reference_memory.py",
            "impl/burstproof/engine/reference_memory_state.py",
        ),
        ("suites/unit/burstproof/engine/test_reference.py", "suites/stage5_parity/test_cases.py", *_FEATURES),
        parts=9,
    ),
)


@cache
def equivalent() -> dict[str, dict[str, str]]:
    """By module, the names of mutants that behave as the original does, each with the reason."""
    with EQUIVALENT.open("rb") as stream:
        return tomllib.load(stream)
