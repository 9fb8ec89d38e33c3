"""``burstproof run``: run a network, report what fired, leave a record and a picture."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from burstproof.analysis.picture import check_extension
from burstproof.analysis.raster import RasterGrid
from burstproof.analysis.raster_svg import raster_svg
from burstproof.analysis.statistics import ActivityCounter
from burstproof.cli.cluster import exchange_of, may_be_rank
from burstproof.cli.feature_report import DriverCounter, feature_values
from burstproof.cli.idle import BACKEND, refuse_idle
from burstproof.cli.progress import task
from burstproof.cli.run_report import (
    activity_values,
    as_text,
    engine_values,
    shard_values,
    stimulus_values,
    trace_settings,
)
from burstproof.cli.settings import configuration_of, engine_options, expected_rate
from burstproof.cli.sources import read_source, reading_of, source_of
from burstproof.config import Configuration
from burstproof.engine.ask_machine import this_machine
from burstproof.engine.cluster.together import ending_all_ranks, together
from burstproof.engine.machine import Machine
from burstproof.engine.options import EngineOptions
from burstproof.engine.precision import with_precision
from burstproof.engine.profile import profile_named
from burstproof.engine.protocol import Engine
from burstproof.engine.recorder import joined
from burstproof.engine.registry import AUTO, engine_factory
from burstproof.engine.select import Choice, choose_backend, start_engine
from burstproof.engine.sharded.checkpoints import Checkpoints, chunks
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.state import EngineState, Record, Recording, StimulusPlan
from burstproof.engine.stimulation import parse_stimulations, plan_of, stimulus_bounds
from burstproof.engine.trace import trace_of_run, trace_paths, write_trace
from burstproof.errors import BurstproofError, ExitCode, InputError
from burstproof.network.files.atomic import write_atomically
from burstproof.network.files.paths import check_output
from burstproof.network.model import Network
from burstproof.sources import Source
from burstproof.split import Split, reshard, split_of
from burstproof.termination import raising_terminated

CHUNK_BURSTS = 256
"""Bursts between two looks at what fired; bounds the memory of a run that is not recorded."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything that was read, checked and started before the first burst, and what takes in the bursts."""

    source: Source
    config: Configuration
    plan: StimulusPlan
    engine: Engine
    choice: Choice
    checkpoints: Checkpoints
    counter: ActivityCounter
    drivers: DriverCounter
    grid: RasterGrid | None
    recordings: list[Recording] | None

    def add(self, chunk: Recording) -> None:
        """Take in some more bursts: their counts, the cells of a picture, and all of them if a record is wanted."""
        self.counter.add(chunk)
        self.drivers.add(chunk)
        if self.grid is not None:
            self.grid.add(chunk)
        if self.recordings is not None:
            self.recordings.append(chunk)


def run(options: argparse.Namespace) -> ExitCode:
    """Run what the options name, as one process or as one of several ranks, of which rank 0 writes and speaks."""
    exchange = exchange_of(options)
    try:
        prepared = together(exchange, lambda: _prepare(options, exchange))
        with _in_order(exchange), prepared.engine, _naming_the_checkpoint(prepared.checkpoints):
            times_s = _go(prepared, options, exchange)
            end = prepared.engine.state()
            if exchange.rank > 0:
                return ExitCode.PASS
            document = _document(prepared, options, exchange, end, times_s)
            _write_files(prepared, options, end, document)
    except BurstproofError as error:
        if exchange.rank > 0:
            return error.exit_code
        raise
    finally:
        exchange.close()
    print(json.dumps(document, indent=1) if options.json else as_text(document, every_area=options.all))
    return ExitCode.PASS


@contextmanager
def _in_order(exchange: Exchange) -> Iterator[None]:
    """Within it, what ends this process is told: to the other ranks, or a signal to a single process's own code.

    Of a rank that SIGTERM ends its guard tells (``engine.cluster.launch``).
    """
    with raising_terminated() if exchange.ranks == 1 else nullcontext(), ending_all_ranks(exchange):
        yield


@contextmanager
def _naming_the_checkpoint(checkpoints: Checkpoints) -> Iterator[None]:
    """Within it, what ends the run says from which burst and how it can be continued."""
    try:
        yield
    except KeyboardInterrupt:
        if checkpoints.saved_after is not None and checkpoints.allows(checkpoints.saved_after):
            how = f"the same command with --resume {checkpoints.file} goes on after it"
            print(f"burstproof: note: burst {checkpoints.saved_after} is in the checkpoint: {how}", file=sys.stderr)
        raise


