"""``burstproof run``: run a network, report what fired, leave a record and a picture."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from burstproof.analysis.picture import check_extension, write_raster
from burstproof.analysis.raster import RasterGrid
from burstproof.analysis.statistics import ActivityCounter
from burstproof.cli.checkpoints import Checkpoints, chunks
from burstproof.cli.cluster import ending_all_ranks, join_ranks, together
from burstproof.cli.convert import reading_of
from burstproof.cli.outputs import check_output
from burstproof.cli.progress import task
from burstproof.cli.run_report import RunReport, print_report
from burstproof.cli.settings import configuration_of, engine_options
from burstproof.cli.sharding import (
    Sharding,
    as_asked,
    check_splitting,
    reshard,
    sharding_of,
    sharding_report,
    why_shards_run_there,
)
from burstproof.cli.sources import check_input, read_network
from burstproof.cli.stimulation import parse_stimulations
from burstproof.config import Configuration
from burstproof.engine.ask_machine import this_machine
from burstproof.engine.machine import Machine
from burstproof.engine.options import EngineOptions
from burstproof.engine.precision import precision_named
from burstproof.engine.profile import profile_named
from burstproof.engine.protocol import Engine
from burstproof.engine.recorder import joined
from burstproof.engine.select import Choice, choose_backend, engine_factory, start_engine
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.state import EngineState, Record, Recording, StimulusPlan
from burstproof.engine.stimulation import plan_of, stimulus_bounds
from burstproof.engine.trace import trace_of_run, trace_paths, write_trace
from burstproof.errors import BurstproofError, EnvironmentInvalidError, ExitCode, InputError
from burstproof.network.model import Network
from burstproof.sources import Kind, kind_of

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

    def add(self, chunk: Recording) -> None:
        """Take in some more bursts."""
        self.counter.add(chunk)
        if self.grid is not None:
            self.grid.add(chunk)
        if self.recordings is not None:
            self.recordings.append(chunk)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything that was read, checked and started before the first burst."""

    source: Source
    config: Configuration
    plan: StimulusPlan
    engine: Engine
    choice: Choice
    checkpoints: Checkpoints
    recorded: list[Recording]

    @property
    def start(self) -> tuple[int, int]:
        """Burst counts before which nothing was counted, and nothing run: a checkpoint may hold a record."""
        begun = self.engine.network.burst_count
        resumed = begun if self.checkpoints.resumed_after is None else self.checkpoints.resumed_after
        return begun if self.recorded else resumed, resumed


def run(options: argparse.Namespace) -> ExitCode:
    """Run what the options name, as one process or as one of several ranks, of which rank 0 writes and speaks."""
    exchange = join_ranks(options)
    try:
        prepared = together(exchange, lambda: _prepare(options, exchange))
        with ending_all_ranks(exchange):
            return _run(options, exchange, prepared)
    except BurstproofError as error:
        if exchange.rank > 0:
            return error.exit_code
        raise
    finally:
        exchange.close()


def _run(options: argparse.Namespace, exchange: Exchange, prepared: Prepared) -> ExitCode:
    """All bursts and what is left of them."""
    source, engine, plan = prepared.source, prepared.engine, prepared.plan
    try:
        activity, elapsed_s, first_burst_s = _go(prepared, options, exchange)
        end = engine.state()
        if exchange.rank > 0:
            return ExitCode.PASS
        report = RunReport.of(
            source.path, source.kind.value, options.seed, engine, prepared.choice, prepared.config, plan, prepared.start
        )
        report = report.after(activity.counter, end, elapsed_s, first_burst_s)
        report = report.of_shards(sharding_report(engine, exchange, report.firings / max(report.bursts, 1)))
        report = _write_files(options, source, engine, plan, activity, end, report)
    finally:
        engine.close()
    print_report(report, as_json=options.json)
    return ExitCode.PASS


def _prepare(options: argparse.Namespace, exchange: Exchange) -> Prepared:
    """Files and settings are checked before the work begins."""
    source = source_of(options)
    check_outputs(options, source)
    config = configuration_of(options)
    machine = this_machine()
    sharding = sharding_of(options, config, exchange, machine)
    check_splitting(options, config, sharding)
    network = read_network(source.path, source.kind, reading_of(options), bars=not options.json)
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
    shown = exchange.rank == 0
    engine, choice = _start(options, as_asked(config, sharding), machine, network, settings, sharding, shown=shown)
    choice = why_shards_run_there(choice, config, sharding)
    checkpoints = Checkpoints(options, exchange, plan)
    return Prepared(source, config, plan, engine, choice, checkpoints, checkpoints.resume(engine))


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
        raise InputError(
            f"this is a {found.value} by its ending", where=option, got=str(path), cure=f"Use --{found.value}"
        )
    check_input(path, option)
    return Source(path, found)


