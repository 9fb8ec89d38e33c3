"""``burstproof compile``: CUDA C++ to machine code without a GPU, and what each kernel needs."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from burstproof.compile.numba_cubin import Capability, Image, refusal
from burstproof.compile.resources import MULTIPROCESSORS, KernelReport, report_of, table_of
from burstproof.compile.source import CudaSource, SourceOptions
from burstproof.errors import BackendUnavailableError, EnvironmentInvalidError, ExitCode, InputError
from burstproof.network.files.atomic import write_atomically
from burstproof.network.files.paths import check_output


def compile_file(options: argparse.Namespace) -> ExitCode:
    """Compile one file for each capability that is asked for and print the resource report.

    Raises
    ------
    CompileError
        What the compiler said.
    EnvironmentInvalidError
        The tools are missing, or do not build for the capability.
    InputError
        An option that cannot be used.
    """
    source = _source(options)
    chosen = [_capability(text) for text in options.capability] or [_of_device()]
    if options.output is not None and len(chosen) > 1:
        cure = "Compile once for each capability, each time with another --output"
        raise InputError("one file cannot hold several images", where="--output", got=options.capability, cure=cure)
    if options.output is not None:
        check_output(options.output, "--output", [options.file])
    documents = []
    for capability in chosen:
        image = source.image(capability)
        reports = report_of(image, options.block, options.shared_bytes)
        documents.append(_document(image, reports))
        if not options.json:
            blocks = f"{options.block} threads a block, {options.shared_bytes} B of dynamic shared memory"
            print(f"{image.name} for {image.arch}: {len(image.cubin)} bytes in {image.seconds:.2f} s ({blocks})")
            print(table_of(reports))
        if options.output is not None:
            write_atomically(options.output, image.cubin)
    if options.json:
        print(json.dumps({"images": documents}, indent=1))
    return ExitCode.PASS


def _source(options: argparse.Namespace) -> CudaSource:
    file: Path = options.file
    return CudaSource.beside(
        str(file),
        file.name,
        options=SourceOptions(
            defines=tuple(_define(text) for text in options.define),
            fast_math=options.fast_math,
            max_registers=options.max_registers,
        ),
        templates=tuple(options.template),
    )


def _define(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise InputError("not a macro", where="--define", got=text, allowed="NAME or NAME=VALUE")
    return name, value or "1"


def _capability(text: str) -> Capability:
    found = re.fullmatch(r"(\d{1,2})\.(\d)", text)
    if found is None:
        raise InputError("not a compute capability", where="--capability", got=text, allowed="such as 9.0")
    capability = int(found[1]), int(found[2])
    if capability not in MULTIPROCESSORS:
        known = ", ".join(f"{major}.{minor}" for major, minor in sorted(MULTIPROCESSORS))
        cure = "Choose a capability that the installed compiler knows"
        raise EnvironmentInvalidError("unknown capability", where="--capability", got=text, allowed=known, cure=cure)
    refused = refusal(capability, "--capability")
    if refused is not None:
        raise refused
    return capability


def _of_device() -> Capability:
    from burstproof.compile.launch import device_capability

    try:
        return device_capability(0)
    except BackendUnavailableError as error:
        raise BackendUnavailableError(
            f"no device to take the compute capability from: {error.problem}",
            where="--capability",
            cure="Name one, such as --capability 9.0",
        ) from error


def _document(image: Image, reports: tuple[KernelReport, ...]) -> dict[str, Any]:
    return {
        "file": image.name,
        "capability": f"{image.capability[0]}.{image.capability[1]}",
        "bytes": len(image.cubin),
        "kernels": [dataclasses.asdict(report) for report in reports],
    }
