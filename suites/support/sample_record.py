"""A record as a run leaves it, made from a seed: for tests of everything that reads records."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np

from reports import store
from reports.judge.verdict import judge_cases
from reports.values.measurement import CaseResult, Measurement, Outcome, Scalar
from reports.values.record import Environment, RunRecord, StageRun

VALIDATOR = jsonschema.Draft202012Validator(
    json.loads(Path(store.__file__).with_name("record.schema.json").read_text(encoding="utf-8"))
)

NO_GPU = "no NVIDIA driver was found (libnvidia-ml.so.1 is not there)"
ONE_GPU = "multi-GPU needs 2 GPUs with peer access; this machine has 1"
_STAGES = (
    ("stage1", "compile", ("KL-1", "KL-3", "KL-4", "ST-1"), None),
    ("stage2", "detect", ("ST-2",), "nvml"),
    ("stage3", "create", ("BE-9", "BE-13", "BE-15", "ST-3"), "gpu"),
    ("stage4", "small genome", ("BE-1", "BE-2", "BE-3", "BE-14", "BE-18", "ST-4"), "gpu"),
    ("stage5", "kernel parity", ("BE-4", "BE-5", "BE-6", "BE-7", "BE-17", "ST-5"), "gpu"),
    ("stage6", "performance", ("BE-5", "BE-8", "ST-6"), "gpu"),
    ("stage7", "multi-GPU", ("MG-1", "MG-4", "ST-7"), "multi_gpu"),
)
_SIZES = {100_000: (0.0061, 0.42), 500_000: (0.0124, 2.3), 1_000_000: (0.0181, 4.9)}
_TRACES = ("common", "delays_frac", "essential_stim", "lif_mix", "stdp_w1", "stdp_w3", "big_fcl12k")


def sample_record(*, gpu: bool = True, faults: bool = True) -> RunRecord:
    """A run with one H200 or without a GPU; ``faults`` plants one of each verdict that is not PASS."""
    cases = (*_simple_cases(gpu), *_parity_cases(gpu, faults), *_latency_cases(gpu), *(_faults() if faults else ()))
    stages = []
    for name, title, requirements, gate in _STAGES:
        is_open = gate is None or (gpu and gate != "multi_gpu")
        closed = ONE_GPU if gpu else NO_GPU
        reason = ("needs nothing" if gate is None else "1 GPU: NVIDIA H200") if is_open else closed
        stages.append(StageRun(name, title, is_open, reason, requirements, duration_s=3.5 * len(stages) + 1.25))
    return RunRecord(
        run_id="2026-11-20T22-14-03-h200" if gpu else "2026-11-20T22-14-03-cpu",
        started_utc="2026-11-20T22:14:03Z",
        finished_utc="2026-11-20T22:19:41Z",
        command=("python", "-m", "stages", "run"),
        asked=(),
        stages=tuple(stages),
        environment=_environment(gpu),
        hardware=_hardware(gpu),
        cases=cases,
        judgements=judge_cases(cases),
    )


def latency(
    backend: str, neurons: int, centre_ms: float, *, scope: str = "device-resident", seed: int = 1, **more: Scalar
) -> Measurement:
    """A burst latency with 60 samples around ``centre_ms``, skewed as timings are."""
    generator = np.random.default_rng(seed + neurons)
    samples = centre_ms * (1.0 + 0.01 * generator.gamma(2.0, 1.0, 60))
    conditions: dict[str, Scalar] = {
        "backend": backend,
        "neurons": neurons,
        "synapses_per_neuron": 100,
        "firing_rate": 0.01,
        "scope": scope,
        **more,
    }
    telemetry: dict[str, Scalar] = {}
    if backend == "cuda":
        telemetry = {"sm_clock_mhz": 1980, "power_w": 312.4, "temperature_c": 47, "throttle_reasons": "none"}
    return Measurement(
        "burst.latency",
        float(np.median(samples)),
        "ms",
        tuple(float(sample) for sample in samples),
        conditions,
        ("BE-6",) if backend == "cuda" else ("BE-5",),
        telemetry,
        "Fired lists checked against the reference over 20 bursts first.",
    )


def _case(stage: str, folder: str, name: str, ids: tuple[str, ...], title: str, **more: object) -> CaseResult:
    fields: dict[str, object] = {"outcome": Outcome.PASSED, "duration_s": 0.8, **more}
    return CaseResult(f"suites/{folder}/{name}", stage, ids, title=title, **fields)  # type: ignore[arg-type]


def _simple_cases(gpu: bool) -> tuple[CaseResult, ...]:
    closed = {} if gpu else {"outcome": Outcome.SKIPPED, "reason": NO_GPU, "duration_s": 0.0}
    prerequisites = tuple(
        Measurement(f"prerequisite.{name}", 1.0, "1", conditions={"subject": "GPU 0", "gpus": 1}, note=note)
        for name, note in (
            ("compute_capability", "9.0, >= 7.0 wanted"),
            ("memory", "150.8 GB, >= 8 GB wanted"),
            ("driver", "570.86.15, >= 520.61.05 wanted"),
            ("pcie", "up to PCIe 5.0 x16, PCIe 3.0 x16 wanted"),
        )
    )
    build = Measurement(
        "network.build_time", 1.31, "s", (1.29, 1.31, 1.34, 1.31, 1.30), {"synapses": 10_000_000}, ("BE-3",)
    )
    compiled = [
        _case(
            "stage1",
            "stage1_compile",
            f"test_build.py::test_builds[{cc}]",
            ("KL-1", "KL-4", "ST-1"),
            f"builds for {cc}",
        )
        for cc in ("7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")
    ]
    genomes = [
        _case("stage4", "stage4_small_genome", f"test_grow.py::test_grows[{name}]", ("BE-1", "ST-4"), f"{name} grows")
        for name in ("barebones", "essential", "test", "vision")
    ]
    return (
        *compiled,
        _case(
            "stage2",
            "stage2_detect",
            "test_prerequisites.py::test_here",
            ("ST-2",),
            "prerequisites of this machine",
            measurements=prerequisites if gpu else (),
            **closed,
        ),
        _case(
            "stage3",
            "stage3_create",
            "test_budget.py::test_refusal",
            ("BE-9", "ST-3"),
            "too large is refused with figures",
        ),
        _case(
            "stage3", "stage3_create", "test_cuda.py::test_arena", ("BE-9",), "arena is aligned on the device", **closed
        ),
        *genomes,
        _case(
            "stage4",
            "stage4_small_genome",
            "test_synthetic.py::test_build_time",
            ("BE-3",),
            "10 M synapses build",
            measurements=(build,),
        ),
        _case(
            "stage4",
            "stage4_small_genome",
            "test_cuda.py::test_round_trip",
            ("BE-1", "ST-4"),
            "uploads and comes back",
            **closed,
        ),
    )


def _parity_cases(gpu: bool, faults: bool) -> tuple[CaseResult, ...]:
    cases = []
    for backend in ("reference", "cpu", "cuda"):
        closed = backend == "cuda" and not gpu
        for trace in _TRACES:
            wrong = 3.0 if faults and (backend, trace) == ("cuda", "stdp_w3") and gpu else 0.0
            note = (
                "burst 41, neuron 1207: potential 0.50000006 expected, 0.5 got" if wrong else "400 of 400 bursts agree"
            )
            figure = Measurement(
                "parity.disagreements",
                wrong,
                "1",
                conditions={"backend": backend, "trace": trace, "bursts": 400},
                note=note,
            )
            cases.append(
                _case(
                    "stage5",
                    "stage5_parity",
                    f"test_traces.py::test_agrees[{backend}-{trace}]",
                    ("BE-4", "ST-5"),
                    f"{trace} on {backend}",
                    outcome=Outcome.SKIPPED if closed else Outcome.FAILED if wrong else Outcome.PASSED,
                    reason=NO_GPU if closed else note if wrong else "",
                    measurements=() if closed else (figure,),
                )
            )
    return tuple(cases)


def _latency_cases(gpu: bool) -> tuple[CaseResult, ...]:
    cases = []
    host = {"device": "AMD EPYC 9554", "threads": 1, "cpu_ghz": 2.6}
    for neurons, (cuda_ms, cpu_ms) in _SIZES.items():
        size = f"{neurons // 1000}K"
        name = "test_latency.py::test_burst"
        cases.append(
            _case(
                "stage6",
                "stage6_performance",
                f"{name}[cpu-{size}]",
                ("BE-5", "ST-6"),
                f"{size} on one core",
                measurements=(latency("cpu", neurons, cpu_ms, scope="step", **host),),
            )
        )
        figures = tuple(
            latency("cuda", neurons, cuda_ms + extra, scope=scope, device="NVIDIA H200", graphs=True)
            for scope, extra in (("device-resident", 0.0), ("launch to download", 0.0171))
        )
        cases.append(
            _case(
                "stage6",
                "stage6_performance",
                f"{name}[cuda-{size}]",
                ("BE-6", "BE-7", "ST-6"),
                f"{size} on the GPU",
                outcome=Outcome.PASSED if gpu else Outcome.SKIPPED,
                reason="" if gpu else NO_GPU,
                measurements=figures if gpu else (),
            )
        )
    cases.append(
        _case(
            "stage7",
            "stage7_multi_gpu",
            "test_shards.py::test_same_on_two",
            ("MG-4", "ST-7"),
            "two GPUs agree with one",
            outcome=Outcome.SKIPPED,
            reason=ONE_GPU if gpu else NO_GPU,
            duration_s=0.0,
        )
    )
    return tuple(cases)


def _faults() -> tuple[CaseResult, ...]:
    """One case each that is marginal, ambiguous, in error, without a figure, and failed outright."""
    link = Measurement("link.latency", 4.2, "us", requirements=("MG-6",))
    shaky = Measurement(
        "network.build_time", 1.98, "s", (1.71, 1.92, 1.98, 2.09, 2.31, 1.88, 2.04), {"synapses": 10_000_000}, ("BE-3",)
    )
    fast = Measurement(
        "copy.bandwidth", 5200.0, "GB/s", conditions={"floor": 4800.0, "device": "NVIDIA H200"}, requirements=("BE-8",)
    )
    absent = Measurement("streaming.link_fraction", float("nan"), "%", requirements=("BE-10",))
    return (
        _case(
            "stage7", "stage7_multi_gpu", "test_link.py::test_latency", ("MG-6",), "peer latency", measurements=(link,)
        ),
        _case(
            "stage4",
            "stage4_small_genome",
            "test_synthetic.py::test_cold",
            ("BE-3",),
            "first build",
            measurements=(shaky,),
        ),
        _case(
            "stage6",
            "stage6_performance",
            "test_limits.py::test_copy",
            ("BE-8",),
            "copy bandwidth",
            measurements=(fast,),
        ),
        _case(
            "stage6",
            "stage6_performance",
            "test_stream.py::test_link",
            ("BE-10",),
            "chunked streaming",
            measurements=(absent,),
        ),
        _case(
            "stage3",
            "stage3_create",
            "test_fallback.py::test_says_why",
            ("BE-15",),
            "fallback says why",
            outcome=Outcome.FAILED,
            reason="AssertionError: the record does not name the backend that was refused",
        ),
    )


def _environment(gpu: bool) -> Environment:
    packages = {"numpy": "2.4.0", "numba": "0.68.1", "pytest": "8.4.2", "hypothesis": "6.140.2", "jinja2": "3.1.6"}
    if gpu:
        packages |= {
            "numba-cuda": "0.30.4",
            "cuda-core": "1.2.0",
            "cupy-cuda12x": "14.2.0",
            "nvidia-ml-py": "13.580.82",
        }
    variables = {"CUDA_VISIBLE_DEVICES": "0"} if gpu else {}
    return Environment("3.11.13", "Linux-6.8.0-x86_64", packages, "81110db3c0ffee5a", True, variables)


def _hardware(gpu: bool) -> dict[str, object]:
    card = {
        "index": 0,
        "name": "NVIDIA H200",
        "compute_capability": [9, 0],
        "memory_total_bytes": 150_754_820_096,
        "pcie_generation": 5,
        "pcie_width": 16,
        "mig_enabled": False,
        "power_limit_w": 700.0,
    }
    return {
        "gpus": [card] if gpu else [],
        "driver_version": "570.86.15" if gpu else None,
        "cuda_driver_version": [12, 8] if gpu else None,
        "host": {
            "os": "Linux",
            "cpu": "AMD EPYC 9554",
            "usable_cores": 16,
            "memory_bytes": 137_438_953_472,
        },
        "problem": None if gpu else NO_GPU,
    }