def check_outputs(options: argparse.Namespace, source: Source) -> None:
    """Refuse outputs that could not be written at the end of the run."""
    if options.record is not None:
        for path in trace_paths(options.record):
            check_output(path, "--record", [source.path])
    if options.raster is not None:
        check_output(options.raster, "--raster", [source.path])
        check_extension(options.raster, "--raster")
    if options.checkpoint is not None:
        check_output(options.checkpoint, "--checkpoint", [source.path])
    elif options.checkpoint_every is not None:
        raise InputError("no file to write checkpoints to", where="--checkpoint-every", cure="Add --checkpoint FILE")


def _start(
    options: argparse.Namespace,
    config: Configuration,
    machine: Machine,
    network: Network,
    settings: EngineOptions,
    sharding: Sharding | None,
    *,
    shown: bool,
) -> tuple[Engine, Choice]:
    """The engine, after any fallback; a fallback is said on standard error as well as in the record."""
    choice = choose_backend(
        config.compute.backend,
        network.neuron_count,
        options.firing_rate,
        config,
        machine,
        allow_fallback=options.allow_fallback,
    )
    factory = engine_factory if sharding is None else sharding.factory
    with task(f"starting {choice.backend}", shown=shown and not options.json):
        engine, choice = start_engine(choice, network, settings, allow_fallback=options.allow_fallback, factory=factory)
    if choice.fallback and shown:
        print(f"burstproof: note: running on {choice.backend}: {choice.fallback}", file=sys.stderr)
    return engine, choice


def _go(prepared: Prepared, options: argparse.Namespace, exchange: Exchange) -> tuple[Activity, float, float]:
    """Run all bursts in chunks; returns what they did and the times they and the first of them took, in seconds."""
    engine, checkpoints, leads = prepared.engine, prepared.checkpoints, exchange.rank == 0
    activity = _activity(prepared, options)
    times_s: list[float] = []
    done = engine.burst_count - engine.network.burst_count
    with task(f"running on {engine.backend}", options.bursts, shown=leads and not options.json) as bar:
        bar.advance(done)
        for count in chunks(done, options.bursts, CHUNK_BURSTS, (checkpoints.every, options.reshard_every)):
            started = time.perf_counter()
            chunk = engine.run(count, prepared.plan, Record.FIRED if leads else Record.NONE, bar.advance)
            times_s.append(time.perf_counter() - started)
            done += count
            if leads:
                activity.add(chunk)
            if options.reshard_every and done % options.reshard_every == 0 and done < options.bursts:
                reshard(engine)
            checkpoints.save_if_due(engine, activity.recordings)
    return activity, sum(times_s), times_s[0]


def _activity(prepared: Prepared, options: argparse.Namespace) -> Activity:
    """What is to be left of the run, with the bursts that a checkpoint holds a record of."""
    network = prepared.engine.network
    grid = RasterGrid(network, options.bursts) if options.raster is not None else None
    activity = Activity(ActivityCounter(network), grid, [] if options.record is not None else None)
    for recording in prepared.recorded:
        activity.add(recording)
    return activity


def _write_files(
    options: argparse.Namespace,
    source: Source,
    engine: Engine,
    plan: StimulusPlan,
    activity: Activity,
    end: EngineState,
    report: RunReport,
) -> RunReport:
    """Write record and picture; returns the report with their names."""
    files: list[str] = []
    if activity.recordings is not None:
        with task("writing the record", shown=not options.json):
            whole = joined(activity.recordings)
            trace = trace_of_run(engine.network, engine.options, whole, plan, end, options.record.name)
            trace = report.in_trace(trace)
            try:
                files += [str(path) for path in write_trace(options.record, trace)]
            except OSError as error:
                raise EnvironmentInvalidError(
                    f"cannot be written: {error.strerror}", where=str(options.record), cure="Free space there"
                ) from None
    if activity.grid is not None:
        title = f"{source.path.name} on {engine.backend}, {engine.options.profile.name}"
        write_raster(options.raster, activity.grid.raster(), title)
        files.append(str(options.raster))
    return report.with_files(files)
