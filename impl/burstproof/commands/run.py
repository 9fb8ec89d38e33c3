"""``burstproof run``: run a network, report what fired, leave a record and a picture."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from burstproof.burst.engine import Engine, EngineOptions, Record, Recording, StimulusPlan
from burstproof.burst.machine import this_machine
from burstproof.burst.precision import precision_named
from burstproof.burst.profile import profile_named
from burstproof.burst.select import Choice, choose_backend, start_engine
from burstproof.burst.trace import trace_of_run, trace_paths, write_trace
from burstproof.commands.convert import reading_of
from burstproof.commands.outputs import check_output, write_atomically
from burstproof.commands.progress import task
from burstproof.commands.raster import RasterGrid
from burstproof.commands.raster_png import check_png_possible, raster_png
from burstproof.commands.raster_svg import raster_svg
from burstproof.commands.run_report import RunReport, print_report
from burstproof.commands.settings import configuration_of, engine_options, refuse_what_is_not_built
from burstproof.commands.sources import Kind, check_input, kind_of, read_network
from burstproof.commands.statistics import ActivityCounter
from burstproof.commands.stimulation import parse_stimulations, plan_of, stimulus_bounds
from burstproof.config import Configuration
from burstproof.errors import EnvironmentInvalidError, ExitCode, InputError
from burstproof.network.model import Network

CHUNK_BURSTS = 256
"""Bursts between two looks at what fired; bounds the memory of a run that is not recorded."""


@dataclass(frozen=True)
class Source:
    """The file to run."""

    path: Path
    kind: Kind


@dataclass(frozen=True, eq=False)
class Activity:
    """What a run left: counts, the cells of a picture, and the recordings if a record is wanted."""

    counter: ActivityCounter
    grid: RasterGrid | None
    recordings: list[Recording] | None


def run(options: argparse.Namespace) -> ExitCode:
    """Run what the options name; files and settings are checked before the work begins."""
    source = source_of(options)
    check_outputs(options, source)
    config = configuration_of(options)
    refuse_what_is_not_built(config)
    network = read_network(source.path, source.kind, reading_of(options))
    plan = plan_of(parse_stimulations(network, options.bursts, options.stimulate, options.force))
    settings = engine_options(
        options,
        config,
        profile_named(options.profile),
        emulate_batch_path=options.emulate_batch_path,
        stimulus_bounds=stimulus_bounds(plan, EngineOptions()),
        precision=precision_named(options.precision),
        autotune=options.autotune,
    )
    engine, choice = _start(options, config, network, settings)
    try:
        activity, elapsed_s, first_burst_s = _go(engine, plan, options)
        report = RunReport.of(source.path, source.kind.value, options.seed, engine, choice, config, plan)
        report = report.after(activity.counter, engine.state(), elapsed_s, first_burst_s)
        report = _write_files(options, source, engine, plan, activity, report)
    finally:
        engine.close()
    print_report(report, as_json=options.json)
    return ExitCode.PASS


def source_of(options: argparse.Namespace) -> Source:
    """The one file that the options name.

    Raises
    ------
    InputError
        None or several are named, one that cannot be read, or an ending that does not fit.
    """
    named = {
        "--genome": (options.genome, Kind.GENOME),
        "--connectome": (options.connectome, Kind.CONNECTOME),
        "--network": (options.network, Kind.NETWORK),
        "FILE": (options.input, None),
    }
    given = [(option, path, kind) for option, (path, kind) in named.items() if path is not None]
    if len(given) != 1:
        raise InputError(
            "name one genome, connectome or network",
            got=", ".join(option for option, _, _ in given) or "none",
            cure="See burstproof run --help",
        )
    option, path, kind = given[0]
    found = kind_of(path, option)
    if kind is not None and found is not kind:
        raise InputError(f"this is a {found.value} by its ending", where=option, got=str(path))
    check_input(path, option)
    return Source(path, found)


def check_outputs(options: argparse.Namespace, source: Source) -> None:
    """Refuse outputs that could not be written at the end of the run."""
    if options.record is not None:
        for path in trace_paths(options.record):
            check_output(path, "--record", [source.path])
    if options.raster is not None:
        check_output(options.raster, "--raster", [source.path])
        ending = options.raster.suffix.lower()
        if ending not in (".svg", ".png"):
            raise InputError("unknown ending", where="--raster", got=str(options.raster), allowed=".svg, .png")
        if ending == ".png":
            check_png_possible()


def _start(
    options: argparse.Namespace, config: Configuration, network: Network, settings: EngineOptions
) -> tuple[Engine, Choice]:
    """The engine, after any fallback; a fallback is said on standard error as well as in the record."""
    choice = choose_backend(
        config.compute.backend,
        network.neuron_count,
        options.firing_rate,
        config,
        this_machine(),
        allow_fallback=options.allow_fallback,
    )
    with task(f"starting {choice.backend}", shown=not options.json):
        engine, choice = start_engine(choice, network, settings, allow_fallback=options.allow_fallback)
    if choice.fallback:
        print(f"burstproof: note: running on {choice.backend}: {choice.fallback}", file=sys.stderr)
    return engine, choice


def _go(engine: Engine, plan: StimulusPlan, options: argparse.Namespace) -> tuple[Activity, float, float]:
    """Run all bursts in chunks; returns what they did and the times they and the first of them took, in seconds."""
    grid = RasterGrid(engine.network, options.bursts) if options.raster is not None else None
    activity = Activity(ActivityCounter(engine.network), grid, [] if options.record is not None else None)
    times_s: list[float] = []
    with task(f"running on {engine.backend}", options.bursts, shown=not options.json) as bar:
        for count in _chunks(options.bursts):
            started = time.perf_counter()
            chunk = engine.run(count, plan, Record.FIRED, bar.advance)
            times_s.append(time.perf_counter() - started)
            activity.counter.add(chunk)
            if activity.grid is not None:
                activity.grid.add(chunk)
            if activity.recordings is not None:
                activity.recordings.append(chunk)
    return activity, sum(times_s), times_s[0]


def _chunks(bursts: int) -> Iterator[int]:
    """The first burst alone, since it compiles, then as many at a time as memory is to hold."""
    yield 1
    for done in range(1, bursts, CHUNK_BURSTS):
        yield min(CHUNK_BURSTS, bursts - done)


def _write_files(
    options: argparse.Namespace,
    source: Source,
    engine: Engine,
    plan: StimulusPlan,
    activity: Activity,
    report: RunReport,
) -> RunReport:
    """Write record and picture; returns the report with their names."""
    files: list[str] = []
    if activity.recordings is not None:
        with task("writing the record", shown=not options.json):
            whole = _joined(activity.recordings)
            trace = trace_of_run(engine.network, engine.options, whole, plan, engine.state(), options.record.name)
            trace = report.in_trace(trace)
            try:
                files += [str(path) for path in write_trace(options.record, trace)]
            except OSError as error:
                raise EnvironmentInvalidError(
                    f"cannot be written: {error.strerror}", where=str(options.record), cure="Free space there"
                ) from None
    if activity.grid is not None:
        raster = activity.grid.raster()
        png = options.raster.suffix.lower() == ".png"
        title = f"{source.path.name} on {engine.backend}, {engine.options.profile.name}"
        write_atomically(options.raster, raster_png(raster, title) if png else raster_svg(raster, title).encode())
        files.append(str(options.raster))
    return report.with_files(files)


def _joined(chunks: Sequence[Recording]) -> Recording:
    """Consecutive recordings as one."""
    return Recording(
        bursts=np.concatenate([chunk.bursts for chunk in chunks]),
        fired_counts=np.concatenate([chunk.fired_counts for chunk in chunks]),
        candidate_counts=np.concatenate([chunk.candidate_counts for chunk in chunks]),
        fired_ids=np.concatenate([chunk.fired_ids for chunk in chunks]),
        fired_potentials=np.concatenate([chunk.fired_potentials for chunk in chunks]),
    )
