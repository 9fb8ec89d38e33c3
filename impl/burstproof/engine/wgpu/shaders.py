"""The WGSL text for what a network uses, and the words that host and shaders agree upon."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import BATCH_PATH_CANDIDATES, LARGE_NETWORK_NEURONS
from burstproof.network.schema import Parameters

WORKGROUP = 256
"""Invocations of a workgroup that goes through neurons; every adapter of the WebGPU baseline has 256."""

ROW_LANES = 64
"""Invocations that share out the row of a fired neuron."""

LONGEST_BATCH = 64
"""Bursts in one submission."""

FIRST_CANDIDATES = LONGEST_BATCH + 2
"""Place of the candidate counts in the words of a batch: behind the used entries and the ends of the lists."""

BATCH_WORDS = FIRST_CANDIDATES + LONGEST_BATCH

WAS_CANDIDATE, FIRED = 1, 4
"""Bits of a neuron's status between bursts."""

_RESTARTS = ("RESTART_CANDIDATES", "RESTART_ALL", "RESTART_FIRED")


@dataclass(frozen=True)
class Variant:
    """What the shaders are compiled for.

    Attributes
    ----------
    flagged : bool
        Whether a sum may be 0 though something arrived, so that candidates carry a flag beside it.
    delayed : bool
        Whether a delay above 1 occurs.
    wide : bool
        Whether a sum takes two words of 32 bit.
    restart : str
        Which non-accumulating neurons restart from 0, a name of the shader.
    """

    flagged: bool
    delayed: bool
    wide: bool
    restart: str
    negative_sum_lowers: bool
    countdown_only_candidates: bool
    batch_path: bool
    batch_zeroes: bool

    @property
    def words_per_synapse(self) -> int:
        """Target, one or two words of the contribution, and the delay where there is more than one."""
        return 2 + self.wide + self.delayed

    @property
    def planes(self) -> int:
        """Words per neuron and slot of the ring."""
        return 1 + self.wide + self.flagged

    def header(self) -> str:
        """The constants as WGSL, and the struct of a neuron's parameters."""
        switches = {
            "FLAGGED": self.flagged,
            "DELAYED": self.delayed,
            "WIDE": self.wide,
            "NEGATIVE_SUM_LOWERS": self.negative_sum_lowers,
            "COUNTDOWN_ONLY_CANDIDATES": self.countdown_only_candidates,
            "BATCH_PATH": self.batch_path,
            "BATCH_ZEROES": self.batch_zeroes,
        }
        numbers = {
            "WORKGROUP": WORKGROUP,
            "ROW_LANES": ROW_LANES,
            "FIRST_CANDIDATES": FIRST_CANDIDATES,
            "FLAG_PLANE": 1 + self.wide,
            "WORDS_PER_SYNAPSE": self.words_per_synapse,
            "BATCH_PATH_CANDIDATES": BATCH_PATH_CANDIDATES,
            **{name: place for place, name in enumerate(_RESTARTS)},
        }
        lines = [f"const {name} = {str(on).lower()};" for name, on in switches.items()]
        lines += [f"const {name} = {value}u;" for name, value in numbers.items()]
        fields = ", ".join(f"{name}: u32" for name in Parameters._fields)
        return "\n".join([*lines, f"const RESTART = {self.restart};", f"struct Parameters {{ {fields} }}", ""])


def variant_of(neurons: int, options: EngineOptions, *, flagged: bool, delayed: bool, wide: bool) -> Variant:
    """The variant for a network of ``neurons`` neurons under ``options``."""
    profile = options.profile
    restart = "RESTART_CANDIDATES"
    if profile.restart_all:
        restart = "RESTART_ALL" if neurons < LARGE_NETWORK_NEURONS else "RESTART_FIRED"
    return Variant(
        flagged,
        delayed,
        wide,
        restart,
        profile.negative_sum_lowers,
        profile.countdown_only_candidates,
        options.emulate_batch_path,
        options.emulate_batch_path and profile.batch_ignores_limit_and_zeroes,
    )


@cache
def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def operations_shader() -> str:
    """The operations on float32, of which no shader has others."""
    return _text("operations.wgsl")


def burst_shader(variant: Variant, operations: str) -> str:
    """The shaders of a burst, over ``operations``."""
    return "\n".join([variant.header(), *_rules(operations), _text("burst.wgsl")])


def probe_shader(operations: str) -> str:
    """The shader of the probe, over the same rules."""
    return "\n".join([*_rules(operations), _text("probe.wgsl")])


def _rules(operations: str) -> tuple[str, str, str]:
    return operations, _text("small.wgsl"), _text("rules.wgsl")
