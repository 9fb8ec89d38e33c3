"""The command line: its subcommands, their options, and usage errors as the package's own."""

from __future__ import annotations

import argparse
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

from burstproof.engine.precision import PRECISION_NAMES, Precision
from burstproof.engine.profile import FEAGI_2_6, PROFILES
from burstproof.engine.registry import backend_names
from burstproof.engine.sharded.partition import STRATEGIES
from burstproof.errors import InputError, shortened
from burstproof.network.synthetic.kinds import KINDS
from burstproof.parsing import ExactParser
from burstproof.version import __version__

NO_FILE = object()
"""What ``--plan`` holds where no file follows it: the network is named by another option."""

SPLITTING = ("--shards", "--multi-gpu", "--num-gpus", "--strategy")
"""Options of ``run`` that split a network."""


class Parser(ExactParser):
    """A parser that raises ``InputError`` (exit code 4) instead of leaving with argparse's 2."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse found, with a hint where a word is unknown."""
        raise InputError(message, cure=f"{self.hint(message)}See {self.prog} --help")


def named_file(text: str) -> Path:
    """A type for options: the path of a file or folder."""
    if not text.strip() or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} names no file")
    return Path(text)


def whole_number(least: int, most: float = math.inf) -> _Bounded:
    """A type for options: a whole number from ``least`` to ``most``."""
    return _Bounded(int, least, most)


class _Bounded:
    """A number within bounds, as argparse types go."""

    def __init__(self, kind: type[int] | type[float], least: float, most: float) -> None:
        self._kind, self._least, self._most = kind, least, most

    def __call__(self, text: str) -> int | float:
        try:
            value = self._kind(text)
        except ValueError:
            kind = "whole number" if self._kind is int else "number"
            raise argparse.ArgumentTypeError(f"{shortened(text)!r} is no {kind}") from None
        if not self._least <= value <= self._most:
            bounds = f"outside {self._least} to {self._most}" if self._most < math.inf else f"below {self._least}"
            raise argparse.ArgumentTypeError(f"{shortened(text)} is {bounds}")
        return value