def _prepare(options: argparse.Namespace, exchange: Exchange) -> Prepared:
    """Files and settings are checked before the work begins."""
    source = source_of(options)
    _check_outputs(options, source)
    config = configuration_of(options)
    machine = this_machine()
    split = split_of(config, options.shards, options.threads, exchange, len(machine.cuda.devices))
    _check_split(options, config, split)
    asked = (config if split is None else split.backend_first(config)).compute.backend
    refuse_idle(options, asked=asked, ranks=may_be_rank(options), **_backend(asked))
    network, precision = with_precision(
        read_source(source, reading_of(options), bars=exchange.rank == 0 and not options.json), options.precision
    )
    plan = plan_of(
        [*source.start(), *parse_stimulations(network, options.bursts, options.stimulate, options.force)],
    )
    settings = engine_options(
        options,
        config,
        profile_named(options.profile),
        emulate_batch_path=options.emulate_batch_path,
        stimulus_bounds=stimulus_bounds(plan, EngineOptions()),
        precision=precision,
        autotune=options.autotune,
    )
    engine, choice = _start(options, config, machine, network, settings, split, shown=exchange.rank == 0)
    recorded = options.record is not None
    checkpoints = Checkpoints(
        options.bursts, plan, exchange, options.checkpoint, options.checkpoint_every, options.resume, recorded
    )
    grid = RasterGrid(network, options.bursts) if options.raster is not None else None
    kept: list[Recording] | None = [] if recorded else None
    counters = ActivityCounter(network), DriverCounter(network)
    ready = Prepared(source, config, plan, engine, choice, checkpoints, *counters, grid, kept)
    for recording in checkpoints.begin(engine):
        ready.add(recording)
    return ready


def _check_outputs(options: argparse.Namespace, source: Source) -> None:
    """Refuse outputs that could not be written at the end of the run."""
    if options.record is not None:
        for path in trace_paths(options.record):
            check_output(path, "--record", source.files)
    if options.raster is not None:
        check_output(options.raster, "--raster", source.files)
        check_extension(options.raster, "--raster")
    if options.checkpoint is not None:
        written = [] if options.record is None else list(trace_paths(options.record))
        written += [] if options.raster is None else [options.raster]
        check_output(options.checkpoint, "--checkpoint", source.files)
        check_output(options.checkpoint, "--checkpoint", written, what="that of another option")
    elif options.checkpoint_every is not None:
        raise InputError("no file to write checkpoints to", where="--checkpoint-every", cure="Add --checkpoint FILE")


def _check_split(options: argparse.Namespace, config: Configuration, split: Split | None) -> None:
    """Refuse options of a split where nothing is split, and to split anew what no activity changes."""
    if options.num_gpus is not None and not config.cuda.multi_gpu.enabled:
        where, got = "--num-gpus", options.num_gpus
        raise InputError("several GPUs are not asked for", where=where, got=got, cure="Add --multi-gpu")
    if split is None:
        for option, value, what in (
            ("--strategy", options.strategy, "nothing to split"),
            ("--reshard-every", options.reshard_every, "nothing to split anew"),
        ):
            if value is not None:
                cure = "Add --shards N, or --multi-gpu"
                raise InputError(f"{what}: no shards", where=option, got=value, cure=cure)
    elif options.reshard_every is not None and split.strategy in ("contiguous", "round_robin"):
        raise InputError(
            "this strategy does not follow the activity",
            where="--reshard-every",
            got=split.strategy,
            allowed="dynamic, by_cortical_area, metis",
        )


def _backend(asked: str, chosen: str = AUTO) -> dict[str, str]:
    """The backend as ``refuse_idle`` takes it, as far as it is known: the one asked for, whatever takes its place."""
    backend = chosen if asked == AUTO else asked
    return {} if backend == AUTO else {BACKEND: backend}


