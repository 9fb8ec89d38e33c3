"""``burstproof verify``: replay traces on a backend and say how many bursts agree and where the first does not."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from burstproof.cli.idle import refuse_idle
from burstproof.cli.progress import task
from burstproof.cli.settings import configuration_of, engine_options
from burstproof.config import Configuration
from burstproof.engine.profile import FEAGI_2_6, profile_named
from burstproof.engine.protocol import CreateEngine
from burstproof.engine.registry import AUTO, BACKENDS, engine_factory, with_shards
from burstproof.engine.replay import Replay, replay
from burstproof.engine.trace import Trace, read_trace
from burstproof.errors import BurstproofError, ExitCode, InputError
from burstproof.fuzz.search import scattered
from burstproof.session import resolved

DEFAULT_BACKEND = "cpu"
"""Backend that replays unless the command line names one; the configured one is for runs, and so are its shards."""


def verify(options: argparse.Namespace) -> ExitCode:
    """Replay every trace; one that cannot be read does not keep the others from being replayed.

    Returns
    -------
    ExitCode
        PASS only if every trace agrees in every burst; FAIL if one does not; otherwise the code of the error that
        kept one from being replayed.
    """
    config = configuration_of(options)
    if options.backend != AUTO:
        refuse_idle(options, backend=options.backend or DEFAULT_BACKEND)
    documents: list[dict[str, Any]] = []
    codes = {ExitCode.PASS}
    for path in options.traces:
        try:
            result = _replay(path, options, config)
        except BurstproofError as error:
            print(f"burstproof: error: {error}", file=sys.stderr)
            documents.append({"trace": str(path), "error": str(error)})
            codes.add(error.exit_code)
            continue
        documents.append(_document(path, result))
        if not options.json:
            print(in_words(path, result))
        if not result.agrees:
            codes.add(ExitCode.FAIL)
    if options.json:
        print(json.dumps({"agree": codes == {ExitCode.PASS}, "traces": documents}, indent=1))
    return ExitCode.FAIL if ExitCode.FAIL in codes else max(codes)


def _replay(path: Path, options: argparse.Namespace, config: Configuration) -> Replay:
    """Read one trace and run it on the asked-for backend."""
    with task(f"reading {path.name}", shown=not options.json):
        trace = _overridden(read_trace(path), options)
    asked = options.backend or DEFAULT_BACKEND
    backend = resolved(asked, trace.network.neuron_count, config=config, where="--backend").backend
    refuse_idle(options, backend=backend)
    profile = profile_named(options.profile or FEAGI_2_6.name)
    with task(f"replaying {path.name} on {backend}", len(trace.bursts), shown=not options.json) as bar:
        result = replay(
            trace,
            factory_of(backend, options.shards),
            engine_options(options, config, profile),
            emulate=not options.no_emulate,
            progress=bar.advance,
        )
    if options.shards is None:
        return result
    return dataclasses.replace(result, backend=f"{result.backend}, {options.shards} shards")


def factory_of(backend: str, shards: int | None) -> CreateEngine:
    """What creates engines of ``backend``, over so many shards if they are asked for.

    Raises
    ------
    InputError
        A backend without shards.
    """
    if shards is None:
        return engine_factory(backend)
    if not BACKENDS[backend].shards:
        allowed = ", ".join(with_shards())
        raise InputError("this backend has no shards", where="--shards", got=backend, allowed=allowed)
    return scattered(backend, shards)


def _overridden(trace: Trace, options: argparse.Namespace) -> Trace:
    """A record says itself under which rules it was made; rules named on the command line take their place."""
    if not trace.exact:
        return trace
    settings = dict(trace.settings)
    if options.profile is not None:
        settings["profile"] = options.profile
    if options.no_emulate:
        settings["emulate_batch_path"] = False
    return dataclasses.replace(trace, settings=settings)


def _document(path: Path, result: Replay) -> dict[str, Any]:
    """A replay as plain values."""
    values = dataclasses.asdict(result)
    first = values.pop("first")
    return {
        **values,
        "trace": str(path),
        "agrees": result.agrees,
        "first_disagreement": first and {**first, "words": str(result.first)},
    }


def in_words(path: Path, result: Replay) -> str:
    """A replay in one line, and one more for the first disagreement."""
    verdict = "agrees" if result.agrees else "DIFFERS"
    line = (
        f"{path}: {verdict} on {result.backend} ({result.profile}): fired lists {result.fired_agree} of "
        f"{result.bursts} bursts, full state {result.state_agree} of {result.bursts}, {result.firings} firings"
    )
    if result.clamped:
        line += ", a contribution was clamped"
    if result.first is not None:
        line += f"\n  first disagreement: {result.first}"
    return line