def _size(text: str) -> int:
    """A number of neurons or synapses: ``2000``, ``20K``, ``1.5M``."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)([KM]?)", text.strip(), re.IGNORECASE)
    size = Decimal(found[1]) * {"": 1, "K": 10**3, "M": 10**6}[found[2].upper()] if found else Decimal(0)
    if size < 1 or size != int(size):
        raise argparse.ArgumentTypeError(f"{shortened(text)!r} is no size; write 20000, 20K or 1.5M")
    return int(size)


class _NoShards(argparse.Action):
    """Refuses an option that splits a network, where a plan is asked for."""

    def __call__(self, parser: object, namespace: object, values: object, option_string: str | None = None) -> NoReturn:
        """Say what is planned, and where to read on."""
        cure = "Leave it out; docs/sharding.md says what a GPU of several needs"
        raise InputError("info plans for a whole network on one device", where=option_string, cure=cure)


def build_parser() -> Parser:
    """The parser of the whole command."""
    parser = Parser(prog="burstproof", description="The FEAGI burst engine on CPU, CUDA and WGPU, exact to the bit.")
    parser.add_argument("--version", action="version", version=f"burstproof {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    _add_run(commands.add_parser("run", help="run a genome, connectome or network and report what fired"))
    _add_verify(commands.add_parser("verify", help="replay recorded traces and compare every burst"))
    _add_fuzz(commands.add_parser("fuzz", help="hold random networks on a backend against the reference"))
    _add_convert(commands.add_parser("convert", help="turn a genome, connectome or network into another file"))
    _add_info(commands.add_parser("info", help="what this machine can run, and the effective configuration"))
    _add_train(commands.add_parser("train", help="train a small GPT on the characters of a text"))
    _add_compile(commands.add_parser("compile", help="CUDA C++ to machine code without a GPU, and what it needs"))
    return parser


def _add_common(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")


def _add_config(parser: Parser, backend: str = "what runs the bursts (configuration: compute.backend)") -> None:
    parser.add_argument("--config", type=named_file, metavar="FILE", help="configuration file (TOML)")
    parser.add_argument("--backend", choices=backend_names(), help=backend)
    parser.add_argument("--device", type=whole_number(0, 1023), metavar="N", help="CUDA device (cuda.device_id)")
    parser.add_argument("--no-graphs", action="store_true", help="launch kernels one by one, without CUDA graphs")
    parser.add_argument(
        "--threads", type=whole_number(0, 4096), default=0, metavar="N", help="CPU threads; 0 chooses by size"
    )


def _add_reading(parser: argparse.ArgumentParser) -> None:
    seeds = whole_number(0, 2**64 - 1)
    parser.add_argument("--seed", type=seeds, default=0, metavar="N", help="of growth, or of a synthetic network")
    parser.add_argument(
        "--max-neurons", type=whole_number(1, 2**31), metavar="N", help="refuse a genome of more neurons"
    )
    parser.add_argument(
        "--max-synapses", type=whole_number(1, 2**40), metavar="N", help="refuse a genome of more synapses"
    )
    parser.add_argument(
        "--apply-flags",
        action="store_true",
        help="take psp flags, plasticity and features from the genome inside a connectome",
    )
    parser.add_argument(
        "--ignore-unmodelled",
        action="store_true",
        help="read past genome keys that the released engine acts on and that are not modelled; the output says so",
    )
    parser.add_argument(
        "--as-the-engine",
        action="store_true",
        help="where the released engine fails at a rule, end the growth of the source area as it does, and say so",
    )


def _add_sources(parser: Parser, title: str, *files: tuple[str, str]) -> argparse._ArgumentGroup:
    """Options that name a network: files, or sizes."""
    group = parser.add_argument_group(title)
    for name, what in files:
        group.add_argument(name, nargs=None if name[0] == "-" else "?", type=named_file, metavar="FILE", help=what)
    group.add_argument("--synthetic", type=_size, metavar="N", help="make a network of N neurons: 20K, 1.5M")
    group.add_argument("--kind", choices=KINDS, help="kind of synthetic network (default: uniform; docs/network.md)")
    group.add_argument("--synapses", type=_size, metavar="K", help="synapses per neuron (default: 100)")
    rate = _Bounded(float, 0.0, 1.0)
    group.add_argument("--rate", type=rate, metavar="R", help="share of the neurons that fire (default: 0.01)")
    _add_reading(parser)
    return group


def _add_run(parser: Parser) -> None:
    _add_sources(
        parser,
        "what to run (one of)",
        ("input", "any of these three, by its extension"),
        ("--genome", ".json or .json.gz"),
        ("--connectome", ".connectome"),
        ("--network", ".bpnet"),
    )
    parser.add_argument("--autotune", action="store_true", help="CUDA: measure launch configurations first")
    parser.add_argument(
        "--bursts",
        type=whole_number(1, 10**9),
        default=100,
        metavar="N",
        help="length of the whole run, also after --resume (default: 100)",
    )
    parser.add_argument("--profile", choices=PROFILES, default=FEAGI_2_6.name, help="rules of the engine")
    parser.add_argument(
        "--precision",
        choices=PRECISION_NAMES,
        default=Precision.FP32.value,
        help="format of the stored potentials, or feagi-int8: clamped as by the released engine; all but fp32 change "
        "results (default: fp32, whatever a genome asks for)",
    )
    parser.add_argument(
        "--emulate-batch-path",
        action="store_true",
        help="emulate a defect of the released engine: other rules in bursts of 10 000 candidates and more",
    )
    parser.add_argument(
        "--stimulate",
        action="append",
        default=[],
        metavar="BURSTS:NEURONS=AMOUNT",
        help="add an amount to neurons: in every tenth of the bursts 1 to 100 to the area vision_C "
        "(1-100/10:@vision_C=1.5), or by id (5:0-24=1); may be repeated",
    )
    parser.add_argument(
        "--force", action="append", default=[], metavar="BURSTS:NEURONS", help="make neurons fire, e.g. 5:0-24"
    )
    _add_config(parser)
    _add_firing_rate(parser)
    parser.add_argument("--allow-fallback", action="store_true", help="go on with the next backend if one cannot start")
    _add_shards(parser)
    parser.add_argument("--record", type=named_file, metavar="NAME", help="write NAME.npz and NAME.json for verify")
    parser.add_argument("--raster", type=named_file, metavar="FILE", help="write a raster picture, .svg")
    parser.add_argument("--all", action="store_true", help="list every area, not only those that fired")
    _add_common(parser)


def _add_shards(parser: Parser) -> None:
    group = parser.add_argument_group("one network on several devices or ranks (start these with mpiexec or srun)")
    group.add_argument("--multi-gpu", action="store_true", help="a shard on each GPU there is")
    group.add_argument("--num-gpus", type=whole_number(1, 1024), metavar="N", help="use at most N GPUs")
    group.add_argument(
        "--shards",
        type=whole_number(1, 4096),
        metavar="N",
        help="shards, of the CPU or of --backend cuda; default: the ranks",
    )
    group.add_argument("--strategy", choices=STRATEGIES, help="how neurons are split over shards")
    group.add_argument("--reshard-every", type=whole_number(1, 10**9), metavar="N", help="split anew every N bursts")
    group.add_argument(
        "--mpi", choices=("auto", "on", "off"), default="auto", help="run as an MPI rank (auto: if launched as one)"
    )
    group.add_argument(
        "--rank-timeout",
        type=_Bounded(float, 1.0, 1e6),
        default=300.0,
        metavar="S",
        help="a rank that the others wait for longer ends the run (default: 300)",
    )
    group = parser.add_argument_group("checkpoints")
    group.add_argument("--checkpoint", type=named_file, metavar="FILE", help="write the state of the run to it")
    group.add_argument(
        "--checkpoint-every",
        type=whole_number(1, 10**9),
        metavar="N",
        help="bursts between two checkpoints (default: 1000); the end has one, too",
    )
    group.add_argument("--resume", type=named_file, metavar="FILE", help="continue the run of a checkpoint")


def _add_verify(parser: Parser) -> None:
    parser.add_argument(
        "traces", nargs="+", type=named_file, metavar="TRACE", help="path without extension (.npz and .json)"
    )
    _add_config(parser, "what replays the bursts (default: cpu, whatever the configuration names)")
    parser.add_argument(
        "--profile",
        choices=PROFILES,
        help=f"rules of the engine (default: {FEAGI_2_6.name}, or those of the record)",
    )
    parser.add_argument(
        "--no-emulate", action="store_true", help="leave out the released engine's defect from 10 000 candidates on"
    )
    _add_scattered(parser)
    _add_common(parser)


def _add_scattered(parser: Parser) -> None:
    parser.add_argument("--shards", type=whole_number(1, 4096), metavar="N", help="shards, of cpu or cuda")


def _add_fuzz(parser: Parser) -> None:
    cases = parser.add_argument_group("cases: one for each seed; the same seed gives the same case")
    cases.add_argument("--cases", type=whole_number(1, 10**9), default=200, metavar="N", help="default: 200")
    cases.add_argument(
        "--seed", type=whole_number(0, 2**63), default=0, metavar="N", help="the first one's; default: 0"
    )
    cases.add_argument(
        "--families",
        type=whole_number(0, 10**6),
        default=0,
        metavar="N",
        help="sets of switches that cases share, so that few kernels are compiled for CUDA; 0: each has its own",
    )
    cases.add_argument("--minutes", type=_Bounded(float, 0.01, 1e6), metavar="M", help="end after so long")
    _add_config(parser, "what is held against the reference (default: cpu)")
    _add_scattered(parser)
    parser.add_argument(
        "--out", type=named_file, default=Path(), metavar="DIR", help="where traces of shrunk cases go; default: here"
    )
    _add_common(parser)


def _add_convert(parser: Parser) -> None:
    parser.add_argument("source", type=named_file, metavar="IN", help=".json, .json.gz, .connectome or .bpnet")
    parser.add_argument("target", type=named_file, metavar="OUT", help=".connectome or .bpnet")
    _add_reading(parser)
    _add_common(parser)


def _add_firing_rate(parser: Parser) -> None:
    parser.add_argument(
        "--firing-rate",
        type=_Bounded(float, 0.0, 1.0),
        metavar="RATE",
        help="expected fraction of neurons that fire in a burst: backends auto and cuda choose by it",
    )


def _add_info(parser: Parser) -> None:
    group = _add_sources(
        parser,
        "what a network needs, on --backend cuda by default; touches no device, takes up to 25 bytes a synapse here",
    )
    what = "memory of a genome, connectome or network, buffer by buffer; without FILE, of --synthetic"
    group.add_argument("--plan", nargs="?", const=NO_FILE, type=named_file, metavar="FILE", help=what)
    parser.add_argument(*SPLITTING, nargs="?", action=_NoShards, help=argparse.SUPPRESS)
    _add_firing_rate(parser)
    _add_config(parser)
    _add_common(parser)


def _add_train(parser: Parser) -> None:
    parser.add_argument(
        "text", nargs="?", type=named_file, metavar="FILE", help="UTF-8 text; a story of the package's own"
    )
    parser.add_argument("--backend", choices=("auto", "cpu", "cuda"), default="auto", help="where it trains")
    parser.add_argument("--device", type=whole_number(0, 1023), metavar="N", help="CUDA device")
    parser.add_argument(
        "--precision", choices=("bfloat16", "float32", "float64"), help="bfloat16 on cuda, else float32"
    )
    for name, most, default, what in (
        ("steps", 10**7, 300, "training steps"),
        ("batch", 2**16, 16, "passages per step"),
        ("length", 2**16, 64, "characters per passage"),
        ("layers", 96, 2, "transformer blocks"),
        ("heads", 128, 2, "attention heads; on cuda of 32, 64 or 128 values each"),
        ("width", 2**14, 64, "values per character"),
    ):
        parser.add_argument(
            f"--{name}", type=whole_number(1, most), default=default, metavar="N", help=f"{what} (default: {default})"
        )
    parser.add_argument("--rate", type=_Bounded(float, 0.0, 1.0), default=3e-3, help="learning rate (default: 0.003)")
    parser.add_argument("--seed", type=whole_number(0, 2**63), default=0, metavar="N", help="of weights and passages")
    _add_common(parser)


def _add_compile(parser: Parser) -> None:
    parser.add_argument("file", type=named_file, metavar="FILE", help="CUDA C++ source, .cu")
    parser.add_argument(
        "--capability", action="append", default=[], metavar="X.Y", help="default: device 0's (may be repeated)"
    )
    parser.add_argument("--define", action="append", default=[], metavar="NAME[=VALUE]", help="macro (may be repeated)")
    parser.add_argument(
        "--template", action="append", default=[], metavar="NAME", help="instance to build, e.g. 'scale<float, 4>'"
    )
    parser.add_argument("--fast-math", action="store_true", help="approximate division and functions")
    parser.add_argument("--max-registers", type=whole_number(16, 255), metavar="N", help="bound per thread")
    parser.add_argument("--block", type=whole_number(1, 1024), default=256, metavar="N", help="for the occupancy: 256")
    parser.add_argument(
        "--shared-bytes", type=whole_number(0, 2**18), default=0, metavar="N", help="dynamic shared memory, likewise"
    )
    parser.add_argument("--output", type=named_file, metavar="FILE", help="write the machine code (cubin)")
    _add_common(parser)