def _start(
    options: argparse.Namespace,
    config: Configuration,
    machine: Machine,
    network: Network,
    settings: EngineOptions,
    split: Split | None,
    *,
    shown: bool,
) -> tuple[Engine, Choice]:
    """The engine, after any fallback; a fallback is said on standard error as well as in the record."""
    asked = config if split is None else split.backend_first(config)
    fallback = options.allow_fallback
    choice = choose_backend(
        asked.compute.backend,
        network.neuron_count,
        expected_rate(options),
        asked,
        machine,
        synapses=network.synapse_count,
        allow_fallback=fallback,
        where=config.named("cuda.multi_gpu.enabled" if config.compute.backend == AUTO else "compute.backend"),
    )
    refuse_idle(options, **_backend(asked.compute.backend, choice.backend))
    factory = engine_factory if split is None else split.factory
    with task(f"compiling kernels, starting {choice.backend}", shown=shown and not options.json):
        engine, choice = start_engine(choice, network, settings, allow_fallback=fallback, factory=factory)
    if choice.fallback and shown:
        print(f"burstproof: note: running on {choice.backend}: {choice.fallback}", file=sys.stderr)
    return engine, choice if split is None else split.explained(choice, config)


def _go(prepared: Prepared, options: argparse.Namespace, exchange: Exchange) -> list[float]:
    """Run all bursts in chunks; returns the time of each chunk in seconds, the first burst's first."""
    engine, checkpoints, leads = prepared.engine, prepared.checkpoints, exchange.rank == 0
    times_s: list[float] = []
    done = engine.burst_count - engine.network.burst_count
    running = f"running on {engine.backend}"
    with task(f"compiling kernels, {running}", options.bursts, shown=leads and not options.json) as bar:
        bar.advance(done)
        for count in chunks(done, options.bursts, CHUNK_BURSTS, (checkpoints.every, options.reshard_every)):
            started = time.perf_counter()
            chunk = engine.run(count, prepared.plan, Record.FIRED if leads else Record.NONE, bar.advance)
            times_s.append(time.perf_counter() - started)
            bar.rename(running)
            done += count
            if leads:
                prepared.add(chunk)
            if options.reshard_every and done % options.reshard_every == 0 and done < options.bursts:
                reshard(engine, exchange.share("the activity so far", prepared.counter.rates)[0])
            refused = checkpoints.save_if_due(engine, prepared.recordings)
            if refused:
                print(f"burstproof: note: {refused}", file=sys.stderr)
    return times_s


def _document(
    prepared: Prepared, options: argparse.Namespace, exchange: Exchange, end: EngineState, times_s: list[float]
) -> dict[str, Any]:
    """What is reported. Bursts are counted from the beginning where a checkpoint holds a record of them."""
    source, counter, resumed = prepared.source, prepared.counter, prepared.checkpoints.resumed_after
    begun = prepared.engine.network.burst_count if resumed is None else resumed
    return {
        **engine_values(prepared.engine, end),
        "source": {
            "path": source.where,
            "kind": source.kind.value,
            "seed": options.seed,
            "apply_flags": options.apply_flags,
        },
        "backend": dataclasses.asdict(prepared.choice),
        "shards": shard_values(prepared.engine, exchange.ranks, counter),
        "stimulus": stimulus_values(prepared.engine.options, len(prepared.plan)),
        "bursts": {"first": end.burst_count - counter.bursts + 1, "last": end.burst_count, "count": counter.bursts},
        "resumed_after": resumed,
        "timed_bursts": end.burst_count - begun,
        "elapsed_s": sum(times_s),
        "first_burst_s": times_s[0] if times_s else 0.0,
        **activity_values(counter, prepared.engine.network.neuron_count),
        "features": feature_values(prepared.engine.network, prepared.drivers, end.features),
        "configuration": [dataclasses.asdict(item) for item in prepared.config.settings()],
        "files": [],
    }


def _write_files(prepared: Prepared, options: argparse.Namespace, end: EngineState, document: dict[str, Any]) -> None:
    """Write record and picture, and put their names into ``document``."""
    engine, files = prepared.engine, document["files"]
    if prepared.recordings is not None:
        with task("writing the record", shown=not options.json):
            whole = joined(prepared.recordings)
            trace = trace_of_run(engine.network, engine.options, whole, prepared.plan, end, options.record.name)
            trace = dataclasses.replace(trace, settings={**trace.settings, **trace_settings(document)})
            files += [str(path) for path in write_trace(options.record, trace)]
    if prepared.grid is not None:
        title = f"{prepared.source.name} on {engine.backend}, {engine.options.profile.name}"
        write_atomically(options.raster, raster_svg(prepared.grid.raster(), title).encode())
        files.append(str(options.raster))
