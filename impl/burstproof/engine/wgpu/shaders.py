"""The WGSL text for what a network uses, and the words that host and shaders agree upon."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from burstproof.engine.features.key import extras_key
from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import BATCH_PATH_CANDIDATES, LARGE_NETWORK_NEURONS
from burstproof.network.model import Network
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

WAS_CANDIDATE, FIRED, IN_TRAIN = 1, 4, 8
"""Bits of a neuron's status between bursts."""

CAN_TRAIN = 1 << 16
"""Bit beside the area class in a neuron's word of features."""

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
    trains, homeostats, modulated, clamps : bool
        FEATURES sections 3, 1, 2.2 and 6; ``modulated`` are parameters of areas.
    """

    flagged: bool
    delayed: bool
    wide: bool
    restart: str
    negative_sum_lowers: bool
    countdown_only_candidates: bool
    batch_path: bool
    batch_zeroes: bool
    trains: bool = False
    homeostats: bool = False
    modulated: bool = False
    clamps: bool = False

    @property
    def adapts(self) -> bool:
        """Whether parameters of neurons change from burst to burst."""
        return self.homeostats or self.modulated

    @property
    def parameter_fields(self) -> tuple[str, ...]:
        """Words of a neuron that never change; also what features add to them."""
        featured = ("features",) * (self.trains or self.adapts)
        return (*Parameters._fields, *featured, *("base_leak", "driver") * self.modulated)

    @property
    def state_fields(self) -> tuple[str, ...]:
        """Words of a neuron that change; with features also the potential of its train, its homeostat's r and g."""
        return ("v", "counts", "status", *("held",) * self.trains, *("rate", "leak") * self.homeostats)

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
            "TRAINS": self.trains,
            "HOMEOSTATS": self.homeostats,
            "MODULATED": self.modulated,
            "CLAMPS": self.clamps,
        }
        numbers = {
            "WORKGROUP": WORKGROUP,
            "ROW_LANES": ROW_LANES,
            "FIRST_CANDIDATES": FIRST_CANDIDATES,
            "BATCH_WORDS": BATCH_WORDS,
            "FLAG_PLANE": 1 + self.wide,
            "WORDS_PER_SYNAPSE": self.words_per_synapse,
            "BATCH_PATH_CANDIDATES": BATCH_PATH_CANDIDATES,
            "PARAMETER_WORDS": len(self.parameter_fields),
            "STATE_WORDS": len(self.state_fields),
            **{name.upper(): _place(name, self.parameter_fields) for name in ("features", "base_leak", "driver")},
            **{name.upper(): _place(name, self.state_fields) for name in ("held", "rate", "leak")},
            **{name: place for place, name in enumerate(_RESTARTS)},
        }
        lines = [f"const {name} = {str(on).lower()};" for name, on in switches.items()]
        lines += [f"const {name} = {value}u;" for name, value in numbers.items()]
        fields = ", ".join(f"{name}: u32" for name in Parameters._fields)
        lines += [f"const RESTART = {self.restart};", f"struct Parameters {{ {fields} }}"]
        words = ", ".join(f"parameters[own + {place}u]" for place in range(len(Parameters._fields)))
        lines.append("fn parameters_of(neuron: u32) -> Parameters {")
        lines.append(f"    let own = neuron * PARAMETER_WORDS;\n    return Parameters({words});\n}}\n")
        return "\n".join(lines)


def _place(name: str, fields: tuple[str, ...]) -> int:
    """Place of a word among ``fields``; of one that is absent nothing is read."""
    return fields.index(name) if name in fields else 0


def variant_of(network: Network, options: EngineOptions, *, flagged: bool, delayed: bool, wide: bool) -> Variant:
    """The variant for ``network`` under ``options``."""
    extras = extras_key(network)
    profile = options.profile
    restart = "RESTART_CANDIDATES"
    if profile.restart_all:
        restart = "RESTART_ALL" if network.neuron_count < LARGE_NETWORK_NEURONS else "RESTART_FIRED"
    return Variant(
        flagged,
        delayed,
        wide,
        restart,
        profile.negative_sum_lowers,
        profile.countdown_only_candidates,
        options.emulate_batch_path,
        options.emulate_batch_path and profile.batch_ignores_limit_and_zeroes,
        extras.trains,
        extras.homeostats,
        extras.area_modulators,
        network.features.clamp_potentials,
    )


@cache
def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def operations_shader() -> str:
    """The operations on float32, of which no shader has others."""
    return _text("operations.wgsl")


def burst_shader(variant: Variant, operations: str) -> str:
    """The shaders of a burst, over ``operations``."""
    return "\n".join([variant.header(), *_rules(operations), _text("features.wgsl"), _text("burst.wgsl")])


def probe_shader(operations: str) -> str:
    """The shader of the probe, over the same rules."""
    return "\n".join([*_rules(operations), _text("probe.wgsl")])


def _rules(operations: str) -> tuple[str, str, str]:
    return operations, _text("small.wgsl"), _text("rules.wgsl")
