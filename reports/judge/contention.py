"""Whether other work kept the machine busy during a stage, so that its timings are in doubt."""

from __future__ import annotations

from reports.values import units
from reports.values.measurement import Measurement, Verdict
from reports.values.record import RunRecord, StageRun

BUSY_SHARE = 0.1
"""Share of the CPU time of all cores, taken by others or stolen by a hypervisor, from which timings are in doubt."""

_TIMED = ("time", "bandwidth", "arithmetic", "tokens/s")
_CURE = "run again on an idle machine"


def busy(stage: StageRun) -> str:
    """Return ``other processes took 60 % of the CPU``, or the empty string if the stage had the machine to itself."""
    shares = {"other processes took": "others", "the hypervisor took": "steal"}
    found = [(stage.contention.get(name, 0.0), who) for who, name in shares.items()]
    return " and ".join(
        f"{who} {share:.0%} of the CPU".replace("%", " %") for share, who in found if share >= BUSY_SHARE
    )


def in_doubt(record: RunRecord) -> list[str]:
    """A sentence for each stage whose timings failed, or were ambiguous, while other work kept the machine busy."""
    stage_of = {case.case: case.stage for case in record.cases}
    figures = record.by_place
    timings = [one for one in record.judgements if _is_timing(figures.get((one.case, one.index)))]
    said = []
    for stage in record.stages:
        why = busy(stage)
        found = {judged.judgement.verdict for judged in timings if stage_of.get(judged.case) == stage.stage}
        if why and Verdict.FAIL in found:
            said.append(f"timings of {stage.stage} may have missed their targets because {why}; {_CURE}")
        elif why and Verdict.AMBIGUOUS in found:
            said.append(f"timings of {stage.stage} could not be judged: {why}; {_CURE}")
    return said


def _is_timing(measurement: Measurement | None) -> bool:
    """Whether a figure is a time or a rate."""
    return measurement is not None and units.dimension(measurement.unit) in _TIMED
