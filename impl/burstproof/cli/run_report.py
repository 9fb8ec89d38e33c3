"""What ``burstproof run`` reports: as text, as JSON, and inside the record."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burstproof.analysis.statistics import ActivityCounter, AreaActivity, activity_table
from burstproof.cli.notes import note_lines, notes_in
from burstproof.cli.sharding import ShardingReport
from burstproof.config import Configuration, Setting
from burstproof.engine.cuda.tuning.cache import Launch
from burstproof.engine.options import EngineOptions
from burstproof.engine.precision import Storage, storage_for
from burstproof.engine.protocol import Engine
from burstproof.engine.select import Choice
from burstproof.engine.state import EngineState, StimulusPlan
from burstproof.engine.trace import Trace
from burstproof.network.fixed_point import FixedPoint


@dataclass(frozen=True)
class RunReport:
    """One run.

    Attributes
    ----------
    source, kind : str
        The file and what it holds.
    seed : int
        Seed of the growth.
    neurons, synapses : int
    choice : Choice
        The backend, why, and what was fallen back from.
    launch : str
        Threads of the CPU engine, or launch configuration of the CUDA engine; 0 in it is the engine's own choice.
    options : EngineOptions
        Profile, batch path and stimulus bounds.
    fixed_point : FixedPoint
        Scale and width of the accumulation.
    storage : Storage
        Format of the stored potentials.
    notes : dict
        What the network's provenance says of a genome that was not grown as it stands (``notes.WORDS``).
    genome_precision : str
        What the genome names as its ``quantization_precision``; empty where it names nothing.
    stimulated_bursts : int
        Bursts that the stimulus plan names.
    settings : tuple of Setting
        The effective configuration.
    first_burst, last_burst : int
        Those that firings and areas count.
    resumed_after : int or None
        Burst of the checkpoint from which the run went on; the times are those of the bursts after it.
    elapsed_s, first_burst_s : float
        Host time of all bursts and of the first, which compilation makes long.
    firings : int
    clamped : bool
        Whether a contribution was ever clamped (SEMANTICS section 7).
    areas : tuple of AreaActivity
    files : tuple of str
        What was written.
    shards : ShardingReport or None
        Where the network was split: how, and what that cost.
    """

    source: str
    kind: str
    seed: int
    neurons: int
    synapses: int
    choice: Choice
    launch: str
    options: EngineOptions
    fixed_point: FixedPoint
    storage: Storage
    notes: dict[str, str]
    genome_precision: str
    stimulated_bursts: int
    settings: tuple[Setting, ...]
    first_burst: int
    last_burst: int = 0
    elapsed_s: float = 0.0
    first_burst_s: float = 0.0
    firings: int = 0
    clamped: bool = False
    areas: tuple[AreaActivity, ...] = ()
    files: tuple[str, ...] = ()
    shards: ShardingReport | None = None
    resumed_after: int | None = None

    @classmethod
    def of(
        cls,
        source: Path,
        kind: str,
        seed: int,
        engine: Engine,
        choice: Choice,
        config: Configuration,
        plan: StimulusPlan,
        start: tuple[int, int] | None = None,
    ) -> RunReport:
        """What is known before the first burst; ``start``: burst counts before which nothing was counted, and run."""
        counted_from, resumed_after = start or (engine.network.burst_count, engine.network.burst_count)
        network = engine.network
        return cls(
            source=str(source),
            kind=kind,
            seed=seed,
            neurons=network.neuron_count,
            synapses=network.synapse_count,
            choice=choice,
            launch=_launch(engine),
            options=engine.options,
            fixed_point=engine.fixed_point,
            storage=storage_for(engine.options.precision, network.neurons.thresholds),
            notes=notes_in(network.provenance),
            genome_precision=network.provenance.get("quantization_precision", ""),
            stimulated_bursts=len(plan),
            settings=config.settings(),
            first_burst=counted_from + 1,
            resumed_after=resumed_after if resumed_after > network.burst_count else None,
        )

    def after(self, counter: ActivityCounter, end: EngineState, elapsed_s: float, first_burst_s: float) -> RunReport:
        """The report with what the bursts did."""
        return dataclasses.replace(
            self,
            last_burst=end.burst_count,
            elapsed_s=elapsed_s,
            first_burst_s=first_burst_s,
            firings=counter.firings,
            clamped=end.clamped,
            areas=counter.areas(),
        )

    def with_files(self, files: Sequence[str]) -> RunReport:
        """The report with the names of the files written."""
        return dataclasses.replace(self, files=tuple(files))

    def of_shards(self, shards: ShardingReport | None) -> RunReport:
        """The report with what is to be said of the shards."""
        return dataclasses.replace(self, shards=shards)

    @property
    def bursts(self) -> int:
        """Bursts run."""
        return self.last_burst - self.first_burst + 1

    @property
    def timed_bursts(self) -> int:
        """Bursts that the times are of."""
        return self.last_burst - (self.first_burst - 1 if self.resumed_after is None else self.resumed_after)

    @property
    def rate(self) -> float:
        """Firings per neuron and burst."""
        chances = self.neurons * self.bursts
        return self.firings / chances if chances else 0.0

    def in_trace(self, trace: Trace) -> Trace:
        """``trace`` with where it came from, what ran it and any fallback."""
        return dataclasses.replace(
            trace,
            settings={
                **trace.settings,
                **self.notes,
                "source": self.source,
                "seed": self.seed,
                "backend": self.choice.backend,
                "backend_requested": self.choice.requested,
                "backend_reason": self.choice.reason,
                "fallback": self.choice.fallback,
                "sums_exact": self.fixed_point.exact,
                "clamped": self.clamped,
            },
        )


def _launch(engine: Engine) -> str:
    if engine.backend == "cuda":
        return str(Launch.of(engine.options.cuda))
    if engine.backend == "wgpu":
        return f"adapter {getattr(engine, 'adapter', '')}"
    threads = getattr(engine, "threads", 0)
    return f"{threads} thread{'s' if threads != 1 else ''}" if threads else ""


def print_report(report: RunReport, *, as_json: bool) -> None:
    """Print the report on standard output."""
    print(json.dumps(as_values(report), indent=1) if as_json else as_text(report))


def as_values(report: RunReport) -> dict[str, Any]:
    """The report as values that JSON can hold."""
    return {
        "notes": report.notes,
        "source": {"path": report.source, "kind": report.kind, "seed": report.seed},
        "neurons": report.neurons,
        "synapses": report.synapses,
        "backend": dataclasses.asdict(report.choice),
        "launch": report.launch,
        "shards": report.shards.values() if report.shards else None,
        "profile": report.options.profile.name,
        "emulate_batch_path": report.options.emulate_batch_path,
        "stimulus": {
            "bursts": report.stimulated_bursts,
            "max_stimulus": report.options.max_stimulus,
            "fractional_stimulus": report.options.fractional_stimulus,
        },
        "fixed_point": {**dataclasses.asdict(report.fixed_point), "clamped": report.clamped},
        "potentials": {
            "precision": report.storage.precision.value,
            "step": report.storage.step,
            "genome_asks_for": report.genome_precision or None,
        },
        "bursts": {"first": report.first_burst, "last": report.last_burst, "count": report.bursts},
        "resumed_after": report.resumed_after,
        "elapsed_s": report.elapsed_s,
        "first_burst_s": report.first_burst_s,
        "firings": report.firings,
        "rate": report.rate,
        "areas": [dataclasses.asdict(area) for area in report.areas],
        "configuration": [dataclasses.asdict(item) for item in report.settings],
        "files": list(report.files),
    }


def _times(report: RunReport) -> str:
    first = f"the first {report.first_burst_s:.3f} s, compilation included"
    if report.timed_bursts < 2:
        return first
    return f"{first}; then {1000 * (report.elapsed_s - report.first_burst_s) / (report.timed_bursts - 1):.3f} ms each"


def _wish(report: RunReport) -> str:
    return f" (the genome names {report.genome_precision})" if report.genome_precision else ""


def as_text(report: RunReport) -> str:
    """The report for people."""
    clamped = ", a contribution was clamped" if report.clamped else ""
    resumed = "" if report.resumed_after is None else f", resumed after {report.resumed_after},"
    lines = [
        *note_lines(report.notes),
        f"{report.kind:<11}{report.source}: {report.neurons} neurons, {report.synapses} synapses, "
        f"{len(report.areas)} areas",
        f"{'backend':<11}{report.choice.backend}: {report.choice.reason}" + (report.launch and f"; {report.launch}"),
    ]
    if report.choice.fallback:
        lines.append(f"{'fallback':<11}{report.choice.fallback}")
    if report.shards:
        lines.append(f"{'shards':<11}{report.shards.text()}")
    lines += [
        f"{'rules':<11}{report.options.profile.name}, {report.fixed_point}{clamped}, "
        f"{report.storage.words}{_wish(report)}",
        f"{'bursts':<11}{report.first_burst}...{report.last_burst}{resumed} in {report.elapsed_s:.3f} s "
        f"({_times(report)})",
        f"{'firings':<11}{report.firings}, {100 * report.rate:.4f} % of the neurons per burst",
        "",
        activity_table(report.areas),
    ]
    if report.files:
        lines += ["", *(f"wrote {name}" for name in report.files)]
    return "\n".join(lines)
