"""``burstproof fuzz``: random networks on a backend against the reference, and the smallest form of what differs."""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from burstproof.cli.progress import Bar, task
from burstproof.cli.settings import configuration_of, engine_options
from burstproof.cli.verify import DEFAULT_BACKEND
from burstproof.config import Configuration
from burstproof.engine.ask_machine import this_machine
from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import FEAGI_2_6
from burstproof.engine.protocol import CreateEngine, Engine
from burstproof.engine.registry import create_sharded, engine_factory
from burstproof.engine.select import choose_backend
from burstproof.engine.sharded.partition import make_partition
from burstproof.engine.trace import write_trace
from burstproof.errors import EnvironmentInvalidError, ExitCode, InputError
from burstproof.fuzz.compare import Difference, compare
from burstproof.fuzz.draw import draw_case
from burstproof.fuzz.shrink import shrink
from burstproof.network.files.paths import check_output
from burstproof.network.model import Network

MOST_FINDINGS = 10
"""Cases that differ after which the command ends."""

_SHARD_BACKENDS = ("cpu", "cuda")


@dataclass(frozen=True)
class Finding:
    """A case in which the backend differs from the reference; ``difference`` is that of the shrunk case."""

    seed: int
    case: str
    first: Difference
    shrunk: str
    difference: Difference
    trace: str
    replays: bool

    def in_words(self) -> str:
        """The finding in four lines."""
        seen = "verify shows it too" if self.replays else "verify does not show it; replay it with fuzz"
        return (
            f"seed {self.seed} DIFFERS: {self.first}\n"
            f"  in {self.case}\n  shrunk to {self.shrunk}: {self.difference}\n  written to {self.trace} ({seen})"
        )


@dataclass
class _Tally:
    """Cases done, bursts in them, and cases that this machine or backend cannot run."""

    cases: int = 0
    bursts: int = 0
    refused: int = 0
    refusal: EnvironmentInvalidError | None = None


def fuzz(options: argparse.Namespace) -> ExitCode:
    """Compare random cases until they, the time or the patience for findings are used up.

    Returns
    -------
    ExitCode
        PASS if every case agrees, FAIL if one does not.
    """
    config = configuration_of(options)
    backend, create = _subject(options, config)
    check_output(options.out / "fuzz", "--out")
    tally, findings = _Tally(), []
    interrupted = False
    with task(f"fuzzing {backend}", options.cases, shown=not options.json) as bar:
        try:
            for finding in _findings(options, create, tally, bar):
                findings.append(finding)
                if not options.json:
                    print(finding.in_words(), flush=True)
                if len(findings) == MOST_FINDINGS:
                    break
        except KeyboardInterrupt:
            interrupted = True
    if tally.refusal is not None and tally.refused == tally.cases:
        raise tally.refusal
    if options.json:
        print(json.dumps(_document(options, backend, tally, findings), indent=1))
    else:
        print(_summary(options, backend, tally, findings))
    if interrupted:
        raise KeyboardInterrupt
    return ExitCode.FAIL if findings else ExitCode.PASS


def _subject(options: argparse.Namespace, config: Configuration) -> tuple[str, CreateEngine]:
    """Name of what is under test, and what makes it."""
    backend: str = options.backend or DEFAULT_BACKEND
    if backend in ("auto", "cuda", "wgpu"):
        backend = choose_backend(backend, 0, None, config, this_machine(), allow_fallback=None).backend
    if options.shards is not None and backend not in _SHARD_BACKENDS:
        raise InputError(
            "this backend has no shards",
            where="--shards",
            got=backend,
            allowed=", ".join(_SHARD_BACKENDS),
            cure="Leave out --shards",
        )
    whole = engine_factory(backend)
    base = engine_options(options, config, FEAGI_2_6)

    def create(network: Network, case_options: EngineOptions) -> Engine:
        own = replace(case_options, cpu=base.cpu, cuda=base.cuda)
        return whole(network, own) if options.shards is None else _sharded(network, own, backend, options.shards)

    return backend if options.shards is None else f"{options.shards} shards of {backend}", create


def _sharded(network: Network, options: EngineOptions, backend: str, shards: int) -> Engine:
    """As many shards as there are neurons for, by turns, so that neighbours are always apart."""
    partition = make_partition(network, max(1, min(shards, network.neuron_count)), "round_robin")
    return create_sharded(network, options, partition, backend, threads=max(1, options.cpu.threads))


def _findings(options: argparse.Namespace, create: CreateEngine, tally: _Tally, bar: Bar) -> Iterator[Finding]:
    """Try seed after seed, counting in ``tally``; yields what differs."""
    end = time.monotonic() + 60.0 * options.minutes if options.minutes is not None else float("inf")
    for seed in range(options.seed, options.seed + options.cases):
        if time.monotonic() > end:
            return
        case = draw_case(seed, options.families)
        tally.cases += 1
        try:
            found = compare(case, create)
        except EnvironmentInvalidError as error:
            tally.refused, tally.refusal = tally.refused + 1, error
        else:
            tally.bursts += case.bursts
            if found is not None:
                shrunk = shrink(case, create, f"fuzz_{seed}")
                path = options.out / f"fuzz_{seed}"
                write_trace(path, shrunk.trace)
                yield Finding(seed, str(case), found, str(shrunk.case), shrunk.difference, str(path), shrunk.replays)
        bar.advance(1)


def _summary(options: argparse.Namespace, backend: str, tally: _Tally, findings: list[Finding]) -> str:
    """The last line, with what replays the first finding."""
    last = options.seed + max(tally.cases, 1) - 1
    verdict = f"{len(findings)} DIFFER from the reference" if findings else "all agree with the reference"
    line = f"{tally.cases} cases on {backend} (seeds {options.seed} to {last}, {tally.bursts} bursts): {verdict}"
    if tally.refused:
        line += f"; {tally.refused} could not run here: {tally.refusal}"
    if findings:
        again = f"burstproof fuzz --seed {findings[0].seed} --cases 1"
        again += f" --families {options.families}" if options.families else ""
        again += "".join(f" --{name} {value}" for name in _AGAIN if (value := getattr(options, name)))
        line += f"\nagain: {again}"
    return line


_AGAIN = ("backend", "threads", "shards", "device", "config")


def _document(options: argparse.Namespace, backend: str, tally: _Tally, findings: list[Finding]) -> dict[str, Any]:
    """The outcome as plain values."""
    return {
        "agree": not findings,
        "backend": backend,
        "first_seed": options.seed,
        "families": options.families,
        "cases": tally.cases,
        "bursts": tally.bursts,
        "refused": tally.refused,
        "findings": [{**dataclasses.asdict(f), "words": str(f.difference)} for f in findings],
    }
