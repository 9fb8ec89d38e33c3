"""``burstproof fuzz``: random networks on a backend against the reference, and the smallest form of what differs."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from dataclasses import replace
from typing import Any

from burstproof.cli.idle import refuse_idle
from burstproof.cli.progress import task
from burstproof.cli.settings import configuration_of, engine_options
from burstproof.cli.verify import DEFAULT_BACKEND, factory_of
from burstproof.config import Configuration
from burstproof.engine.features.support import MODELLED, NOTHING
from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import FEAGI_2_6
from burstproof.engine.protocol import CreateEngine, Engine
from burstproof.errors import ExitCode
from burstproof.fuzz.search import Finding, Tally, search
from burstproof.network.files.paths import check_output
from burstproof.network.model import Network
from burstproof.session import resolved

MOST_FINDINGS = 10
"""Cases that differ after which the command ends."""


def fuzz(options: argparse.Namespace) -> ExitCode:
    """Compare random cases until they, the time or the patience for findings are used up.

    Returns
    -------
    ExitCode
        PASS if every case agrees, FAIL if one does not.
    """
    config = configuration_of(options)
    name, backend, create = _subject(options, config)
    check_output(options.out / "fuzz", "--out")
    tally, findings = Tally(), []
    seeds = range(options.seed, options.seed + options.cases)
    deadline = time.monotonic() + 60.0 * options.minutes if options.minutes is not None else math.inf
    interrupted = False
    with task(f"fuzzing {backend}", options.cases, shown=not options.json) as bar:
        try:
            modelled = MODELLED.get(name, NOTHING)
            for finding in search(seeds, options.families, create, tally, options.out, deadline, bar.advance, modelled):
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


def _subject(options: argparse.Namespace, config: Configuration) -> tuple[str, str, CreateEngine]:
    """The backend under test, what the output calls it, and what makes it."""
    backend = resolved(options.backend or DEFAULT_BACKEND, 0, config=config, where="--backend").backend
    make = factory_of(backend, options.shards)
    refuse_idle(options, backend=backend)
    base = engine_options(options, config, FEAGI_2_6)

    def create(network: Network, case_options: EngineOptions) -> Engine:
        return make(network, replace(case_options, cpu=base.cpu, cuda=base.cuda))

    return backend, backend if options.shards is None else f"{options.shards} shards of {backend}", create


def _summary(options: argparse.Namespace, backend: str, tally: Tally, findings: list[Finding]) -> str:
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


def _document(options: argparse.Namespace, backend: str, tally: Tally, findings: list[Finding]) -> dict[str, Any]:
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
